/**
 * strictHistory and reduceMedia inside a turn, as black boxes: how often what is sent, and what later steps see. What each
 * server says is sorted into kinds by the adapters; here the kinds stand for it.
 */
import { describe, expect, it } from 'vitest';
import {
  assistantMessage,
  createTranscript,
  LLMError,
  type LLMErrorKind,
  type LLMRequest,
  type MediaPart,
  type Message,
  type MessagePart,
  projectMessages,
  type ReplyPart,
  textOf,
  toolMessage,
  userMessage,
} from 'turnloop';
import { reduceMedia } from 'turnloop/context';
import { strictHistory } from 'turnloop/policies';
import { recordingTool, repeat, toolCall, virtualRuntime } from 'turnloop/testing';
import { runScripted } from './run-scripted.ts';

function failure(kind: LLMErrorKind, message = `${kind}.`): LLMError {
  return new LLMError({ kind, message, status: 400 });
}

function image(data: string): MediaPart {
  return { type: 'media', mediaType: 'image/png', data };
}

/** The media of a request, by content. */
function mediaOf(request: LLMRequest | undefined): readonly (string | undefined)[] {
  const parts = (request?.messages ?? []).flatMap((message): readonly MessagePart[] => message.content);
  return parts.filter((part) => part.type === 'media').map(({ data }) => data);
}

/** A conversation with three images in it. */
const threeImages: readonly Message[] = [userMessage([image('A'), image('B'), image('C')], { id: 'earlier' })];

/** A conversation that strict projection changes: it begins with the model, and the model speaks twice in a row. */
const oddHistory: readonly Message[] = [
  assistantMessage('Before anything.', { id: 'step_a' }),
  userMessage('First.', { id: 'message_a' }),
  assistantMessage('One.', { id: 'step_b' }),
  assistantMessage([{ type: 'tool_call', id: 'call_a', name: 'look', inputText: '{}', input: {} }], { id: 'step_c' }),
  toolMessage('Seen.', { id: 'result_a', toolCallId: 'call_a', name: 'look' }),
];

describe('strictHistory in a turn', () => {
  const recoveries = [strictHistory(), ...reduceMedia()];

  it.each([
    ['FB1', 'tool_use ids were found without tool_result blocks immediately after'],
    ['FB2', 'tool_call_id not found'],
    ['FB3', "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'"],
  ])('%s recovers by one strict resend', async (_id, message) => {
    const { result, llm, listener } = await runScripted({
      replies: [failure('invalid_history', message), 'ok'],
      history: oddHistory,
      recoveries,
    });

    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'ok', steps: 1 });
    expect(llm.callCount).toBe(2);
    expect(llm.requests[0]?.messages.map(({ role }) => role)).toStrictEqual(['assistant', 'user', 'assistant', 'assistant', 'tool', 'user']);
    expect(llm.requests[1]?.messages.map(({ role }) => role)).toStrictEqual(['user', 'assistant', 'tool', 'user']);
    expect(listener.of('step.retrying')).toMatchObject([{ recovery: 'strictHistory', error: { kind: 'invalid_history' } }]);
  });

  it('FB4 sends nothing again for another refusal', async () => {
    const { result, llm } = await runScripted({ replies: [failure('invalid_request')], history: oddHistory, recoveries });

    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { kind: 'invalid_request' } });
    expect(llm.callCount).toBe(1);
  });

  it('FB5 ends with the error after exactly two calls when the strict resend is refused too', async () => {
    const { result, llm } = await runScripted({
      replies: [repeat(failure('invalid_history'), 2)],
      history: oddHistory,
      recoveries,
    });

    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { kind: 'invalid_history' } });
    expect(llm.callCount).toBe(2);
  });

  it('FB5 ends with the error after one call when there is nothing to repair', async () => {
    const { llm } = await runScripted({ replies: [failure('invalid_history')], recoveries });

    expect(llm.callCount).toBe(1);
  });

  it('law-11 sends later steps with the same repaired beginning, without asking for it again', async () => {
    const { llm } = await runScripted({
      replies: [failure('invalid_history'), toolCall('look'), 'ok'],
      history: oddHistory,
      tools: [recordingTool({ name: 'look' })],
      recoveries,
    });

    const [, second, third] = llm.requests;
    expect(llm.callCount).toBe(3);
    expect(third?.messages.slice(0, second?.messages.length)).toStrictEqual(second?.messages);
    expect(second?.messages.every((message, index) => message === third?.messages[index])).toBe(true);
  });
});

