import { appendFile, readFile, truncate } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { closeOpenTurn, createEventDispatcher, createTranscript, runTurn, type RecordedEvent, type RunTurnOptions, type TurnResult } from 'turnloop';
import { maxSteps } from 'turnloop/policies';

export interface ChatOptions extends Pick<RunTurnOptions, 'llm' | 'tools'> {
  readonly file: string;
  readonly input: Readable;
  readonly show: (result: TurnResult) => void;
}

/** Takes each line of `input` as an input. Keeps the conversation in a file, one event a line. */
export async function chat({ file, input, show, ...options }: ChatOptions): Promise<void> {
  const transcript = createTranscript(await loadEvents(file));
  const record = async (event: RecordedEvent): Promise<void> => {
    await appendFile(file, `${JSON.stringify(event)}\n`, { flush: true }); // First the disk: the transcript holds nothing that may be lost.
    transcript.record(event);
  };
  const dispatchEvent = createEventDispatcher({ record });
  const run = async (start: Pick<RunTurnOptions, 'input' | 'resume'>): Promise<void> => {
    const result = await runTurn({ ...options, ...start, stopWhen: maxSteps(25), buildMessages: transcript.buildMessages, dispatchEvent });
    show(result);
    if (result.error?.code === 'recorder_failed') throw result.error; // The file may end in half a line: start again.
  };

  // A turn that was cut off goes on; one that lost its input has nothing to go on with.
  const turn = transcript.openTurn();
  if (turn !== undefined && turn.missingInput === 0) await run({ resume: { turn } });
  else await closeOpenTurn(transcript, { dispatchEvent });
  for await (const line of createInterface({ input })) if (line.trim() !== '') await run({ input: line });
}

/** Loads the whole lines. A torn last one is cut off the file too: the next event would be glued to it. */
async function loadEvents(file: string): Promise<RecordedEvent[]> {
  const stored = await readFile(file, { flag: 'a+' }); // Makes the file if there is none.
  const whole = stored.subarray(0, stored.lastIndexOf('\n') + 1);
  if (whole.length < stored.length) await truncate(file, whole.length);
  return whole.toString().split('\n').slice(0, -1).map((line) => JSON.parse(line) as RecordedEvent);
}
