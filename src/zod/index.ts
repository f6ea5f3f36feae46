/**
 * Tools whose input is a zod schema: zod 4, and `zod/v4` of zod 3.25. Needs the package `zod`.
 *
 * @module
 */
import { type $ZodType, toJSONSchema } from 'zod/v4/core';
import { isRecord, type JsonSchema } from '../core/json.ts';
import { defineTool as defineCoreTool, type StandardIssue, type StandardSchema, type Tool, type ToolOptions } from '../core/tool.ts';

/** What {@link defineTool} takes. */
export interface ZodToolOptions<Output> extends Omit<ToolOptions<Output>, 'input'> {
  /**
   * A zod schema of an object. `z.object` lets unknown properties through and drops them; `z.strictObject` says in the
   * JSON Schema that there are none, and refuses them.
   */
  readonly input: StandardSchema<Output>;
}

/**
 * Defines a tool and infers its input type from a zod schema: `execute` gets the schema's output, defaults filled in and
 * transforms applied.
 *
 * Differs from the `defineTool` of `turnloop`, which takes zod 4.2 and newer too, in what it can do with a schema:
 * - `zod/v4` of zod 3.25, which gives no JSON Schema of its own, works
 * - types without a JSON Schema (dates, transforms, custom checks) are allowed: the model is told nothing about them
 * - a failed union is explained by what each of its options misses, instead of by "Invalid input"
 *
 * The JSON Schema shown to the model is of what goes in (`io: 'input'`, draft 2020-12), made once, here.
 *
 * @throws TypeError for what is not a schema, such as a JSON Schema; and without an `inputSchema`, for a schema of the v3
 * API, or one that is not of an object.
 *
 * @example
 * ```ts
 * const weather = defineTool({
 *   name: 'weather',
 *   description: 'Current weather of a city.',
 *   input: z.object({ city: z.string(), units: z.enum(['c', 'f']).default('c') }),
 *   readOnly: true,
 *   execute: async ({ city, units }) => `18 °${units} in ${city}`,
 * });
 * ```
 */
export function defineTool<Output>(options: ZodToolOptions<Output>): Tool<Output> {
  assertSchema(options);
  const { input, inputSchema = inputSchemaOf(input, options.name) } = options;
  return defineCoreTool({ ...options, inputSchema, input: withUnionIssues(input) });
}

/**
 * The JSON Schema of a zod schema, for a `responseSchema`: what a model has to write so that the schema can parse it.
 *
 * Of what goes in (`io: 'input'`), draft 2020-12. Types without a JSON Schema (dates, transforms, custom checks) say
 * nothing about themselves. The answer comes as text, and nothing has checked it: `schema.parse(JSON.parse(result.text))`.
 *
 * @throws TypeError for what is not a schema of zod 4.
 *
 * @example
 * ```ts
 * const Answer = z.strictObject({ city: z.string(), degrees: z.number() });
 * const result = await runTurn({ …, request: { responseSchema: jsonSchemaOf(Answer) } });
 * ```
 */
export function jsonSchemaOf(schema: StandardSchema): JsonSchema {
  const given: unknown = schema;
  const isSchema = (isRecord(given) || typeof given === 'function') && '~standard' in given;
  if (!isSchema || !isZod4(schema)) {
    throw new TypeError("jsonSchemaOf takes a schema of zod 4 (of 'zod/v4' in zod 3.25): jsonSchemaOf(z.strictObject({ city: z.string() })).");
  }
  return plainSchema(schema);
}

function plainSchema(schema: $ZodType): JsonSchema {
  const { $schema: _dialect, ...json } = toJSONSchema(schema, { io: 'input', target: 'draft-2020-12', unrepresentable: 'any' });
  // zod types it by keyword; it is plain JSON.
  return json as JsonSchema;
}

/** Callers without types come here too. */
function assertSchema(options: unknown): void {
  if (!isRecord(options)) throw new TypeError(`defineTool of turnloop/zod needs the tool: ${CORRECT_CALL}.`);
  const { name, input } = options;
  if ((isRecord(input) || typeof input === 'function') && '~standard' in input) return;
  const tool = typeof name === 'string' ? `tool "${name}"` : 'the tool';
  throw new TypeError(`The \`input\` of ${tool} ${inputProblem(input)}. For example: ${CORRECT_CALL}.`);
}

const CORRECT_CALL =
  "defineTool({ name: 'weather', description: 'Current weather of a city.', input: z.object({ city: z.string() }), execute: async ({ city }) => `18 °C in ${city}` })";

function inputProblem(input: unknown): string {
  if (input === undefined) return 'is missing: it is the zod schema of the arguments';
  if (!isRecord(input)) return `is not a zod schema, but a value of type ${typeof input}`;
  const values = Object.values(input);
  if (values.length > 0 && values.every((value) => isRecord(value) && '~standard' in value)) {
    return 'is the fields of a zod schema: put z.object( … ) around them';
  }
  return "is not a zod schema. A JSON Schema goes to the defineTool of 'turnloop'";
}

function inputSchemaOf(schema: StandardSchema, name: string): JsonSchema {
  if (!isZod4(schema)) {
    throw new TypeError(
      `The schema of tool "${name}" is not of zod 4${schema['~standard'].vendor === 'zod' ? ', but of the v3 API of zod' : ''}. ` +
        "Make it with zod 4 (import { z } from 'zod', in zod 3.25 from 'zod/v4'), or pass its JSON Schema beside it: " +
        `defineTool({ name: "${name}", input: schema, inputSchema: { type: 'object', properties: { … } }, … }).`,
    );
  }
  const json = plainSchema(schema);
  if (json['type'] !== 'object' && OBJECT_KEYWORDS.every((keyword) => !(keyword in json))) {
    throw new TypeError(
      `The schema of tool "${name}" is not of an object: its JSON Schema is ${JSON.stringify(json)}, which tells a model nothing ` +
        'about the arguments. Use z.object({ … }), or pass `inputSchema` beside it.',
    );
  }
  return json;
}

/** Keywords by which a schema without `type: 'object'` may still be of objects. */
const OBJECT_KEYWORDS = ['anyOf', 'oneOf', 'allOf', '$ref'];

function isZod4(schema: StandardSchema): schema is StandardSchema & $ZodType {
  return '_zod' in schema;
}

/** The schema, with each failed union explained by its options. */
function withUnionIssues<Output>(schema: StandardSchema<Output>): StandardSchema<Output> {
  const standard = schema['~standard'];
  return {
    '~standard': {
      version: 1,
      vendor: standard.vendor,
      validate: async (value) => {
        const result = await standard.validate(value);
        return result.issues === undefined ? result : { issues: result.issues.map(explainUnion) };
      },
    },
  };
}

/** How zod reports a failed union: what each option found wrong. Other issues lack `errors`. */
interface UnionIssue extends StandardIssue {
  readonly errors?: readonly (readonly StandardIssue[])[];
}

function explainUnion(issue: UnionIssue): StandardIssue {
  const options = issue.errors?.filter((option) => option.length > 0) ?? [];
  if (options.length === 0) return issue;
  const texts = options.map((option) => option.map((inner) => issueText(explainUnion(inner))).join(' and '));
  return { ...issue, message: `${issue.message}: either ${texts.join(', or ')}` };
}

function issueText({ path = [], message }: StandardIssue): string {
  const place = path.map((step) => String(typeof step === 'object' ? step.key : step)).join('.');
  return place === '' ? message : `at ${place}: ${message}`;
}
