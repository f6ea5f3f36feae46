/** Fake hooks and recoveries: do what a scenario says, as a function of the call and the step, never of how often. */
import {
  type AuthorizeDecision,
  type Hook,
  type HookCall,
  type HookContext,
  type LLMRequest,
  type Message,
  type PrepareDecision,
  type Recovery,
  type RecordedToolResult,
  type ToolResult,
  toUsage,
  userMessage,
} from 'turnloop';
import type { CallPick, HookSpec, RecoverySpec } from './scenario.ts';
import type { World } from './world.ts';

/** Makes the hooks of a scenario. */
export function fakeHooks(specs: readonly HookSpec[], world: World): readonly Hook[] {
  return specs.map((spec) => ({
    name: spec.name,
    ...(spec.before && { beforeStep: before(spec.before, world) }),
    ...(spec.prepare && { prepareToolCall: prepare(spec.prepare, world) }),
    ...(spec.authorize && { authorizeToolCall: authorize(spec.authorize, world) }),
    ...(spec.finalize && { finalizeToolResult: finalize(spec.finalize, world) }),
    ...(spec.progress && {
      finalizeProgress: () => {
        if (spec.progress === 'throws') throw new Error('progress hook failed');
        return spec.progress === 'drop' ? null : { kind: 'status' as const, text: 'rewritten' };
      },
    }),
    ...(spec.after && { afterStep: after(spec.after, world) }),
    ...(spec.goOn && { shouldContinueAfterStop: goOn(spec.goOn, world) }),
  }));
}

function isPicked(pick: CallPick, call: HookCall): boolean {
  return pick === 'all' || call.inputText.length % 3 === pick;
}

function before({ step, pace, act }: NonNullable<HookSpec['before']>, world: World): NonNullable<Hook['beforeStep']> {
  return (context) => {
    if (context.step !== step) return undefined;
    return world.take(pace, context.signal, async () => {
      switch (act) {
        case 'block':
          return { block: { reason: 'blocked by a hook' } };
        case 'throws':
          throw new Error('beforeStep failed');
        case 'settings':
          return { maxOutputTokens: 100 };
        case 'usage':
          await spend(context, world);
          return undefined;
        case 'compact':
          await compact(context);
          return undefined;
      }
    });
  };
}

async function spend(context: HookContext, world: World): Promise<void> {
  const usage = toUsage({ inputTokens: 7, outputTokens: 1 });
  world.told.push({ usage, at: world.runtime.now(), certain: true });
  await context.record({ type: 'usage', modelId: 'small', purpose: 'compaction', usage });
}

/** Replaces all but the first and the last message, wherever that cuts: a policy need not know better. */
async function compact(context: HookContext): Promise<void> {
  const messages = await context.messages();
  const [from, to] = [messages[1], messages.at(-2)];
  if (messages.length < 4 || from === undefined || to === undefined) return;
  const id = context.runtime.createId('message');
  const summary = userMessage('What was said before.', { id, origin: 'summary' });
  await context.record({
    type: 'compaction',
    layer: 'fake',
    edits: [{ from: from.id, to: to.id, messages: [summary] }],
    tokensBefore: 100,
    tokensAfter: 10,
  });
}

function prepare({ pick, pace, act }: NonNullable<HookSpec['prepare']>, world: World): NonNullable<Hook['prepareToolCall']> {
  const decide = (call: HookCall): PrepareDecision | undefined => {
    switch (act) {
      case 'rewrite':
        return { action: 'rewrite', input: { n: 1, touch: [['w', 'file', '/rewritten']] } };
      case 'rewrite_bad':
        return { action: 'rewrite', input: 'not an object' };
      case 'block':
        return { action: 'block', reason: 'blocked' };
      case 'answer':
        return { action: 'answer', result: { content: 'answered', display: 'shown' } };
      case 'answer_garbage':
        return { action: 'answer', result: 7 as unknown as string };
      case 'same_as': {
        const first = call.siblings[0];
        return first === undefined || first.toolCallId === call.toolCallId ? undefined : { action: 'same_as', toolCallId: first.toolCallId };
      }
      case 'same_as_bad':
        return { action: 'same_as', toolCallId: call.siblings.at(-1)?.toolCallId ?? 'none' };
      case 'throws':
        throw new Error('prepareToolCall failed');
    }
  };
  return (context, call) => (isPicked(pick, call) ? world.take(pace, context.signal, () => decide(call)) : undefined);
}

