/** The agent under test: a help desk that looks orders up by itself, and pays money back once a person has agreed. */
import { defineTool, type LLM, type Runtime } from 'turnloop';
import { type Agent, createAgent } from 'turnloop/agent';
import type { SessionStore } from 'turnloop/sessions';

/** The shop's own systems, as the tools need them. */
export interface Shop {
  /** What became of an order. */
  readonly find: (order: string, signal: AbortSignal) => Promise<string>;
  /** Pays an order back. */
  readonly refund: (order: string) => Promise<void>;
}

/** What the agent is made of. Tests give all four, the application leaves clock and store to their defaults. */
export interface DeskOptions {
  readonly llm: LLM;
  readonly shop: Shop;
  readonly runtime?: Runtime | undefined;
  readonly sessions?: SessionStore | undefined;
}

const ORDER = { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] } as const;

/** Makes the agent. */
export function createDesk({ llm, shop, runtime, sessions }: DeskOptions): Agent {
  const findOrder = defineTool({
    name: 'find_order',
    description: 'Tells what became of an order.',
    input: ORDER,
    readOnly: true,
    execute: ({ order }, { signal }) => shop.find(String(order), signal),
  });
  const refund = defineTool({
    name: 'refund',
    description: 'Pays an order back.',
    input: ORDER,
    describe: ({ order }) => `Pays order ${String(order)} back.`,
    execute: async ({ order }) => {
      await shop.refund(String(order));
      return 'Refunded.';
    },
  });
  // Without rules a person is asked about every tool that does more than read.
  return createAgent({ llm, tools: [findOrder, refund], systemPrompt: 'You are the help desk of a shop.', approval: {}, runtime, sessions });
}
