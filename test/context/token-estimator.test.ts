/** The token estimator: what is counted, what is learned, and how often a text is looked at. */
import { assistantMessage, type LLMCapabilities, type Message, type MessagePart, toolMessage, userMessage } from 'turnloop';
import { createTokenEstimator, type EstimatedRequest, type EstimatorSnapshot } from 'turnloop/context';
import { describe, expect, it } from 'vitest';

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

  it('D1 gives the same figure whatever was estimated before', () => {
    const histories = [3, 1, 4, 1, 5, 9, 2, 6].map((length, at) => Array.from({ length }, (_, index) => said(`${WORDS} ${index % 3} ${at}`)));
    const first = histories[0]!;
    const all = [...histories, [...first, ...histories[2]!], first.slice(0, 2), first, []];
    const shared = createTokenEstimator();

    for (const messages of [...all, ...all]) {
      expect(shared.estimateRequest(request(messages), MODEL)).toBe(createTokenEstimator().estimateRequest(request(messages), MODEL));
    }
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

  it.each<[string, unknown]>([
    ['nothing', null],
    ['another version', { ...taught().snapshot(), version: 2 }],
    ['a text', 'snapshot'],
    ['models that are no list', { version: 1, models: {} }],
  ])('of %s is as none', (_name, snapshot) => {
    expect(createTokenEstimator({ snapshot: snapshot as EstimatorSnapshot }).snapshot().models).toStrictEqual([]);
  });

  it.each<[string, (entry: Record<string, Record<string, unknown>>) => void]>([
    ['a factor out of bounds', (entry) => (entry['calibration']!['factor'] = 77)],
    ['a weight that is no number', (entry) => (entry['calibration']!['weights'] = [1, 1, 1, 1, 1, null])],
    ['too few weights', (entry) => (entry['calibration']!['weights'] = [1])],
    ['a negative variance', (entry) => ((entry['calibration']!['covariance'] as number[])[0] = -1)],
    ['a window of text', (entry) => (entry['window']!['limit'] = '32k')],
    ['no calibration', (entry) => delete entry['calibration']],
  ])('leaves out an entry with %s, and keeps the others', (_name, spoil) => {
    const snapshot = JSON.parse(JSON.stringify(taught().snapshot())) as { models: Record<string, Record<string, unknown>>[] };
    spoil(snapshot.models[0]!);
    const restored = createTokenEstimator({ snapshot: snapshot as unknown as EstimatorSnapshot });

    expect(restored.factorOf(MODEL)).toBe(1);
    expect(restored.windowOf({ ...OTHER, capabilities: undefined })).toBeGreaterThan(0);
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
