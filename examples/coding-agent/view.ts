/**
 * Terminal view: a turn's events as text for people, line by line, on a terminal or in a file.
 *
 * - Text appears as it arrives. Nothing is ever redrawn, so the output can be piped, scrolled and copied.
 * - Everything that a model or a tool wrote goes through `toPrintable`.
 * - A view is a listener: it only observes, and no failure of it would change the turn.
 */
import { addUsage, NO_USAGE, textOf, type RecordedToolResult, type ToolCallEvent, type ToolUpdate, type Usage } from 'turnloop';
import type { SessionListener } from 'turnloop/agent';
import { toPrintable, toPrintableLine } from './printable.ts';

export interface TerminalViewOptions {
  readonly write: (text: string) => void;
  /** @defaultValue false */
  readonly colors?: boolean | undefined;
  /** Columns: summaries are cut to them. @defaultValue 100 */
  readonly width?: number | undefined;
  /** Whether to show what the person asked. @defaultValue true */
  readonly showInput?: boolean | undefined;
}

/** More lines of one call's output are counted, not shown. */
const MAX_LINES_PER_CALL = 30;
/** However narrow the terminal is: a line that wraps says more than none. */
const MIN_SUMMARY_LENGTH = 20;

type Paint = (text: string) => string;

/** A call on the screen. */
interface ShownCall {
  readonly title: string;
  /** Spaces before it: two for each sub-agent that it is below. */
  readonly indent: string;
  startedAt: number;
  /** Lines of output shown, or left out. */
  lineCount: number;
  /** The beginning of a line whose end has not come yet. */
  unfinishedLine: string;
}

