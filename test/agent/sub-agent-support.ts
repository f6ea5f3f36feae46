/** What the tests of sub-agents have in common. */
import { type LLMRequest, type RecordedEvent, type ReplyToolCall, textOf } from 'turnloop';
import type { DispatchAgentInput, OpenSubAgentLog } from 'turnloop/agent';
import { type Reply, scriptedLLM, type ScriptedLLM, type ScriptedLLMOptions, toolCall } from 'turnloop/testing';

/** A call that dispatches a sub-agent. */
export function dispatchCall(prompt: string, { type, description }: Omit<DispatchAgentInput, 'prompt'> = {}): ReplyToolCall {
  return toolCall('dispatch_agent', { prompt, ...(type !== undefined && { type }), ...(description !== undefined && { description }) });
}

/** What a model was first told. */
export function promptOf({ messages }: LLMRequest): string {
  return textOf(messages[0]!.content.filter((part) => part.type === 'text'));
}

/** A model that many agents share: each plays the replies of its own prompt, one for each step, in whatever process it is. */
export function taskLLM(repliesOf: (prompt: string) => readonly Reply[], options: ScriptedLLMOptions = {}): ScriptedLLM {
  return scriptedLLM((request) => {
    const step = request.messages.filter(({ role }) => role === 'assistant').length;
    const reply = repliesOf(promptOf(request))[step];
    if (reply === undefined) throw new Error(`"${promptOf(request)}" has no reply for step ${step + 1}.`);
    return reply;
  }, options);
}

/** What is durable of a turn and all its sub-agents, and outlives the process: events by who recorded them. */
export type Files = ReadonlyMap<string, readonly RecordedEvent[]>;

/** The file of the turn that no sub-agent runs. */
export const ROOT = 'root';

/** A place for events whose process dies right after the n-th of them became durable: later ones are lost, and nothing comes back. */
export class Disk {
  readonly #files: Map<string, RecordedEvent[]>;
  readonly #crashAfter: number;
  #onCrash: () => void = () => undefined;
  #count = 0;
  /** Ids of the calls whose logs are open. */
  readonly open = new Set<string>();
  /** Resolves at the crash. */
  readonly crashed: Promise<void>;

  constructor(files: Files = new Map(), crashAfter = Infinity) {
    // What another process wrote is read back from JSON.
    this.#files = new Map(JSON.parse(JSON.stringify([...files])) as [string, RecordedEvent[]][]);
    this.#crashAfter = crashAfter;
    this.crashed = new Promise((resolve) => {
      this.#onCrash = resolve;
    });
  }

  get files(): Files {
    return this.#files;
  }

  /** How many events became durable in this process. */
  get count(): number {
    return this.#count;
  }

  readonly record = (event: RecordedEvent, file: string = ROOT): Promise<void> => {
    if (this.#count >= this.#crashAfter) return new Promise(() => undefined);
    const events = this.#files.get(file) ?? [];
    events.push(event);
    this.#files.set(file, events);
    this.#count += 1;
    if (this.#count < this.#crashAfter) return Promise.resolve();
    this.#onCrash();
    return new Promise(() => undefined);
  };

  readonly openLog: OpenSubAgentLog = async (toolCallId) => {
    if (this.open.has(toolCallId)) throw new Error(`The log of ${toolCallId} is open already.`);
    this.open.add(toolCallId);
    return {
      load: async () => [...(this.#files.get(toolCallId) ?? [])],
      record: (event) => this.record(event, toolCallId),
      close: async () => {
        this.open.delete(toolCallId);
      },
    };
  };
}
