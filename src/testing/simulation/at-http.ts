/** HTTP: requests of adapters are refused, answered with 429 or 500, cut off in their body, and slow. */
import type { SimulatedProcess, Passage } from './simulated-process.ts';

/** An HTTP client of one process. */
export function simulatedFetch(process: SimulatedProcess, fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  return (input, init) => {
    const signal = init?.signal ?? undefined;
    return process.pass('http', signal, async (passage) => {
      process.world.tell('http', `request to ${new URL(input instanceof Request ? input.url : input).pathname}`);
      if (passage.fault === 'stall') return process.stall(signal);
      if (passage.fault === 'error') return failed(passage.dice);
      const response = await fetch(input, init);
      return new Response(response.body === null ? null : body(process, response.body, passage), response);
    });
  };
}

/** One of the ways in which a request fails before there is an answer. */
function failed(dice: number): Response {
  if (dice < 0.34) throw new TypeError('fetch failed', { cause: new Error('simulated: connection refused') });
  const [status, text] = dice < 0.67 ? [429, 'Too many requests.'] : [500, 'Internal error.'];
  return new Response(JSON.stringify({ error: { message: `simulated: ${text}` } }), { status, headers: { 'content-type': 'application/json' } });
}

/** The body, in pieces that come when the schedule says so; broken off if that is what goes wrong. */
function body(process: SimulatedProcess, stream: ReadableStream<Uint8Array>, { fault, dice }: Passage): ReadableStream<Uint8Array> {
  const reader = stream.getReader();
  let pieces = 0;
  return new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      const { done, value } = await process.alive(reader.read());
      pieces += 1;
      if (fault === 'cut' && pieces > dice * 8) {
        controller.error(new TypeError('terminated', { cause: new Error('simulated: the connection broke') }));
        await reader.cancel().catch(() => undefined);
      } else if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
}
