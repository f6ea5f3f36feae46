/**
 * Next task: one hop through the event loop. Everything that promises had put in line is done after it.
 *
 * Through a message channel, since timers cost a millisecond each, and more in browsers. A port that listens keeps a
 * process alive, so it listens only while somebody waits.
 */
let channel: MessageChannel | undefined;
const waiting: (() => void)[] = [];

/** Resolves in the next task of the event loop. */
export function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    channel ??= new MessageChannel();
    if (waiting.length === 0) channel.port1.onmessage = onMessage;
    waiting.push(resolve);
    channel.port2.postMessage(undefined);
  });
}

function onMessage(): void {
  const resolve = waiting.shift();
  if (waiting.length === 0 && channel !== undefined) channel.port1.onmessage = null;
  resolve?.();
}
