/** The token estimator: what is counted, what is learned, and how often a text is looked at. */
import fc from 'fast-check';
import { assistantMessage, type LLMCapabilities, type Message, type MessagePart, toolMessage, userMessage, type UserPart } from 'turnloop';
import { createTokenEstimator, type EstimatedRequest, type EstimatorSnapshot, type TokenEstimator } from 'turnloop/context';
import { describe, expect, it, vi } from 'vitest';

const MODEL = { provider: 'acme', modelId: 'large' };
const OTHER = { provider: 'acme', modelId: 'small' };
const WORDS = 'The quick brown fox jumps over the lazy dog, and nobody minds. ';
const CHINESE = '我们可以在这里查看所有的数据，然后选择需要的服务。';

function request(messages: readonly Message[], more: Partial<EstimatedRequest> = {}): EstimatedRequest {
  return { systemPrompt: '', tools: [], messages, ...more };
}

function said(text: string, id = 'message'): Message {
  return userMessage(text, { id });
}

function model(capabilities?: LLMCapabilities): typeof MODEL & { readonly capabilities: LLMCapabilities | undefined } {
  return { ...MODEL, capabilities };
}

describe('what is counted', () => {
  const estimator = createTokenEstimator();

  it('D1 a Latin text has about four characters to a token, a Chinese one about one to a character', () => {
    expect(WORDS.length / estimator.estimateText(WORDS)).toBeGreaterThan(3.5);
    expect(WORDS.length / estimator.estimateText(WORDS)).toBeLessThan(5);
    expect(estimator.estimateText(CHINESE) / CHINESE.length).toBeGreaterThan(0.5);
    expect(estimator.estimateText(CHINESE) / CHINESE.length).toBeLessThan(1);
  });

  it.each([
    ['nothing', '', 0],
    ['a word', 'hello', 1],
    ['words with their spaces', ' hello world', 2],
    ['digits by three', '1234567', 3],
    ['an indented line', '\n        return', 3],
    ['a drawn line', '-'.repeat(70), 2.5],
    ['an emoji', '🎉', 1.5],
    ['words of one identifier', 'getUserNameFromFilePath', 6],
    ['marks of JSON', '":{"', 1],
    ['Russian', ' привет', 2],
    ['Korean', '안녕하세요', 3.5],
    ['Japanese', 'こんにちは', 3.5],
    ['Arabic', ' مرحبا', 1.7],
    ['a lone half of a character', '\ud83d', 1],
  ])('D1 %s costs about what tokenizers make of it', (_name, text, tokens) => {
    expect(Math.abs(estimator.estimateText(text) - tokens)).toBeLessThanOrEqual(0.5);
  });

  it.each([
    ['a long run of letters', 'x'.repeat(100_000)],
    ['a long run of digits', '1'.repeat(100_000)],
    ['base64', btoa(WORDS.repeat(1_000))],
  ])('D1 %s is never estimated at less than a token for five characters', (_name, text) => {
    expect(estimator.estimateText(text)).toBeGreaterThan(text.length / 5);
  });

  it('TK1 BR-004 a picture costs the same, however long its bytes are, from a person and from a tool', () => {
    const picture = (length: number): MessagePart & { readonly type: 'media' } => ({ type: 'media', mediaType: 'image/png', data: 'A'.repeat(length) });
    for (const message of [
      (length: number) => userMessage([picture(length)]),
      (length: number) => toolMessage([picture(length)], { toolCallId: 'call_1', name: 'look' }),
    ]) {
      expect(estimator.estimateMessage(message(2_000_000))).toBeGreaterThan(500);
      expect(estimator.estimateMessage(message(2_000_000))).toBeLessThan(6_000);
      expect(estimator.estimateMessage(message(4_000_000))).toBe(estimator.estimateMessage(message(2_000_000)));
    }
  });

  it.each<[string, (data: string) => MessagePart]>([
    ["a provider's block", (data) => ({ type: 'provider', provider: 'acme', data: { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } } })],
    ['base64 beside its type', (data) => ({ type: 'provider', provider: 'acme', data: { type: 'image', source: { type: 'base64', media_type: 'image/png', data } } })],
    ['bytes without a type', (data) => ({ type: 'provider', provider: 'acme', data: { type: 'encrypted', content: data } })],
    ['the arguments of a call', (data) => ({ type: 'tool_call', id: 'call_1', name: 'show', inputText: `{"image":"data:image/png;base64,${data}"}` })],
    ['hidden thinking', (data) => ({ type: 'thinking', text: '', redactedData: data })],
  ])('TK1 BR-004 base64 in %s is flat as well', (_name, part) => {
    const of = (length: number): number => estimator.estimateMessage(assistantMessage([part('A'.repeat(length))]));

    expect(of(2_000_000)).toBeGreaterThan(500);
    expect(of(2_000_000)).toBeLessThan(6_000);
    expect(of(4_000_000)).toBe(of(2_000_000));
  });

  it('TK1 a host may say what its media cost', () => {
    const message = userMessage([{ type: 'media', mediaType: 'audio/wav', data: 'AAAA' }]);
    const bare = createTokenEstimator({ mediaTokens: 0 }).estimateMessage(message);

    expect(createTokenEstimator({ mediaTokens: 700 }).estimateMessage(message)).toBe(bare + 700);
    expect(createTokenEstimator({ mediaTokens: (type) => (type.startsWith('audio/') ? 90 : 0) }).estimateMessage(message)).toBe(bare + 90);
    expect(createTokenEstimator({ mediaTokens: () => Number.NaN }).estimateMessage(message)).toBe(bare + 1_500);
  });

  it.each([
    ['cut off', `{"path":"a.txt","content":"${WORDS.repeat(100)}`],
    ['a list', JSON.stringify([WORDS.repeat(100)])],
    ['a text', JSON.stringify(WORDS.repeat(100))],
    ['a picture, cut off', `{"image":"data:image/png;base64,${'A'.repeat(4_000)}`],
    ['nothing', ''],
  ])('D1 arguments that are %s cost what is sent for them, an empty object', (_name, inputText) => {
    const called = (text: string): Message => assistantMessage([{ type: 'tool_call', id: 'call_1', name: 'write', inputText: text }]);

    expect(estimator.estimateMessage(called(inputText))).toBe(estimator.estimateMessage(called('{}')));
    expect(estimator.estimateMessage(called(` ${JSON.stringify({ text: WORDS.repeat(100) })}\n`))).toBeGreaterThan(1_000);
  });

  it('D1 messages together cost what each of them does, before calibration', () => {
    const taught = createTokenEstimator();
    const messages = [said(WORDS.repeat(20)), assistantMessage([{ type: 'text', text: CHINESE.repeat(9) }]), said('Go on.')];
    taught.observe(request(messages), MODEL, 900);

    const [first, second, third] = messages.map((message) => taught.estimateMessage(message));
    expect(taught.estimateMessages(messages)).toBe(first! + second! + third!);
    expect(Math.ceil(taught.estimateMessages(messages))).toBe(createTokenEstimator().estimateRequest(request(messages), MODEL));
    expect(taught.estimateMessages([])).toBe(0);
  });

  it('BR-038 system prompt, schemas, arguments, results and thinking are counted', () => {
    const prose = (length: number): string => WORDS.repeat(Math.ceil(length / WORDS.length)).slice(0, length);
    const tools = Array.from({ length: 20 }, (_, index) => ({ name: `tool_${index}`, description: prose(100), inputSchema: { type: 'object', description: prose(1_850) } }));
    const argument = JSON.stringify({ text: prose(7_985) });
    const messages = [
      said(prose(400)),
      assistantMessage([{ type: 'thinking', text: prose(4_000) }, { type: 'tool_call', id: 'call_1', name: 'tool_1', inputText: argument }]),
      toolMessage(JSON.stringify({ rows: [prose(7_980)] }), { toolCallId: 'call_1', name: 'tool_1' }),
    ];
    const whole = request(messages, { systemPrompt: prose(40_000), tools });
    const characters = 40_000 + JSON.stringify(tools).length + 8_000 + 8_000 + 4_000 + 400;

    const tokens = estimator.estimateRequest(whole, MODEL);
    expect(tokens).toBeGreaterThanOrEqual(20_000);
    expect(tokens / (characters / 4)).toBeGreaterThan(0.65);
    expect(tokens / (characters / 4)).toBeLessThan(1.35);

    const tool = { name: 'one_more', description: 'Does something else.', inputSchema: { type: 'object' } };
    expect(estimator.estimateRequest({ ...whole, tools: [...tools, tool] }, MODEL)).toBeGreaterThan(tokens);
    expect(estimator.estimateRequest({ ...whole, messages: [...messages, assistantMessage([{ type: 'thinking', text: 'Hm.' }])] }, MODEL)).toBeGreaterThan(tokens);
  });
});

