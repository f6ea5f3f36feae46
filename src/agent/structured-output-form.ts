/**
 * Structured output, form: what an answer has to look like, and whether a value or a text does.
 *
 * - Models and providers want an object. A schema of anything else is wrapped into one with the single property `answer`.
 * - A text is read as JSON and never repaired.
 */
import { isRecord, type JsonObject, type JsonSchema, parseJson } from '../core/json.ts';
import { messageOf } from '../core/errors.ts';
import { defineTool, type StandardSchema } from '../core/tool.ts';

/** An answer, or what is wrong with it. */
export type CheckedAnswer<Output> =
  | { readonly ok: true; readonly value: Output }
  | {
      readonly ok: false;
      /** What is wrong, in words for the model. */
      readonly problem: string;
    };

/** What an answer has to look like. */
export interface AnswerForm<Output> {
  /** JSON Schema of the answer: of an object. */
  readonly schema: JsonSchema;
  /** Checks a value that is JSON already. @throws Error saying what is wrong */
  parse(value: unknown): Promise<Output>;
  /** The same without a throw. */
  check(value: unknown): Promise<CheckedAnswer<Output>>;
  /** Checks the text of a reply. */
  checkText(text: string): Promise<CheckedAnswer<Output>>;
}

/** Issues of a large schema may be many: a model mends the first ones first. */
const MAX_PROBLEM = 2_000;
const WRAPPED = 'answer';

/**
 * Makes the form of a schema.
 *
 * @param jsonSchema - For a schema that cannot give its own.
 * @throws TypeError if there is no JSON Schema, or one of no object that refers to itself as a whole.
 */
export function createAnswerForm<Output>(schema: StandardSchema<Output>, jsonSchema: JsonSchema | undefined): AnswerForm<Output> {
  // Tools know how schemas are asked.
  const validator = defineTool({ name: WRAPPED, description: '', input: schema, inputSchema: jsonSchema, execute: () => '' });
  const { inputSchema } = validator;
  const isObject = inputSchema['type'] === 'object';
  const validate = async (value: unknown): Promise<Output> => {
    if (validator.parseInput === undefined) throw new TypeError('The schema does not validate.');
    return validator.parseInput(value);
  };
  const parse = async (value: unknown): Promise<Output> => {
    if (isObject) return validate(value);
    if (!isRecord(value) || !Object.hasOwn(value, WRAPPED)) throw new Error(`"${WRAPPED}" is missing`);
    return validate(value[WRAPPED]);
  };
  const check = async (value: unknown): Promise<CheckedAnswer<Output>> => {
    try {
      return { ok: true, value: await parse(value) };
    } catch (error) {
      return { ok: false, problem: shorten(messageOf(error)) };
    }
  };
  return {
    schema: isObject ? inputSchema : wrap(inputSchema),
    parse,
    check,
    checkText: async (text) => {
      const json = parseJson(text);
      return json.ok ? check(json.value) : { ok: false, problem: shorten(`it is not JSON: ${json.message}`) };
    },
  };
}

/** The schema of an object whose only property is this one. What it defines has to stay at the root. */
function wrap(schema: JsonSchema): JsonSchema {
  const { $defs, definitions, $schema: _$schema, ...rest } = schema;
  if (refersToRoot(rest) || refersToRoot($defs) || refersToRoot(definitions)) {
    throw new TypeError('structuredOutput: the schema is none of an object and refers to itself. Put it into one, such as z.object({ answer: schema }).');
  }
  return {
    type: 'object',
    properties: { [WRAPPED]: rest },
    required: [WRAPPED],
    additionalProperties: false,
    ...($defs !== undefined && { $defs }),
    ...(definitions !== undefined && { definitions }),
  };
}

function refersToRoot(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(refersToRoot);
  if (!isRecord(value)) return false;
  return value['$ref'] === '#' || Object.values(value as JsonObject).some(refersToRoot);
}

function shorten(text: string): string {
  return text.length > MAX_PROBLEM ? `${text.slice(0, MAX_PROBLEM)}…` : text;
}
