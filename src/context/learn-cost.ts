/**
 * Learn cost: takes in what a request did cost, and that its conversation got a reply.
 *
 * - Learned for the model that answered, be it behind a fallback: the next request is measured for that one.
 * - A count of less than the request had is none: the server threw a part of it away.
 */
import type { FinishedStep, HookContext } from '../core/hooks.ts';
import { noteAnswer } from './answering-model.ts';
import { windowTokens } from './context-window.ts';
import type { PolicySettings } from './policy-settings.ts';
import type { Conversations } from './request-size.ts';

/** Takes in what a request did cost. */
export async function learnCost(
  settings: PolicySettings,
  context: HookContext,
  { step, conversations }: { readonly step: FinishedStep; readonly conversations: Conversations },
): Promise<void> {
  const { estimator } = settings;
  const messages = await context.messages();
  const conversation = conversations.of(context.signal, messages);
  conversation.lastReplyAt = context.runtime.now();
  const end = messages.findLastIndex(({ id }) => id === step.message.id);
  const reply = messages[end];
  // A reply that left nothing in the history says nothing about the request.
  if (reply === undefined) return;
  conversations.answered(conversation, reply);
  const { inputTokens, cacheReadTokens, cacheWriteTokens } = step.usage;
  const tokens = inputTokens + cacheReadTokens + cacheWriteTokens;
  if (tokens === 0) return;
  const tail = messages.slice(end).filter((message) => message.role === 'user' && message.transient === true);
  const request = { systemPrompt: context.llm.systemPrompt, tools: context.tools, messages: [...messages.slice(0, end), ...tail] };
  const { llm } = context;
  const model = noteAnswer(llm, step.message.source ?? {});
  const fits = windowTokens(llm, settings) ?? Infinity;
  // Less than the window for a request that is larger: the server threw a part of it away, and counted the rest.
  if (tokens <= fits && estimator.estimateRequest(request, model) > fits) return;
  estimator.observe(request, model, tokens);
  conversation.counted = { request, model: { provider: model.provider, modelId: model.modelId }, tokens };
}