describe('how often a text is looked at', () => {
  function watched(text: string): { readonly message: Message; readonly looks: () => number } {
    let looks = 0;
    const part = {
      type: 'text' as const,
      get text() {
        looks += 1;
        return text;
      },
    };
    return { message: userMessage([part]), looks: () => looks };
  }

  it('D1 each message is read once, whatever is asked of it and however the history changes', () => {
    const estimator = createTokenEstimator();
    const seen = Array.from({ length: 30 }, (_, index) => watched(`${WORDS} ${index}`));
    const messages = seen.map(({ message }) => message);

    for (let length = 1; length <= messages.length; length += 1) {
      estimator.estimateRequest(request(messages.slice(0, length)), MODEL);
      estimator.observe(request(messages.slice(0, length)), MODEL, length * 20);
    }
    estimator.estimateRequest(request(messages.slice(10)), OTHER);
    estimator.estimateRequest(request(messages), MODEL);
    estimator.estimateMessage(messages[3]!);

    expect(seen.map(({ looks }) => looks())).toStrictEqual(seen.map(() => 1));
  });

  it('D1 a tool and its schema are read once', () => {
    const estimator = createTokenEstimator();
    let looks = 0;
    const tool = {
      name: 'read',
      description: 'Reads.',
      get inputSchema() {
        looks += 1;
        return { type: 'object' };
      },
    };
    for (let step = 0; step < 5; step += 1) estimator.estimateRequest(request([], { tools: [tool] }), MODEL);

    expect(looks).toBe(1);
  });

  it('D1 arguments are parsed once', () => {
    const estimator = createTokenEstimator();
    const inputText = `{"content":"${WORDS}`;
    const messages = [said(WORDS), assistantMessage([{ type: 'tool_call', id: 'call_1', name: 'write', inputText }])];
    const parse = vi.spyOn(JSON, 'parse');
    for (let step = 0; step < 5; step += 1) {
      estimator.estimateRequest(request([...messages, said(`${step}`)]), MODEL);
      estimator.estimateMessages(messages);
    }
    const parsed = parse.mock.calls.filter(([text]) => text === inputText);
    parse.mockRestore();

    expect(parsed).toHaveLength(1);
  });

  const conversation = (name: string): readonly Message[] => Array.from({ length: 2_000 }, (_, index) => said(`${name} ${index}`, `${name}_${index}`));

  /** How often something is looked up by an object while an estimate is made; and that it is the right one. */
  function lookUps(estimator: TokenEstimator, messages: readonly Message[]): number {
    const get = vi.spyOn(WeakMap.prototype, 'get');
    const tokens = estimator.estimateRequest(request(messages), MODEL);
    const count = get.mock.calls.length;
    get.mockRestore();
    expect(tokens).toBe(createTokenEstimator().estimateRequest(request(messages), MODEL));
    return count;
  }

  const [left, right] = [conversation('left'), conversation('right')];
  const fresh = (): Message => userMessage('Today is Monday.', { transient: true });
  it.each<[string, (step: number) => readonly Message[]]>([
    ['goes on', (step) => left.slice(0, 1_900 + step)],
    ['takes turns with another', (step) => (step % 2 === 0 ? left : right).slice(0, 1_900 + step)],
    ['takes turns with another that began alike', (step) => [left[0]!, ...(step % 2 === 0 ? left : right).slice(1, 1_900 + step)]],
    ['takes turns with itself in another form', (step) => (step % 2 === 0 ? left : left.with(5, right[5]!)).slice(0, 1_900 + step)],
    ['has a new message for the request at its head', (step) => [fresh(), ...left.slice(0, 1_900 + step)]],
    ['has a message for the request at its head now and then', (step) => [...(step % 2 === 0 ? [fresh()] : []), ...left.slice(0, 1_900 + step)]],
    ['has new messages for the request at head and tail', (step) => [fresh(), fresh(), ...left.slice(0, 1_900 + step), fresh()]],
    ['has another first message each time', (step) => [said(`first ${step}`), ...left.slice(1, 1_900 + step)]],
    ['is asked for with fewer and with more messages', (step) => left.slice(0, step % 2 === 0 ? 1_900 + step : 50 * step)],
  ])('D1 a conversation that %s costs a look at what is new in it', (_name, messages) => {
    const estimator = createTokenEstimator();
    for (let step = 0; step < 2; step += 1) estimator.estimateRequest(request(messages(step)), MODEL);

    for (let step = 2; step < 12; step += 1) expect(lookUps(estimator, messages(step))).toBeLessThan(30);
  });

  it('D1 a list is compared with the conversation it goes on with, not with each', () => {
    const estimator = createTokenEstimator();
    const conversations = Array.from({ length: 12 }, (_, index) => conversation(`${index}`));
    for (const messages of conversations) estimator.estimateRequest(request(messages), MODEL);

    let reads = 0;
    const watchedList = new Proxy(conversations[0]!, {
      get: (target, key) => {
        if (typeof key === 'string' && /^\d+$/.test(key)) reads += 1;
        return Reflect.get(target, key) as unknown;
      },
    });
    estimator.estimateRequest(request(watchedList), MODEL);
    expect(reads).toBeGreaterThanOrEqual(2_000);
    expect(reads).toBeLessThan(2_200);
  });

  it('D1 gives the same figure whatever was estimated before', () => {
    const histories = [3, 1, 4, 1, 5, 9, 2, 6].map((length, at) => Array.from({ length }, (_, index) => said(`${WORDS} ${index % 3} ${at}`)));
    const first = histories[0]!;
    const all = [...histories, [...first, ...histories[2]!], first.slice(0, 2), first, []];
    const shared = createTokenEstimator();

    for (const messages of [...all, ...all]) {
      expect(shared.estimateRequest(request(messages), MODEL)).toBe(createTokenEstimator().estimateRequest(request(messages), MODEL));
    }
  });

  it('D1 gives the same figure whatever lists of the same messages were estimated before', () => {
    const pool = Array.from({ length: 12 }, (_, index) => userMessage(`${WORDS.repeat(index)} ${CHINESE}`, { id: `m${index}`, transient: index < 2 }));
    const stretch = fc.tuple(fc.nat(11), fc.nat(200)).map(([start, length]) => Array.from({ length }, (_, index) => pool[(start + index) % pool.length]!));
    const list = fc.array(fc.oneof(stretch, fc.nat(11).map((index) => [pool[index]!])), { maxLength: 4 }).map((parts) => parts.flat());
    fc.assert(
      fc.property(fc.array(list, { maxLength: 30 }), fc.integer({ min: 0, max: 1e12 }), (lists, mediaTokens) => {
        const shared = createTokenEstimator({ mediaTokens });
        for (const messages of lists) {
          const apart = messages.reduce((sum, message) => sum + shared.estimateMessage(message), 0);
          expect(shared.estimateRequest(request(messages), MODEL)).toBe(Math.ceil(apart));
          expect(shared.estimateMessages(messages)).toBe(apart);
        }
      }),
      { numRuns: 60 },
    );
  });
});

