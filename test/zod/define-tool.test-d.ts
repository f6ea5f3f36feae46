/** Types of defineTool of `turnloop/zod`: inference without casts, and what does not compile. */
import { describe, expectTypeOf, it } from 'vitest';
import type { AnyTool, Tool } from 'turnloop';
import { defineTool } from 'turnloop/zod';
import { z } from 'zod';
import * as mini from 'zod/mini';
import { z as z3 } from 'zod/v3';

const base = { name: 'weather', description: 'Current weather of a city.' };
const schema = z.object({
  city: z.string(),
  units: z.enum(['c', 'f']).default('c'),
  days: z.number().optional(),
  at: z.string().transform((text) => new Date(text)),
});

interface Output {
  city: string;
  units: 'c' | 'f';
  days?: number | undefined;
  at: Date;
}

describe('defineTool', () => {
  it('infers the input of execute, describe and accesses as the output of the schema', () => {
    const tool = defineTool({
      ...base,
      input: schema,
      describe: (input) => {
        expectTypeOf(input).toEqualTypeOf<Output>();
        return input.city;
      },
      accesses: (input) => {
        expectTypeOf(input).toEqualTypeOf<Output>();
        return [];
      },
      execute: (input, context) => {
        expectTypeOf(input).toEqualTypeOf<Output>();
        expectTypeOf(context.signal).toEqualTypeOf<AbortSignal>();
        return 'ok';
      },
    });

    expectTypeOf(tool).toEqualTypeOf<Tool<Output>>();
  });

  it('infers from zod/mini, from the v3 API, and from unions', () => {
    const execute = (): string => 'ok';

    expectTypeOf(defineTool({ ...base, input: mini.object({ city: mini.string() }), execute })).toEqualTypeOf<Tool<{ city: string }>>();
    expectTypeOf(
      defineTool({ ...base, input: z3.object({ city: z3.string().default('Oslo') }), inputSchema: { type: 'object' }, execute }),
    ).toEqualTypeOf<Tool<{ city: string }>>();
    expectTypeOf(
      defineTool({ ...base, input: z.union([z.object({ a: z.string() }), z.object({ b: z.number() })]), execute }),
    ).toEqualTypeOf<Tool<{ a: string } | { b: number }>>();
  });

  it('fits a list of tools of any input', () => {
    const tools: readonly AnyTool[] = [
      defineTool({ ...base, input: schema, execute: ({ city }) => city }),
      defineTool({ ...base, input: z.object({ path: z.string() }), execute: async ({ path }) => [{ type: 'text', text: path }] }),
    ];

    expectTypeOf(tools).toExtend<readonly AnyTool[]>();
  });

  it('refuses wrong tools', () => {
    // @ts-expect-error The schema has no `town`.
    defineTool({ ...base, input: schema, execute: ({ town }) => String(town) });
    // @ts-expect-error A tool returns text, parts or a result, not a number.
    defineTool({ ...base, input: schema, execute: () => 42 });
    // @ts-expect-error A tool has a description.
    defineTool({ name: 'weather', input: schema, execute: () => 'ok' });
    // @ts-expect-error A shape is not a schema: z.object makes one of it.
    defineTool({ ...base, input: { city: z.string() }, execute: () => 'ok' });
  });
});
