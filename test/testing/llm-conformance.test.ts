/**
 * The LLM conformance kit: a good adapter passes each case, each fault is found by the cases that are about it, and each
 * case finds some fault. The adapters of the package and of the examples run it in tests of their own.
 */
import { describe, expect, it } from 'vitest';
import { type LLM, LLMError } from 'turnloop';
import { llmConformance, type LLMConformanceCase, type LLMConformanceCaseId, type LLMConformanceOptions, type LLMScene, type LLMUnderTest } from 'turnloop/testing/conformance';
import { faultyOnScene } from './llm-conformance-fault.ts';
import { failureFaults } from './llm-conformance-faults-failures.ts';
import { replyFaults } from './llm-conformance-faults-replies.ts';
import { requestFaults } from './llm-conformance-faults-requests.ts';
import { scriptedOnScene, toWire, type WireWriter } from './llm-conformance-scripted.ts';

type CreateLLM = (scene: LLMScene) => LLMUnderTest | Promise<LLMUnderTest>;

const good: CreateLLM = (scene) => scriptedOnScene(scene);

/** The scripted adapter, with another `chat`. */
function withChat(change: (chat: LLM['chat']) => LLM['chat']): CreateLLM {
  return (scene) => {
    const made = scriptedOnScene(scene);
    return { ...made, llm: { ...made.llm, chat: change(made.llm.chat) } };
  };
}

function find(id: LLMConformanceCaseId, createLLM: CreateLLM, options: LLMConformanceOptions = {}): LLMConformanceCase {
  return llmConformance(createLLM, options).find((each) => each.id === id)!;
}

/** What a case says that fails; undefined for one that passes. */
async function failureOf({ run }: LLMConformanceCase): Promise<string | undefined> {
  return run().then(
    () => undefined,
    (failure: unknown) => String(failure),
  );
}

describe.concurrent('a good adapter', () => {
  for (const { name, run } of llmConformance(good)) it(name, run);
});

describe.concurrent('F6: an adapter is found out that', () => {
  const faults = Object.entries({ ...replyFaults, ...failureFaults, ...requestFaults });

  it.each(faults)('%s', async (_name, fault) => {
    const { caughtBy, saying } = fault;
    const options = { settleWithinMs: 400 };
    const cases = caughtBy.map((id) => find(id, (scene) => faultyOnScene(fault, scene), options));
    const found = await Promise.all(cases.map(async (each) => [each.id, await failureOf(each)] as const));

    expect(found.filter(([, failure]) => failure === undefined)).toStrictEqual([]);
    expect(found[0]![1]).toMatch(saying);
  });

  it('does anything wrong that a case is about', () => {
    const found = new Set(faults.flatMap(([, { caughtBy }]) => caughtBy));

    expect(llmConformance(good).flatMap(({ id }) => (found.has(id) ? [] : [id]))).toStrictEqual([]);
  });
});

describe('an adapter is free to', () => {
  it('tell no fragments, if it says so', async () => {
    const silent = withChat((chat) => (request) => chat({ ...request, onDelta: undefined }));
    const reason = 'it does not stream';
    const skip = { 'text.stream': reason, 'text.live': reason, 'thinking.stream': reason, 'calls.single': reason, 'abort.in_delta': reason };
    const found = await Promise.all(llmConformance(silent, { skip }).map(failureOf));

    expect(found.filter((failure) => failure !== undefined)).toStrictEqual([]);
  });

  it('answer one request after the other', async () => {
    const serial = withChat((chat) => {
      let last: Promise<unknown> = Promise.resolve();
      return (request) => {
        const reply = last.then(() => chat(request));
        last = reply.catch(() => {});
        return reply;
      };
    });

    expect(await failureOf(find('reuse.concurrent', serial))).toBeUndefined();
    expect(await failureOf(find('abort.others', serial))).toBeUndefined();
  });

  it('refuse what it cannot ask for, before it asks', async () => {
    const modest = withChat((chat) => async (request) => {
      const { toolChoice, maxOutputTokens, responseSchema } = request;
      if ((toolChoice ?? maxOutputTokens ?? responseSchema) !== undefined) throw new LLMError({ kind: 'invalid_request', message: 'not here' });
      return chat(request);
    });

    for (const id of ['settings.tool_choice', 'settings.max_output_tokens', 'settings.response_schema'] as const) expect(await failureOf(find(id, modest))).toBeUndefined();
  });

  it('move the marks of a cache, if it says what they are', async () => {
    const marked: WireWriter = (request) => {
      const { body, ...rest } = toWire(request);
      const last = body.lastIndexOf('RESULT-OF-');
      return { ...rest, body: `${body.slice(0, last)}<MARK>${body.slice(last)}` };
    };
    const moving: CreateLLM = (scene) => scriptedOnScene(scene, marked);
    const said: CreateLLM = (scene) => ({ ...scriptedOnScene(scene, marked), withoutCacheMarks: (body) => body.replaceAll('<MARK>', '') });

    expect(await failureOf(find('request.prefix', moving))).toMatch(/differs from the first at character/);
    expect(await failureOf(find('request.prefix', said))).toBeUndefined();
  });

  it('throw before it gives a promise', async () => {
    const throwing = withChat((chat) => (request) => {
      if (request.signal.aborted) throw new Error('aborted');
      return chat(request);
    });

    expect(await failureOf(find('abort.before', throwing))).toBeUndefined();
  });
});