describe('calibration', () => {
  const history = request([said(WORDS.repeat(30))]);
  const base = createTokenEstimator().estimateRequest(history, MODEL);

  it('D1 moves by half of the difference for five samples, then by a fifth', () => {
    const estimator = createTokenEstimator();
    const factors: number[] = [];
    for (let sample = 0; sample < 7; sample += 1) {
      estimator.observe(history, MODEL, base * 2);
      factors.push(estimator.factorOf(MODEL));
    }

    let expected = 1;
    factors.forEach((factor, index) => {
      expected += (index < 5 ? 0.5 : 0.2) * (2 - expected);
      expect(factor).toBeCloseTo(expected, 2);
    });
    expect(estimator.estimateRequest(history, MODEL) / base).toBeCloseTo(expected, 2);
  });

  it('D1 stays between 0.5 and 4', () => {
    const estimator = createTokenEstimator();
    for (let sample = 0; sample < 50; sample += 1) estimator.observe(history, MODEL, base * 9);
    for (let sample = 0; sample < 50; sample += 1) estimator.observe(history, OTHER, base * 0.2);

    expect(estimator.factorOf(MODEL)).toBeCloseTo(4, 3);
    expect(estimator.estimateRequest(history, MODEL)).toBeLessThanOrEqual(base * 4 + 1);
    expect(estimator.factorOf(OTHER)).toBeCloseTo(0.5, 3);
    expect(estimator.estimateRequest(history, OTHER)).toBeGreaterThanOrEqual(base * 0.5 - 1);
  });

  it('D1 is kept by provider and model', () => {
    const estimator = createTokenEstimator();
    estimator.observe(history, MODEL, base * 2);

    expect(estimator.factorOf(MODEL)).toBeGreaterThan(1.4);
    expect(estimator.factorOf(OTHER)).toBe(1);
    expect(estimator.factorOf({ provider: 'other', modelId: MODEL.modelId })).toBe(1);
    expect(estimator.factorOf({ provider: '__proto__', modelId: 'constructor' })).toBe(1);
    estimator.observe(history, { provider: '__proto__', modelId: 'constructor' }, base * 2);
    expect(estimator.factorOf({ provider: '__proto__', modelId: 'constructor' })).toBeGreaterThan(1.4);
  });

  it.each([0, -5, Number.NaN, Infinity, 3, 1e9])('D1 learns nothing of a count of %d', (tokens) => {
    const estimator = createTokenEstimator();
    estimator.observe(history, MODEL, tokens);

    expect(estimator.factorOf(MODEL)).toBe(1);
  });

  it('D1 learns nothing of a tiny request, where what the provider adds weighs most', () => {
    const estimator = createTokenEstimator();
    estimator.observe(request([said('Hi.')]), MODEL, 40);

    expect(estimator.factorOf(MODEL)).toBe(1);
  });

  it('D1 learns what Chinese costs apart from English', () => {
    const estimator = createTokenEstimator();
    const messages: Message[] = [];
    for (let step = 0; step < 40; step += 1) {
      messages.push(said((step % 2 === 0 ? WORDS : CHINESE).repeat(8)));
      const tokens = messages.reduce((sum, message, index) => sum + estimator.estimateMessage(message) * (index % 2 === 0 ? 1 : 1.5), 0);
      estimator.observe(request([...messages]), MODEL, tokens);
    }
    const ratio = (text: string): number => {
      const only = request([said(text.repeat(50))]);
      return estimator.estimateRequest(only, MODEL) / createTokenEstimator().estimateRequest(only, MODEL);
    };

    expect(Math.abs(ratio(WORDS) - 1)).toBeLessThan(0.05);
    expect(Math.abs(ratio(CHINESE) - 1.5)).toBeLessThan(0.08);
  });

  it('D1 a history that was cut down teaches what any other would', () => {
    const taught = (isSame: boolean): unknown => {
      const estimator = createTokenEstimator();
      const [old, last, next] = [said(WORDS.repeat(20)), said(CHINESE.repeat(20)), said(CHINESE.repeat(90))];
      estimator.observe(request([old, last]), MODEL, 1_000);
      // It ends where the one before ended, but does not begin with it.
      estimator.observe(request([isSame ? last : { ...last }, next]), MODEL, 2_500);
      return estimator.snapshot();
    };

    expect(taught(true)).toStrictEqual(taught(false));
  });

  it('D1 conversations that take turns teach it as one after the other would', () => {
    const [mixed, one] = [createTokenEstimator(), createTokenEstimator()];
    const [english, chinese] = [WORDS, CHINESE].map((text) => Array.from({ length: 20 }, (_, index) => said(text.repeat(4), `m${index}`)));
    const teach = (estimator: typeof one, messages: readonly Message[]): void => {
      const tokens = messages.reduce((sum, message) => sum + estimator.estimateMessage(message), 0) * (messages[0] === english![0] ? 1 : 1.5);
      estimator.observe(request(messages), MODEL, tokens);
    };
    for (let length = 1; length <= 20; length += 1) for (const messages of [english!, chinese!]) teach(mixed, messages.slice(0, length));
    for (const messages of [english!, chinese!]) for (let length = 1; length <= 20; length += 1) teach(one, messages.slice(0, length));

    for (const messages of [english!, chinese!]) {
      const [left, right] = [mixed, one].map((estimator) => estimator.estimateRequest(request(messages), MODEL));
      expect(Math.abs(left! / right! - 1)).toBeLessThan(0.1);
    }
  });
});

