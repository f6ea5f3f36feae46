/**
 * Turn check: what the laws say about the recorded events of one turn, from `turn.begin` to where the record ends.
 * What happens within a step is `step-check.ts`'s business.
 */
import {
  TRANSCRIPT_VERSION,
  type MessageEvent,
  type RecordedEvent,
  type StepBeginEvent,
  type TurnBeginEvent,
  type TurnEndEvent,
  type UsageEvent,
} from '../core/events.ts';
import { addUsage, NO_USAGE, type Usage } from '../core/usage.ts';
import { StepCheck, type Report } from './step-check.ts';

/** Events that close a suspended turn without resuming it. */
const CLOSING: ReadonlySet<string> = new Set<RecordedEvent['type']>(['tool.finished', 'tool.result', 'step.end', 'turn.end']);

/** Checks one turn, event by event. */
export class TurnCheck {
  readonly turnId: string;
  /** The turn's last event, once it is there. */
  ended: TurnEndEvent | undefined;
  suspended = false;
  /** Sum of all tokens. */
  usage: Usage = NO_USAGE;
  /** Steps begun; one that is asked again counts once. */
  steps = 0;
  readonly #report: Report;
  #step: StepCheck | undefined;
  #missingInput: number;
  #resumed = false;

  constructor(begin: TurnBeginEvent, report: Report) {
    this.turnId = begin.turnId;
    this.#report = report;
    this.#missingInput = begin.inputCount;
    if (begin.version !== TRANSCRIPT_VERSION) report(2, `turn ${begin.turnId} has version ${begin.version}, not ${TRANSCRIPT_VERSION}`);
  }

  /** Checks the next event of the turn. */
  add(event: Exclude<RecordedEvent, TurnBeginEvent>): void {
    if (this.ended !== undefined) this.#report(3, `${event.type} comes after the turn.end of turn ${this.turnId}`);
    else if (this.suspended && event.type !== 'turn.resume' && !CLOSING.has(event.type)) {
      this.#report(3, `${event.type} comes while turn ${this.turnId} is suspended`);
    }
    switch (event.type) {
      case 'message':
        this.#addMessage(event);
        break;
      case 'usage':
        this.#addUsage(event);
        break;
      case 'step.begin':
        this.#beginStep(event);
        break;
      case 'content.part':
      case 'tool.call':
        this.#stepOf(event)?.addPart(event);
        break;
      case 'tool.start':
        this.#stepOf(event)?.start(event);
        break;
      case 'tool.finished':
        this.#stepOf(event)?.finish(event);
        break;
      case 'tool.result':
        this.#stepOf(event)?.settle(event);
        break;
      case 'step.end':
        this.#stepOf(event)?.end(event);
        break;
      case 'turn.suspend':
        if (this.#step === undefined) this.#report(3, 'turn.suspend comes without a step');
        this.#step?.suspend(event.calls);
        this.suspended = true;
        break;
      case 'turn.resume':
        this.suspended = false;
        this.#resumed = true;
        this.#step?.resume();
        break;
      case 'turn.end':
        this.#end(event);
        break;
      case 'compaction':
        break;
      default:
        // A fold ignores what it does not know, and so does this.
        event satisfies never;
    }
  }

  #addMessage(event: MessageEvent): void {
    this.#missingInput -= 1;
    // A message may say that the reply before it was cut off.
    if (this.#isStepOpen() && this.#step?.isInterrupted !== true) this.#report(3, `message ${event.message.id} comes within step ${String(this.#step?.begin.step)}`);
  }

  #addUsage(event: UsageEvent): void {
    this.usage = addUsage(this.usage, event.usage);
    for (const [counter, count] of Object.entries(event.usage)) {
      if (!(typeof count === 'number' && count >= 0)) this.#report(5, `usage counter ${counter} is ${String(count)}`);
    }
    if (event.purpose !== 'step') return;
    const step = this.#step;
    if (step === undefined || step.ended || event.stepId !== step.begin.stepId || event.step !== step.begin.step) {
      this.#report(5, `the tokens of a reply belong to no open step: ${String(event.step)} (${String(event.stepId)})`);
      return;
    }
    if (step.replyUsage !== undefined) this.#report(5, `the tokens of step ${step.begin.step} are recorded twice`);
    if (step.received > 0) this.#report(5, `the tokens of step ${step.begin.step} are recorded only after its parts`);
    step.replyUsage = event.usage;
  }

  #beginStep(event: StepBeginEvent): void {
    if (this.steps === 0 && this.#missingInput > 0 && !this.#resumed) {
      this.#report(3, `step ${event.step} begins with ${this.#missingInput} messages of the input missing`);
    }
    const before = this.#step;
    if (this.#isStepOpen()) this.#report(3, `step ${event.step} begins while step ${String(before?.begin.step)} is open`);
    const due = before === undefined || before.ended || !this.#resumed ? this.steps + 1 : before.begin.step;
    if (event.step !== due) this.#report(3, `step ${event.step} begins where step ${due} was due`);
    this.steps = Math.max(this.steps, event.step);
    this.#step = new StepCheck(event, this.#report);
  }

  /** True if the turn is within a step, and no resume may ask it again. */
  #isStepOpen(): boolean {
    const step = this.#step;
    return step !== undefined && !step.ended && !(this.#resumed && !step.isWhole);
  }

  #stepOf(event: RecordedEvent & { readonly step: number; readonly stepId: string }): StepCheck | undefined {
    const step = this.#step;
    if (step?.begin.stepId === event.stepId && step.begin.step === event.step) return step;
    this.#report(3, `${event.type} belongs to step ${event.step} (${event.stepId}), which is not the step that runs`);
    return undefined;
  }

  #end(event: TurnEndEvent): void {
    const step = this.#step;
    if (this.ended === undefined && step !== undefined && !step.ended) this.#endWithin(step, event);
    if (event.steps !== this.steps) this.#report(3, `turn.end counts ${event.steps} steps, the record ${this.steps}`);
    this.ended ??= event;
    this.suspended = false;
  }

  /** The turn ends without the step's end: its reply failed, was cut off or is void, or the turn was given up. */
  #endWithin(step: StepCheck, event: TurnEndEvent): void {
    const isGivenUp = event.stopReason === 'aborted';
    if (!isGivenUp) step.reportUnfinished();
    if (!step.isWhole) {
      const isVoid = this.#resumed || isGivenUp;
      if (step.received > 0 && !isVoid) {
        this.#report(3, `turn.end comes with ${step.received} parts of the reply of step ${step.begin.step}, which are not all`);
      }
      return;
    }
    step.reportUnanswered();
    if (!step.isInterrupted && !isGivenUp) this.#report(3, `turn.end comes without the step.end of step ${step.begin.step}`);
  }
}