/** Makes a view: a function to be told of every event. Of sub-agents it shows the calls, further in. */
export function createTerminalView(options: TerminalViewOptions): SessionListener {
  const { write, colors = false, width = 100, showInput = true } = options;
  const paint = (code: number): Paint => (text) => (colors && text !== '' ? `\u001b[${code}m${text}\u001b[0m` : text);
  const [dim, red, green, yellow, cyan] = [paint(2), paint(31), paint(32), paint(33), paint(36)];

  const calls = new Map<string, ShownCall>();
  let usage: Usage = NO_USAGE;
  let turnStartedAt = 0;
  /** Whether text of this attempt is on the screen, so that the whole part needs no printing again. */
  let hasStreamed = false;
  /** What the line that the cursor is in holds; undefined at the start of a line. */
  let open: 'text' | 'thinking' | undefined;

  function line(text: string): void {
    stream(undefined, '');
    write(`${text}\n`);
  }

  function stream(kind: typeof open, text: string): void {
    if (open !== undefined && open !== kind) write('\n');
    open = kind;
    if (text !== '') write(text);
  }

  function show(event: Parameters<SessionListener>[0]): void {
    const depth = 'agentPath' in event ? (event.agentPath?.length ?? 0) : 0;
    if (depth > 0 && !event.type.startsWith('tool.')) return; // What it spent is told by its caller too, as is its answer.
    switch (event.type) {
      case 'turn.begin':
        turnStartedAt = event.at;
        usage = NO_USAGE;
        calls.clear();
        return;
      case 'turn.resume':
        turnStartedAt = event.at;
        return;
      case 'message':
        if (showInput) line(cyan(`> ${toPrintable(textOf(event.message))}`));
        return;
      case 'step.begin':
        hasStreamed = false;
        return;
      case 'text.delta':
        hasStreamed = true;
        return stream('text', toPrintable(event.text));
      case 'thinking.delta':
        return stream('thinking', dim(toPrintable(event.text)));
      case 'content.part':
        if (event.part.type === 'text' && !hasStreamed) line(toPrintable(event.part.text));
        return;
      case 'step.retrying': {
        const what = hasStreamed ? 'The text above is void. ' : '';
        const when = event.delayMs === undefined ? '' : ` in ${seconds(event.delayMs)}`;
        hasStreamed = false;
        return line(yellow(`↻ ${what}Trying again${when}: ${summary(event.error.message)}`));
      }
      case 'tool.call':
        return showCall(event, depth);
      case 'tool.start':
        return callOf(event.toolCallId, (call) => (call.startedAt = event.at));
      case 'tool.progress':
        return callOf(event.toolCallId, (call) => showProgress(call, event.update));
      case 'tool.finished':
      case 'tool.result': // Also told of calls that never ran.
        return callOf(event.toolCallId, (call) => {
          calls.delete(event.toolCallId);
          showResult(call, event.result, event.at);
        });
      case 'usage':
        usage = addUsage(usage, event.usage);
        return;
      case 'notice':
        return line(yellow(`! ${summary(`${event.name} ${JSON.stringify(event.data)}`)}`));
      case 'turn.end': {
        if (event.error !== undefined) line(red(`✗ ${summary(`${event.error.kind}: ${event.error.message}`)}`));
        const facts = [
          event.stoppedBy === undefined ? event.stopReason : `${event.stopReason} by ${event.stoppedBy}`,
          counted(event.steps, 'step'),
          tokens(usage),
          seconds(event.at - turnStartedAt),
        ];
        return line(dim(`${facts.map(toPrintable).join(' · ')}\n`));
      }
      default:
        return; // The rest is for the record, or told by other events as well.
    }
  }

  function callOf(toolCallId: string, use: (call: ShownCall) => void): void {
    const call = calls.get(toolCallId);
    if (call !== undefined) use(call);
  }

  function showCall(event: ToolCallEvent, depth: number): void {
    const title = summary(event.description ?? `${event.name} ${event.inputText}`);
    const indent = '  '.repeat(depth);
    calls.set(event.toolCallId, { title, indent, startedAt: event.at, lineCount: 0, unfinishedLine: '' });
    line(`${indent}${cyan('→')} ${title}`);
  }

  function showProgress(call: ShownCall, update: ToolUpdate): void {
    switch (update.kind) {
      case 'stdout':
      case 'stderr': {
        const lines = (call.unfinishedLine + update.text).split('\n');
        call.unfinishedLine = lines.pop() ?? '';
        return lines.forEach((text) => outputLine(call, text));
      }
      case 'progress':
        return outputLine(call, `${update.percent} % ${update.text ?? ''}`);
      case 'status':
        return outputLine(call, update.text);
      case 'custom':
        return outputLine(call, JSON.stringify(update.data));
    }
  }

  function outputLine(call: ShownCall, text: string): void {
    call.lineCount += 1;
    if (call.lineCount > MAX_LINES_PER_CALL) return;
    line(dim(`${call.indent}  │ ${toPrintableLine(text, width - 4)}`));
  }

  function showResult(call: ShownCall, result: RecordedToolResult, at: number): void {
    if (call.unfinishedLine !== '') outputLine(call, call.unfinishedLine);
    // What people should see, unless they saw it already.
    if (call.lineCount === 0 && typeof result.display === 'string') {
      for (const text of result.display.split('\n')) outputLine(call, text);
    }
    const left = call.lineCount - MAX_LINES_PER_CALL;
    if (left > 0) line(dim(`${call.indent}  │ … ${counted(left, 'more line')}`));
    const mark = result.isError === true ? red('✗') : green('✓');
    // The first line of the result, and how many follow.
    const [first = '', ...more] = textOf(result.content).trimEnd().split('\n');
    const facts = ` · ${more.length === 0 ? '' : `+ ${counted(more.length, 'line')} · `}${seconds(at - call.startedAt)}`;
    const room = Math.max(MIN_SUMMARY_LENGTH, width - call.title.length - facts.length - 5);
    line(`${call.indent}${mark} ${call.title} ${dim(`· ${toPrintableLine(first, room)}${facts}`)}`);
  }

  function summary(text: string): string {
    return toPrintableLine(text, width - 2);
  }

  return show;
}

function tokens({ inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens }: Usage): string {
  const cached = cacheReadTokens > 0 ? ` (${cacheReadTokens} cached)` : '';
  return `${inputTokens + cacheReadTokens + cacheWriteTokens} tokens in${cached}, ${outputTokens} out`;
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function seconds(durationMs: number): string {
  return durationMs < 1000 ? `${durationMs} ms` : `${(durationMs / 1000).toFixed(1)} s`;
}
