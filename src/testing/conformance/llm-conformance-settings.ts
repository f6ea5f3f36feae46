/**
 * Cases about settings: what a request asks for beside its history reaches the server, or is refused by name. The kit
 * knows no protocol, so it looks whether requests that differ in the setting alone are sent in different words.
 */
import { isLLMError } from '../../core/errors.ts';
import type { LLMRequest } from '../../core/llm.ts';
import { userMessage } from '../../core/message.ts';
import type { CasesOf } from './llm-conformance-case.ts';
import { expectEqual, fail } from './llm-conformance-checks.ts';
import { TOOLS } from './llm-conformance-history.ts';
import { answer, stepsOf, text } from './llm-conformance-scene.ts';
import type { Trial } from './llm-conformance-trial.ts';

const REFUSE = 'send it, or refuse it with an LLMError of kind `invalid_request` before anything is sent';

/** What an LLM sends for a request; undefined if it refuses. */
async function sentFor(trial: Trial, request: Partial<LLMRequest>, mayRefuse: boolean): Promise<string | undefined> {
  const subject = await trial.open([answer(stepsOf(text('Fine.')))]);
  const messages = [userMessage('Go.', { id: 'm1' })];
  try {
    await subject.send({ tools: TOOLS, messages, ...request }).response();
  } catch (thrown) {
    const isRefused = mayRefuse && isLLMError(thrown) && thrown.kind === 'invalid_request' && subject.bodies().length === 0;
    if (!isRefused) throw thrown;
    return undefined;
  }
  return subject.bodies()[0] ?? fail('the server got no request');
}

/**
 * Sends requests that mean different things, each to an LLM of its own, and expects them to be sent in different words.
 *
 * @param requests - By what they mean. The first is sent, whatever happens to the others.
 * @param mayRefuse - Whether those others may be refused.
 */
export async function expectDistinct(trial: Trial, requests: Readonly<Record<string, Partial<LLMRequest>>>, mayRefuse = false): Promise<void> {
  const names = new Map<string, string>();
  for (const [name, request] of Object.entries(requests)) {
    const body = await sentFor(trial, request, mayRefuse && names.size > 0);
    if (body === undefined) continue;
    const other = names.get(body);
    if (other !== undefined) fail(`${name} is sent in the same words as ${other}, so that the server cannot know${mayRefuse ? `: ${REFUSE}` : ''}`);
    if (names.size === 0) expectEqual(await sentFor(trial, request, false), body, 'the same request by another LLM (what differs by itself hides what does not)');
    names.set(body, name);
  }
}

const FORM = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false } as const;
const OTHER_FORM = { ...FORM, properties: { country: { type: 'string' } }, required: ['country'] } as const;

/** Cases about settings. */
export const settingsCases: CasesOf<'settings'> = {
  'settings.tool_choice': {
    title: 'which tools a reply may call reaches the server, or is refused (needs `requests()`)',
    run: (trial) =>
      expectDistinct(
        trial,
        {
          'no choice': {},
          '`toolChoice: none`': { toolChoice: 'none' },
          '`toolChoice: required`': { toolChoice: 'required' },
          'the choice of `look_up`': { toolChoice: { name: 'look_up' } },
          'the choice of `note`': { toolChoice: { name: 'note' } },
        },
        true,
      ),
  },
  'settings.max_output_tokens': {
    title: 'how long a reply may be reaches the server, or is refused (needs `requests()`)',
    run: (trial) =>
      expectDistinct(
        trial,
        { 'no limit': {}, '`maxOutputTokens: 1000`': { maxOutputTokens: 1000 }, '`maxOutputTokens: 2000`': { maxOutputTokens: 2000 } },
        true,
      ),
  },
  'settings.response_schema': {
    title: 'which form the answer has reaches the server, or is refused (needs `requests()`)',
    run: (trial) =>
      expectDistinct(
        trial,
        { 'no form': { tools: [] }, 'a form': { responseSchema: FORM, tools: [] }, 'another form': { responseSchema: OTHER_FORM, tools: [] } },
        true,
      ),
  },
};
