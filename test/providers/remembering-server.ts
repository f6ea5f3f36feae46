/** A Responses server without a network that remembers what it was told to, and refuses what a strict one would. */
import { checkResponsesRequest, type KnownResponse } from '../support/responses-rules.ts';
import { type Item, named, responseOf } from './openai-responses-support.ts';

/** A request as the server saw it. */
export interface HeardRequest {
  readonly body: Item;
  readonly input: readonly Item[];
  readonly previousId: unknown;
  /** Everything that the model is given: what was kept, and the input. */
  readonly conversation: readonly Item[];
  /** The rules that it breaks; empty if it was taken. */
  readonly broken: readonly string[];
}

export interface RememberingServer {
  readonly fetch: typeof globalThis.fetch;
  readonly heard: readonly HeardRequest[];
  /** By the id of the response; delete from it to let one expire. */
  readonly responses: Map<string, KnownResponse>;
}

/** What a server answers the request of a number, from 1: the items of its output, or a whole answer. */
export type Script = (number: number) => readonly Item[] | Response;

/** Makes a server. */
export function rememberingServer(script: Script): RememberingServer {
  const heard: HeardRequest[] = [];
  const responses = new Map<string, KnownResponse>();

  async function fetch(_url: unknown, init?: RequestInit): Promise<Response> {
    await Promise.resolve();
    const body = JSON.parse(init?.body as string) as Item;
    const input = body['input'] as readonly Item[];
    const previousId = body['previous_response_id'];
    const previous = typeof previousId === 'string' ? responses.get(previousId) : undefined;
    const conversation = [...(previous === undefined ? [] : [...previous.input, ...previous.output]), ...input] as readonly Item[];
    const broken = checkResponsesRequest(body, { responses });
    heard.push({ body, input, previousId, conversation, broken });
    const number = heard.length;
    if (broken.length > 0) return refusal(broken.join('; '));
    const answer = script(number);
    if (answer instanceof Response) return answer;
    const id = `resp_${number}`;
    responses.set(id, { input: conversation, output: answer, isStored: body['store'] !== false });
    const response = responseOf(answer, { id, previous_response_id: previousId ?? null, store: body['store'] });
    const items = answer.flatMap((item, at) => [
      { type: 'response.output_item.added', output_index: at, item },
      { type: 'response.output_item.done', output_index: at, item },
    ]);
    return new Response(named([{ type: 'response.created', response: { ...response, output: [], status: 'in_progress' } }, ...items, { type: 'response.completed', response }]));
  }

  return { fetch, heard, responses };
}

/** A refusal in OpenAI's words, where the adapter is to know them. */
export function refusal(rules: string): Response {
  const code = rules.includes('previous_response_not_found') ? 'previous_response_not_found' : null;
  const orphan = /an output without a call, or a second one: (\S+)/.exec(rules)?.[1];
  const history = orphan === undefined ? rules : `No tool call found for function call output with call_id ${orphan}.`;
  const message = code === null ? history : 'Previous response not found.';
  return new Response(JSON.stringify({ error: { message, type: 'invalid_request_error', param: null, code } }), { status: 400 });
}
