/**
 * Summary files: which files the calls of a history touched. Taken from the calls, never from what a model remembers of
 * them. A call that failed, or has no result, touched nothing.
 */
import { isRecord } from '../core/json.ts';
import type { Message, ToolCallPart } from '../core/message.ts';
import type { AnyTool } from '../core/tool.ts';
import { fileName, mergeFiles, type TouchedFiles } from './summary-message.ts';

/** A call of the history whose files are asked for. */
export interface FileCall {
  /** Name of the tool, as the model wrote it. */
  readonly name: string;
  /** The arguments it ran with; undefined where they were not an object. */
  readonly input: unknown;
  /** The tool; undefined if it is not among those of the step. */
  readonly tool: AnyTool | undefined;
}

/** Names a call's files; undefined leaves it to the default. */
export type FilesOfCall = (call: FileCall) => Partial<TouchedFiles> | undefined;

/** Arguments that name a file, in the tools that are known. */
const PATH_NAMES = ['path', 'file_path', 'filePath', 'file', 'filename', 'file_name', 'notebook_path', 'target_file'] as const;
/** Words in the names of tools that change files. */
const CHANGING = /write|edit|create|patch|replace|insert|append|delete|remove|rename|move|save|update/i;

/** The files that the calls of a history touched. */
export function filesOfHistory(
  messages: readonly Message[],
  { tools, filesOf }: { readonly tools: readonly AnyTool[]; readonly filesOf?: FilesOfCall | undefined },
): TouchedFiles {
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  const succeeded = new Set(messages.flatMap((message) => (message.role === 'tool' && message.isError !== true ? [message.toolCallId] : [])));
  let files: TouchedFiles = { read: [], changed: [] };
  for (const call of messages.flatMap(callsOf)) {
    if (!succeeded.has(call.id)) continue;
    const asked: FileCall = { name: call.name, input: call.input ?? parsed(call.inputText), tool: byName.get(call.name) };
    const { read = [], changed = [] } = filesOf?.(asked) ?? defaultFilesOf(asked);
    files = mergeFiles(files, { read: clean(read), changed: clean(changed) });
  }
  return files;
}

function callsOf(message: Message): readonly ToolCallPart[] {
  return message.role === 'assistant' ? message.content.filter((part) => part.type === 'tool_call') : [];
}

/** Files by the names of arguments; what the tool says of its accesses, or else its name, tells reads from changes. */
function defaultFilesOf({ name, input, tool }: FileCall): TouchedFiles {
  if (!isRecord(input)) return { read: [], changed: [] };
  const paths = PATH_NAMES.flatMap((key) => (Object.hasOwn(input, key) && typeof input[key] === 'string' ? [input[key]] : []));
  return isChange(name, input, tool) ? { read: [], changed: paths } : { read: paths, changed: [] };
}

function isChange(name: string, input: unknown, tool: AnyTool | undefined): boolean {
  if (tool?.readOnly === true) return false;
  try {
    const accesses = tool?.accesses?.(input);
    if (accesses !== undefined) return accesses.some(({ mode }) => mode === 'write');
  } catch {
    // A tool that cannot say it is judged by its name.
  }
  return CHANGING.test(name);
}

function parsed(inputText: string): unknown {
  try {
    return JSON.parse(inputText);
  } catch {
    return undefined;
  }
}

function clean(names: readonly string[]): readonly string[] {
  return names.flatMap((name) => fileName(name) ?? []);
}