describe('reduceMedia in a turn', () => {
  const recoveries = [strictHistory(), ...reduceMedia({ keepNewest: 1 })];

  it('TD1 FB6 recovers from a request that is too large by leaving older media out', async () => {
    const { result, llm, listener } = await runScripted({
      replies: [failure('request_too_large'), 'ok'],
      history: threeImages,
      recoveries,
    });

    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 1 });
    expect(llm.requests.map(mediaOf)).toStrictEqual([['A', 'B', 'C'], ['C']]);
    expect(listener.of('step.retrying')).toMatchObject([{ recovery: 'reduceMedia.older' }]);
  });

  it('FB7 ends with a failure that was not recognised as too large', async () => {
    const { result, llm } = await runScripted({ replies: [failure('invalid_request')], history: threeImages, recoveries });

    expect(result.stopReason).toBe('fatal_error');
    expect(llm.callCount).toBe(1);
  });

  it('FB8 gives up when the reduced request is refused for another reason', async () => {
    const { result, llm } = await runScripted({
      replies: [failure('request_too_large'), failure('invalid_request')],
      history: threeImages,
      recoveries,
    });

    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { kind: 'invalid_request' } });
    expect(llm.callCount).toBe(2);
  });

  it('FB12 ends with the error after three calls when everything is too large', async () => {
    const { result, llm } = await runScripted({
      replies: [repeat(failure('request_too_large'), 3)],
      history: threeImages,
      recoveries,
    });

    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { kind: 'request_too_large' } });
    expect(llm.requests.map(mediaOf)).toStrictEqual([['A', 'B', 'C'], ['C'], []]);
  });

  it('FB11 goes from older media out to all out when the resend reveals an image that is not taken', async () => {
    const { result, llm } = await runScripted({
      replies: [failure('request_too_large'), failure('media_rejected'), 'ok'],
      history: threeImages,
      recoveries,
    });

    expect(result.stopReason).toBe('end_turn');
    expect(llm.requests.map(mediaOf)).toStrictEqual([['A', 'B', 'C'], ['C'], []]);
  });

  it('FB11 leaves all media out for the rest of the turn after both recoveries were used', async () => {
    const { llm } = await runScripted({
      replies: [failure('request_too_large'), failure('media_rejected'), toolCall('look'), 'ok'],
      history: threeImages,
      tools: [recordingTool({ name: 'look' })],
      recoveries,
    });

    expect(mediaOf(llm.requests[3])).toStrictEqual([]);
  });

  it('FB13 law-11 keeps the reduced beginning for later steps of the turn', async () => {
    const { llm } = await runScripted({
      replies: [failure('request_too_large'), toolCall('look'), toolCall('look'), 'ok'],
      history: threeImages,
      tools: [recordingTool({ name: 'look', execute: (_input, { step }) => [image(`step ${step}`)] })],
      recoveries,
    });

    expect(llm.requests.map(mediaOf)).toStrictEqual([['A', 'B', 'C'], ['C'], ['C', 'step 1'], ['C', 'step 1', 'step 2']]);
    const [, second, third, fourth] = llm.requests;
    expect(second?.messages.every((message, index) => message === third?.messages[index])).toBe(true);
    expect(third?.messages.every((message, index) => message === fourth?.messages[index])).toBe(true);
  });

  it('FB10 goes straight to all out when a reduced turn becomes too large again', async () => {
    const { result, llm } = await runScripted({
      replies: [failure('request_too_large'), toolCall('look'), failure('request_too_large'), 'ok'],
      history: threeImages,
      tools: [recordingTool({ name: 'look', execute: () => [image('D')] })],
      recoveries,
    });

    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 2 });
    expect(llm.requests.map(mediaOf)).toStrictEqual([['A', 'B', 'C'], ['C'], ['C', 'D'], []]);
  });

  it('FB9 ends with the error when a stripped turn becomes too large again, and brings no media back', async () => {
    const { result, llm } = await runScripted({
      replies: [failure('media_rejected'), toolCall('look'), failure('request_too_large')],
      history: threeImages,
      tools: [recordingTool({ name: 'look', execute: () => 'nothing to see' })],
      recoveries,
    });

    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { kind: 'request_too_large' } });
    expect(llm.requests.map(mediaOf)).toStrictEqual([['A', 'B', 'C'], [], []]);
  });

  it('TD3 resends once without any media when an image is rejected', async () => {
    const { result, llm } = await runScripted({ replies: [failure('media_rejected'), 'ok'], history: threeImages, recoveries });

    expect(result.stopReason).toBe('end_turn');
    expect(llm.requests.map(mediaOf)).toStrictEqual([['A', 'B', 'C'], []]);
  });

  it('TD3 ends with the error when the resend without media fails, or there were none', async () => {
    const rejected = failure('media_rejected');

    const withMedia = await runScripted({ replies: [rejected, rejected], history: threeImages, recoveries });
    const without = await runScripted({ replies: [rejected], recoveries });

    expect([withMedia.result.stopReason, withMedia.llm.callCount]).toStrictEqual(['fatal_error', 2]);
    expect([without.result.stopReason, without.llm.callCount]).toStrictEqual(['fatal_error', 1]);
  });

  it('TD4 shows new media of later tools after a strip, and keeps the same media out', async () => {
    const images = ['B', 'D'];
    const { llm } = await runScripted({
      replies: [failure('media_rejected'), toolCall('look'), toolCall('look'), 'ok'],
      history: threeImages,
      tools: [recordingTool({ name: 'look', execute: () => [image(images.shift() ?? '')] })],
      recoveries,
    });

    expect(llm.requests.map(mediaOf)).toStrictEqual([['A', 'B', 'C'], [], [], ['D']]);
  });

  it('BR-002 lets a conversation with forty images go on, pairs intact, and the next turn begin without a refusal', async () => {
    const shoot = recordingTool({ name: 'shoot', execute: (_input, { step }) => [image(`shot ${step}`)] });
    const takesTwenty = (request: LLMRequest) =>
      mediaOf(request).length > 20
        ? failure('request_too_large')
        : shoot.runCount < 40
          ? toolCall('shoot')
          : 'ok';

    const first = await runScripted({ replies: takesTwenty, tools: [shoot], recoveries: reduceMedia() });
    const { transcript, runtime } = first;
    const second = await runScripted({ replies: takesTwenty, tools: [shoot], recoveries: reduceMedia(), transcript, runtime });

    expect(first.result).toMatchObject({ stopReason: 'end_turn', text: 'ok' });
    expect(first.listener.of('step.retrying').map(({ recovery }) => recovery)).toStrictEqual(['reduceMedia.older', 'reduceMedia.all']);
    expect(second.result).toMatchObject({ stopReason: 'end_turn', text: 'ok' });
    expect(second.llm.callCount).toBe(1);
    for (const { messages } of [...first.llm.requests, ...second.llm.requests]) {
      expect(projectMessages(messages).findings).toStrictEqual([]);
    }
  });

  it('BR-002 shows the new image of the turn after one whose image was rejected', async () => {
    const takesNoA = (request: LLMRequest) => (mediaOf(request).includes('A') ? failure('media_rejected') : 'ok');

    const first = await runScripted({
      replies: takesNoA,
      recoveries,
      options: { input: [userMessage([image('A')])] },
    });
    const { transcript, runtime } = first;
    const second = await runScripted({
      replies: takesNoA,
      recoveries,
      transcript,
      runtime,
      options: { input: [userMessage([image('B')])] },
    });

    expect(first.llm.requests.map(mediaOf)).toStrictEqual([['A'], []]);
    expect(second.llm.requests.map(mediaOf)).toStrictEqual([['B']]);
    expect(transcript.findings()).toStrictEqual([]);
  });

  it('BR-002 records the messages as they were recorded, also after another recovery merged them', async () => {
    const transcript = createTranscript();
    const drawn = (text: string): readonly ReplyPart[] => [{ type: 'text', text }, image(text)];
    const runtime = virtualRuntime();
    await runScripted({ replies: [drawn('One.')], transcript, runtime, options: { input: [userMessage('Draw.')] } });
    await runScripted({ replies: [drawn('Two.')], transcript, runtime, options: { input: [] } });

    const { llm } = await runScripted({
      replies: [failure('invalid_history'), failure('media_rejected'), 'ok'],
      recoveries,
      transcript,
      runtime,
    });

    expect(llm.requests.map(({ messages }) => messages.length)).toStrictEqual([4, 3, 3]);
    const texts = transcript.buildMessages().map(textOf);
    const note = '[image/png left out: the request was refused with it.]';
    expect(texts).toStrictEqual(['Draw.', `One.${note}`, `Two.${note}`, 'Hello', 'ok']);
  });

  it('BR-002 is refused again in the next turn, and recovers again, where nothing was recorded', async () => {
    const takesNoA = (request: LLMRequest) => (mediaOf(request).includes('A') ? failure('media_rejected') : 'ok');
    const forTheTurn = reduceMedia({ lasting: false });

    const first = await runScripted({ replies: takesNoA, recoveries: forTheTurn, options: { input: [userMessage([image('A')])] } });
    const { transcript, runtime } = first;
    const second = await runScripted({ replies: takesNoA, recoveries: forTheTurn, transcript, runtime });

    expect(first.listener.of('compaction')).toStrictEqual([]);
    expect(second.result.stopReason).toBe('end_turn');
    expect(second.llm.requests.map(mediaOf)).toStrictEqual([['A'], []]);
  });
});