describe('the window', () => {
  const refused = request([said(WORDS.repeat(100))]);
  const size = createTokenEstimator().estimateRequest(refused, MODEL);

  it('CP9 is not known at first', () => {
    expect(createTokenEstimator().windowOf(model())).toBeUndefined();
  });

  it('CP9 a declared limit of the input beats the whole window', () => {
    expect(createTokenEstimator().windowOf(model({ contextWindow: 200_000 }))).toBe(200_000);
    expect(createTokenEstimator().windowOf(model({ contextWindow: 200_000, maxInputTokens: 128_000 }))).toBe(128_000);
  });

  it('D6 CP9 an observed window beats a declared one, and is less than what was refused', () => {
    const estimator = createTokenEstimator();
    estimator.observeOverflow(refused, MODEL);

    expect(estimator.windowOf(model())).toBeLessThan(size);
    expect(estimator.windowOf(model())).toBeGreaterThan(size * 0.9);
    expect(estimator.windowOf(model({ contextWindow: 200_000, maxInputTokens: 128_000 }))).toBe(estimator.windowOf(model()));
    expect(estimator.windowOf({ ...OTHER, capabilities: { contextWindow: 9_000 } })).toBe(9_000);
  });

  it('D6 a refusal at more than the declared window says nothing against it', () => {
    const estimator = createTokenEstimator();
    estimator.observeOverflow(refused, MODEL);

    expect(estimator.windowOf(model({ contextWindow: 500 }))).toBe(500);
  });

  it('D6 a larger request that goes through raises it, a smaller one does not', () => {
    const estimator = createTokenEstimator();
    estimator.observeOverflow(refused, MODEL);
    const observed = estimator.windowOf(model());
    estimator.observe(request([said(WORDS)]), MODEL, Math.round(size / 2));
    expect(estimator.windowOf(model())).toBe(observed);

    estimator.observe(refused, MODEL, size + 100);
    expect(estimator.windowOf(model())).toBe(size + 100);
  });

  it('D6 is lowered by a refusal, whatever fitted before', () => {
    const estimator = createTokenEstimator();
    estimator.observe(refused, MODEL, 90_000);
    estimator.observeOverflow(refused, MODEL);

    expect(estimator.windowOf(model({ contextWindow: 200_000 }))).toBeLessThan(size * 1.1);
  });

  it('D6 a request that went through proves a declared window too small', () => {
    const estimator = createTokenEstimator();
    estimator.observe(refused, MODEL, size);

    expect(estimator.windowOf(model({ contextWindow: 500 }))).toBe(size);
    expect(estimator.windowOf(model())).toBeUndefined();
  });

  it('D6 takes what the provider told: its window as it is, its count for the estimate', () => {
    const estimator = createTokenEstimator();
    estimator.observeOverflow(refused, MODEL, { window: 32_768, tokens: size * 2 });
    expect(estimator.windowOf(model({ contextWindow: 200_000 }))).toBe(32_768);
    expect(estimator.factorOf(MODEL)).toBeCloseTo(1.5, 2);

    estimator.observeOverflow(refused, OTHER, { tokens: size * 2 });
    expect(estimator.windowOf({ ...OTHER, capabilities: undefined })).toBe(Math.floor(size * 2 * 0.95));

    const unknown = { ...MODEL, modelId: 'nonsense' };
    estimator.observeOverflow(refused, unknown, { window: Number.NaN, tokens: -1 });
    expect(estimator.windowOf({ ...unknown, capabilities: undefined })).toBeLessThan(size);
  });
});