function authorize(spec: NonNullable<HookSpec['authorize']>, world: World): NonNullable<Hook['authorizeToolCall']> {
  const { pick, pace, act, touch } = spec;
  const decide = (): AuthorizeDecision => {
    switch (act) {
      case 'allow':
        return { action: 'allow' };
      case 'deny':
        return { action: 'deny' };
      case 'edit':
        return { action: 'edit', input: { n: 2, touch: touch.map((one) => [...one]) } };
      case 'edit_bad':
        return { action: 'edit', input: { n: 'no number' } };
      case 'answer':
        return { action: 'answer', result: 'answered by authorize' };
      case 'suspend':
        return { action: 'suspend', reason: 'ask a person' };
      case 'throws':
        throw new Error('authorizeToolCall failed');
      case 'garbage':
        return { action: 'perhaps' } as unknown as AuthorizeDecision;
    }
  };
  return (context, call) => (isPicked(pick, call) ? world.take(pace, context.signal, decide) : undefined);
}

function finalize(spec: NonNullable<HookSpec['finalize']>, world: World): NonNullable<Hook['finalizeToolResult']> {
  const { pick, pace, act } = spec;
  const look = (result: RecordedToolResult): ToolResult | undefined => {
    switch (act) {
      case 'look':
        return undefined;
      case 'replace':
        return { content: 'replaced', display: 'was replaced', ...(result.isError === true && { isError: true }) };
      case 'stop':
        return { content: 'stopped by a hook', stopTurn: true };
      case 'throws':
        throw new Error('finalizeToolResult failed');
      case 'garbage':
        return { nothing: true } as unknown as ToolResult;
    }
  };
  return (context, call, result) => {
    world.finalized.push(call.toolCallId);
    return isPicked(pick, call) ? world.take(pace, context.signal, () => look(result)) : undefined;
  };
}

function after({ step, pace, act }: NonNullable<HookSpec['after']>, world: World): NonNullable<Hook['afterStep']> {
  return (context) => {
    if (context.step !== step) return undefined;
    return world.take(pace, context.signal, async () => {
      if (act === 'throws') throw new Error('afterStep failed');
      if (act === 'stop') return { reason: 'enough' };
      await spend(context, world);
      return undefined;
    });
  };
}

function goOn({ times, pace, act }: NonNullable<HookSpec['goOn']>, world: World): NonNullable<Hook['shouldContinueAfterStop']> {
  return (context, stop) => {
    if (stop.continuations >= times) return undefined;
    return world.take(pace, context.signal, () => {
      if (act === 'throws') throw new Error('shouldContinueAfterStop failed');
      return act === 'true' ? true : userMessage('Go on.', { origin: 'reminder' });
    });
  };
}

/** Makes the recoveries of a scenario. */
export function fakeRecoveries(specs: readonly RecoverySpec[], world: World): readonly Recovery[] {
  return specs.map((spec) => {
    // An equal message in gives the same message out: what law 11 asks of a recovery.
    const changed = new WeakMap<Message, Message>();
    return {
      name: spec.name,
      kinds: spec.kinds,
      apply: (request, context) => world.take(spec.pace, context.signal, () => recover(spec, request, changed)),
    };
  });
}

function recover(spec: RecoverySpec, request: LLMRequest, changed: WeakMap<Message, Message>): LLMRequest | undefined {
  if (spec.act === 'throws') throw new Error('recovery failed');
  if (spec.act === 'nothing') return undefined;
  const change = (message: Message): Message => {
    const known = changed.get(message) ?? (spec.act === 'maps' ? { ...message } : withoutMedia(message));
    changed.set(message, known);
    return known;
  };
  return { ...request, messages: request.messages.map(change) };
}

function withoutMedia(message: Message): Message {
  if (message.role !== 'tool') return message;
  return { ...message, content: message.content.map((part) => (part.type === 'media' ? { type: 'text', text: '(media left out)' } : part)) };
}
