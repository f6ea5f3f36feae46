/** Message lists: any list of messages a host may hand over, however broken. */
import fc from 'fast-check';
import {
  assistantMessage,
  type AssistantPart,
  type Message,
  toolMessage,
  type ToolResultPart,
  userMessage,
  type UserPart,
} from 'turnloop';

const text: fc.Arbitrary<UserPart> = fc.constantFrom('Hello.', 'Hm.', '', ' \n\t').map((value) => ({ type: 'text', text: value }));
const media: fc.Arbitrary<UserPart & ToolResultPart> = fc.constant({ type: 'media', mediaType: 'image/png', data: 'AAAA' });
const callId = fc.constantFrom('c1', 'c2', 'c3', 'c4', '__proto__');

const assistantPart: fc.Arbitrary<AssistantPart> = fc.oneof(
  text,
  media,
  fc.record({ type: fc.constant('thinking' as const), text: fc.constantFrom('Hm.', '') }),
  fc.record({ type: fc.constant('thinking' as const), text: fc.constantFrom('Hm.', ''), signature: fc.constant('s') }),
  fc.constant<AssistantPart>({ type: 'text', text: '', providerData: { s: 1 } }),
  fc.constant<AssistantPart>({ type: 'provider', provider: 'p', data: null }),
  callId.map((id): AssistantPart => ({ type: 'tool_call', id, name: 'read', inputText: '{}' })),
  callId.map((id): AssistantPart => ({ type: 'tool_call', id, name: 'read', inputText: '{}', providerId: 'same' })),
);

const message = fc.oneof(
  { weight: 2, arbitrary: fc.array(fc.oneof(text, media), { maxLength: 3 }).map((content) => userMessage(content)) },
  { weight: 3, arbitrary: fc.array(assistantPart, { maxLength: 4 }).map((content) => assistantMessage(content)) },
  {
    weight: 3,
    arbitrary: fc
      .tuple(callId, fc.array(fc.oneof(text, media), { maxLength: 2 }), fc.boolean())
      .map(([toolCallId, content, isError]) => toolMessage(content, { toolCallId, name: 'read', isError })),
  },
);

const anyList: fc.Arbitrary<readonly Message[]> = fc.array(message, { maxLength: 12 });

/** An exchange as it should be: a reply, and the answers to its calls in any order. */
const exchange: fc.Arbitrary<readonly Message[]> = fc
  .tuple(fc.array(assistantPart, { maxLength: 4 }), fc.array(fc.oneof(text, media), { maxLength: 2 }), fc.boolean())
  .map(([content, result, isReversed]) => {
    const answers = content.flatMap((part) => (part.type === 'tool_call' ? [toolMessage(result, { toolCallId: part.id, name: part.name })] : []));
    return [assistantMessage(content), ...(isReversed ? answers.reverse() : answers)];
  });

/** Lists that are nearly right: a message left out, or one that does not belong there. */
const nearlyRight: fc.Arbitrary<readonly Message[]> = fc
  .tuple(fc.array(exchange, { maxLength: 3 }), fc.option(fc.nat(9)), fc.option(fc.tuple(fc.nat(9), message)))
  .map(([exchanges, drop, insert]) => {
    const messages: Message[] = exchanges.flatMap((one) => [userMessage('Do it.'), ...one]);
    if (drop !== null) messages.splice(drop, 1);
    if (insert !== null) messages.splice(insert[0], 0, insert[1]);
    return messages;
  });

/** Any list of messages; ids of messages are unique, ids of calls need not be. */
export const messageLists: fc.Arbitrary<readonly Message[]> = fc
  .oneof(anyList, nearlyRight)
  .map((messages) => messages.map((one, index): Message => ({ ...one, id: `m${index}` })));