describe('a window that is none', () => {
  const history = request([said(WORDS.repeat(100))]);
  const size = createTokenEstimator().estimateRequest(history, MODEL);

  it.each([0, 1, 255, 255.9, -4_096, Number.NaN, Infinity, 1e300])('D6 a provider that names %d tokens has named none', (window) => {
    const [named, inferred] = [createTokenEstimator(), createTokenEstimator()];
    named.observeOverflow(history, MODEL, { window });
    inferred.observeOverflow(history, MODEL);

    expect(named.windowOf(model())).toBe(inferred.windowOf(model()));
    expect(named.windowOf(model())).toBeGreaterThan(size * 0.9);
  });

  it('D6 the least that a provider can name are 256 tokens, and a fraction of one does not count', () => {
    const estimator = createTokenEstimator();
    estimator.observeOverflow(history, MODEL, { window: 256.7 });

    expect(estimator.windowOf(model())).toBe(256);
  });

  it('D6 a request of a few tokens was not refused for its size', () => {
    const estimator = createTokenEstimator();
    estimator.observeOverflow(request([said('Hi.')]), MODEL);
    estimator.observeOverflow(history, MODEL, { tokens: 200 });
    expect(estimator.windowOf(model())).toBeUndefined();
    expect(estimator.windowOf(model({ contextWindow: 9_000 }))).toBe(9_000);

    estimator.observeOverflow(history, MODEL);
    const known = estimator.windowOf(model());
    estimator.observeOverflow(request([said('Hi.')]), MODEL);
    expect(estimator.windowOf(model())).toBe(known);
  });

  it('D6 a count that no model could have proves no window', () => {
    const estimator = createTokenEstimator();
    estimator.observe(history, MODEL, 1e12);

    expect(estimator.windowOf(model({ contextWindow: 9_000 }))).toBe(9_000);
  });
});

