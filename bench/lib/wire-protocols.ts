/** The protocols of the wire cases. */
import { wireAnthropic } from './wire-anthropic.ts';
import { wireChat } from './wire-chat.ts';
import type { WireProtocol } from './wire-reply.ts';
import { wireResponses } from './wire-responses.ts';

export const WIRE_PROTOCOLS: readonly WireProtocol[] = [wireChat, wireResponses, wireAnthropic];