describe('the list of cases', () => {
  it('has each id once, and names that start with it', () => {
    const cases = llmConformance(good);

    expect(new Set(cases.map(({ id }) => id)).size).toBe(cases.length);
    expect(cases.filter(({ id, name }) => !name.startsWith(`${id}: `))).toStrictEqual([]);
    expect(cases.filter(({ skipped }) => skipped !== undefined)).toStrictEqual([]);
  });

  it('keeps what is skipped, by id or by group, and says why', async () => {
    const never: CreateLLM = () => {
      throw new Error('asked for an LLM');
    };
    const cases = llmConformance(never, { skip: { thinking: 'the protocol has none', 'calls.exact': 'arguments are values' } });
    const skipped = cases.filter((each) => each.skipped !== undefined);

    expect(cases).toHaveLength(llmConformance(good).length);
    expect(skipped.map(({ id }) => id)).toStrictEqual(['thinking.stream', 'thinking.signature', 'calls.exact']);
    expect(skipped[0]!.skipped).toBe('the protocol has none');
    expect(skipped[0]!.name).toMatch(/^thinking\.stream: .* \(skipped: the protocol has none\)$/);
    expect(await Promise.all(skipped.map(failureOf))).toStrictEqual([undefined, undefined, undefined]);
  });

  it.each<[unknown, unknown, RegExp]>([
    [undefined, {}, /takes a function that makes an LLM.*llmConformance\(createLLM/],
    [good, { skip: { 'text.steam': 'a slip' } }, /no case or group `text\.steam` to skip\. It has .*text\.stream/],
    [good, { skip: { constructor: 'a slip' } }, /no case or group `constructor`/],
    [good, { skip: { thinking: '' } }, /no reason for `thinking`.*skip: \{ thinking: /],
    [good, { skip: { thinking: true } }, /no reason for `thinking`/],
    [good, { settleWithinMs: 0 }, /`settleWithinMs` is 0/],
    [good, { skips: {} }, /has no option `?skips/],
  ])('refuses %j with %j', (createLLM, options, message) => {
    expect(() => llmConformance(createLLM as CreateLLM, options as LLMConformanceOptions)).toThrow(TypeError);
    expect(() => llmConformance(createLLM as CreateLLM, options as LLMConformanceOptions)).toThrow(message);
  });
});

describe('a case', () => {
  it.each<[LLMConformanceCaseId, (made: LLMUnderTest) => LLMUnderTest, RegExp]>([
    ['abort.before', ({ llm }) => ({ llm }), /needs `requests\(\)` of what createLLM gives: offer it, or skip the case with a reason/],
    ['abort.connection', (made) => ({ ...made, requests: () => made.requests!().map(({ body }) => ({ body })) }), /needs `letGo` of each request/],
    ['reply.metadata', (made) => ({ ...made, requests: () => made.requests!().map(({ replied: _said, ...request }) => request) }), /needs `replied` of each request/],
    ['reply.metadata', (made) => ({ ...made, requests: () => made.requests!().map((request) => ({ ...request, replied: {} })) }), /`replied` says nothing/],
    ['settings.tool_choice', ({ llm }) => ({ llm }), /needs `requests\(\)`/],
    ['request.pairs', (made) => ({ ...made, requests: () => made.requests!().map(({ body }) => ({ body })) }), /needs `calls` of each request/],
  ])('%s does not pass unlooked at', async (id, change, message) => {
    expect(await failureOf(find(id, (scene) => change(scriptedOnScene(scene))))).toMatch(message);
  });

  it('closes what it opened, once, whether it passes or fails', async () => {
    let closed = 0;
    const counted = (createLLM: CreateLLM): CreateLLM => async (scene) => ({ ...(await createLLM(scene)), close: () => void (closed += 1) });
    const silent = withChat((chat) => (request) => chat({ ...request, onDelta: undefined }));

    expect(await failureOf(find('text.stream', counted(good)))).toBeUndefined();
    expect(closed).toBe(1);
    expect(await failureOf(find('text.stream', counted(silent)))).toMatch(/no fragment/);
    expect(closed).toBe(2);
  });

  it('lets servers go on that wait for it, and aborts what still runs', async () => {
    let isGone = false;
    const hanging: CreateLLM = ({ answers }) => {
      const wait = answers[0]!.find((step) => step.type === 'wait')!;
      const left = wait.until();
      return {
        llm: {
          ...{ provider: 'p', modelId: 'm', systemPrompt: '' },
          chat: ({ signal }) => new Promise(() => signal.addEventListener('abort', () => (isGone = true))),
        },
        close: () => left,
      };
    };

    const failure = await failureOf(find('abort.midway', hanging, { settleWithinMs: 100 }));

    expect(failure).toMatch(/chat \(the signal was aborted\) did not settle within 100 ms/);
    expect(isGone).toBe(true);
  });

  it.each<[string, CreateLLM, RegExp]>([
    ['createLLM throws', () => Promise.reject(new Error('no port')), /no port/],
    ['createLLM hangs', () => new Promise(() => {}), /createLLM did not settle within 100 ms/],
    ['close throws', (scene) => ({ ...scriptedOnScene(scene), close: () => Promise.reject(new Error('still open')) }), /still open/],
    ['close hangs', (scene) => ({ ...scriptedOnScene(scene), close: () => new Promise<void>(() => {}) }), /`close` of the scene did not settle/],
    ['chat gives nothing', withChat(() => async () => undefined as never), /no LLMResponse with a `content` list/],
    ['chat gives a part of no type', withChat((chat) => async (request) => ({ ...(await chat(request)), content: [{} as never] })), /no ReplyPart/],
  ])('says so when %s', async (_what, createLLM, message) => {
    expect(await failureOf(find('text.stream', createLLM, { settleWithinMs: 100 }))).toMatch(message);
  });
});