describe('a snapshot', () => {
  const history = request([said(WORDS.repeat(30)), said(CHINESE.repeat(10))]);
  function taught(): ReturnType<typeof createTokenEstimator> {
    const estimator = createTokenEstimator();
    for (let sample = 0; sample < 4; sample += 1) estimator.observe(history, MODEL, 1_000);
    estimator.observeOverflow(history, OTHER);
    return estimator;
  }

  it('is plain JSON and carries on where the estimator was', () => {
    const [estimator, restored] = [taught(), createTokenEstimator({ snapshot: JSON.parse(JSON.stringify(taught().snapshot())) as EstimatorSnapshot })];
    expect(restored.snapshot()).toStrictEqual(estimator.snapshot());

    for (const one of [estimator, restored]) one.observe(request([said(CHINESE.repeat(90))]), MODEL, 3_000);
    expect(restored.snapshot()).toStrictEqual(estimator.snapshot());
    expect(restored.windowOf({ ...OTHER, capabilities: undefined })).toBe(estimator.windowOf({ ...OTHER, capabilities: undefined }));
    expect(restored.estimateRequest(history, MODEL)).toBe(estimator.estimateRequest(history, MODEL));
  });

  it('of another version is as none', () => {
    const snapshot = { ...taught().snapshot(), version: 2 } as unknown as EstimatorSnapshot;

    expect(createTokenEstimator({ snapshot }).snapshot().models).toStrictEqual([]);
    expect(createTokenEstimator({ snapshot: undefined }).snapshot().models).toStrictEqual([]);
  });

  it.each<[string, unknown, RegExp]>([
    ['null', null, /not null/],
    ['a text', 'nonsense', /not a value of type string/],
    ['a number', 7, /not a value of type number/],
    ['a list', [], /not a list/],
    ['an object of something else', {}, /not an object without them/],
    ['without a version', { models: [] }, /not an object without them/],
    ['with models that are no list', { version: 1, models: {} }, /not an object without them/],
  ])('that is none, %s, is refused', (_name, snapshot, message) => {
    const create = (): unknown => createTokenEstimator({ snapshot: snapshot as EstimatorSnapshot });

    expect(create).toThrow(TypeError);
    expect(create).toThrow(message);
    expect(create).toThrow(/`snapshot` must be .* createTokenEstimator\({ snapshot: JSON\.parse\(text\) }\)/);
  });

  type Spoiled = Record<'calibration' | 'window', Record<string, unknown>>;
  const list = (entry: Spoiled, name: string): number[] => entry.calibration[name] as number[];
  it.each<[string, (entry: Spoiled) => unknown]>([
    ['a factor out of bounds', (entry) => (entry.calibration['factor'] = 77)],
    ['a factor of NaN', (entry) => (entry.calibration['factor'] = Number.NaN)],
    ['half a sample', (entry) => (entry.calibration['samples'] = 2.5)],
    ['a weight that is no number', (entry) => (list(entry, 'weights')[5] = null as unknown as number)],
    ['a weight of NaN', (entry) => (list(entry, 'weights')[0] = Number.NaN)],
    ['a huge weight', (entry) => (list(entry, 'weights')[0] = 90)],
    ['a negative weight', (entry) => (list(entry, 'weights')[0] = -1)],
    ['too few weights', (entry) => (entry.calibration['weights'] = [1])],
    ['a mix of nothing', (entry) => list(entry, 'mix').fill(0)],
    ['a mix of more than the whole', (entry) => list(entry, 'mix').fill(1)],
    ['a negative variance', (entry) => (list(entry, 'covariance')[0] = -1)],
    ['a huge variance', (entry) => (list(entry, 'covariance')[0] = 1e9)],
    ['a covariance of two minds', (entry) => (list(entry, 'covariance')[1] = 0.05)],
    ['a covariance beyond the variances', (entry) => [1, 6].forEach((at) => (list(entry, 'covariance')[at] = -0.9))],
    ['no calibration', (entry) => delete (entry as Partial<Spoiled>).calibration],
    ['a window of text', (entry) => (entry.window['limit'] = '32k')],
    ...[0, 1, 255, 1_000.5, -4_096, Number.NaN, Infinity, 1e300].map((tokens): [string, (entry: Spoiled) => unknown] => [
      `a window of ${tokens}`,
      (entry) => (entry.window = { limit: tokens }),
    ]),
    ...[0.5, -1, Number.NaN, Infinity, 1e300].map((tokens): [string, (entry: Spoiled) => unknown] => [
      `${tokens} tokens that fitted`,
      (entry) => (entry.window = { fitted: tokens }),
    ]),
    ['a window that less fits into than has fitted', (entry) => (entry.window = { limit: 1_000, fitted: 2_000 })],
  ])('leaves out an entry with %s, and keeps the others', (_name, spoil) => {
    const whole = taught().snapshot();
    const snapshot = structuredClone(whole) as unknown as { models: Spoiled[] };
    spoil(snapshot.models[0]!);
    const restored = createTokenEstimator({ snapshot: snapshot as unknown as EstimatorSnapshot });

    expect(restored.snapshot().models).toStrictEqual(whole.models.slice(1));
    expect(restored.factorOf(MODEL)).toBe(1);
    expect(restored.windowOf({ ...OTHER, capabilities: undefined })).toBeGreaterThan(0);
  });

  it('is never taken for damaged, whatever was observed', () => {
    const text = fc.tuple(fc.constantFrom(WORDS, CHINESE, '1234567 ', '({[]})+=;', ' привет', ''), fc.integer({ min: 1, max: 90 })).map(([piece, times]) => piece.repeat(times));
    const part = fc.oneof(text.map((said): UserPart => ({ type: 'text', text: said })), fc.constant<UserPart>({ type: 'media', mediaType: 'image/png', data: 'AAAA' }));
    const observed = fc.record({
      parts: fc.array(part, { maxLength: 3 }),
      isNew: fc.boolean(),
      factor: fc.double({ min: 0.05, max: 20, noNaN: true }),
      isRefused: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(observed, { maxLength: 60 }), (observations) => {
        const estimator = createTokenEstimator();
        let messages: Message[] = [];
        for (const { parts, isNew, factor, isRefused } of observations) {
          messages = [...(isNew ? [] : messages), userMessage(parts, { id: 'm' })];
          const tokens = estimator.estimateMessages(messages) * factor;
          if (isRefused) estimator.observeOverflow(request(messages), MODEL, { tokens });
          else estimator.observe(request(messages), MODEL, tokens);
          expect(createTokenEstimator({ snapshot: JSON.parse(JSON.stringify(estimator.snapshot())) as EstimatorSnapshot }).snapshot()).toStrictEqual(estimator.snapshot());
        }
      }),
      { numRuns: 60 },
    );
  });
});

describe('bad options', () => {
  it.each<[object, RegExp]>([
    [{ mediaTokens: -1 }, /`mediaTokens` must be a number of at least 0, not -1.*createTokenEstimator\(/],
    [{ mediaTokens: '1500' }, /`mediaTokens`.*a value of type string/],
    [{ media: 1 }, /no option `media`; it takes mediaTokens, snapshot/],
  ])('%j are refused', (options, message) => {
    expect(() => createTokenEstimator(options)).toThrow(message);
    expect(() => createTokenEstimator(options)).toThrow(TypeError);
  });
});
