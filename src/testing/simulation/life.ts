/** Life: what a scenario is given of one process of a run. Whatever it hands out goes through the process, and dies with it. */
import type { RecordedEvent } from '../../core/events.ts';
import type { LLM } from '../../core/llm.ts';
import type { Runtime } from '../../core/runtime.ts';
import type { AnyTool } from '../../core/tool.ts';
import type { MemoryStore } from '../../memory/memory-store.ts';
import type { FileSystem } from '../../sessions/file-system.ts';
import type { SessionStore } from '../../sessions/session-store.ts';
import { simulatedDisk } from './at-disk.ts';
import { simulatedFetch } from './at-http.ts';
import { simulatedListener } from './at-listener.ts';
import { simulatedMemory } from './at-memory.ts';
import { ModelWatch } from './at-model.ts';
import { simulatedRecorder, simulatedStore } from './at-store.ts';
import { ToolWatch } from './at-tool.ts';
import type { ListenedEvent, SimulatedLife } from './scenario.ts';
import type { SimulatedProcess } from './simulated-process.ts';

/** One life of a process. */
export class Life implements SimulatedLife {
  readonly number: number;
  readonly runtime: Runtime;
  readonly signal: AbortSignal;
  readonly #process: SimulatedProcess;
  readonly #models: ModelWatch;
  readonly #tools: ToolWatch;

  constructor(process: SimulatedProcess) {
    this.number = process.number;
    this.runtime = process.runtime;
    this.signal = process.signal;
    this.#process = process;
    this.#models = new ModelWatch(process);
    this.#tools = new ToolWatch(process);
  }

  /** Lives to the end, or dies. */
  run(live: (life: SimulatedLife) => Promise<void>): Promise<'ended' | 'died'> {
    return this.#process.run(
      () => live(this),
      () => this.#tools.checkEnd(),
    );
  }

  llm(llm: LLM): LLM {
    return this.#models.watch(llm);
  }

  tool<One extends AnyTool>(tool: One): One {
    return this.#tools.watch(tool);
  }

  sessions(store: SessionStore): SessionStore {
    return simulatedStore(this.#process, store);
  }

  recorder(log: RecordedEvent[]): (event: RecordedEvent) => Promise<void> {
    return simulatedRecorder(this.#process, log);
  }

  disk(files: FileSystem): FileSystem {
    return simulatedDisk(this.#process, files);
  }

  memory(store: MemoryStore): MemoryStore {
    return simulatedMemory(this.#process, store);
  }

  fetch(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
    return simulatedFetch(this.#process, fetch);
  }

  listener(listener?: (event: ListenedEvent) => unknown): (event: ListenedEvent) => unknown {
    return simulatedListener(this.#process, listener);
  }

  pause(ms: number): Promise<void> {
    return this.#process.pause(ms);
  }
}
