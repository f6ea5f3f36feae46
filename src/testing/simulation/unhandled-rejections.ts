/** Unhandled rejections: those that the platform tells of, where it does (law 4: there are none, ever). */

interface Platform {
  readonly on: (name: 'unhandledRejection', listener: (reason: unknown) => void) => void;
  readonly off: (name: 'unhandledRejection', listener: (reason: unknown) => void) => void;
}

/** Collects rejections that nobody handles, from now on. */
export function watchRejections(): { readonly reasons: readonly unknown[]; readonly stop: () => void } {
  const reasons: unknown[] = [];
  const listener = (reason: unknown): void => {
    reasons.push(reason);
  };
  const { process: platform }: { readonly process?: Partial<Platform> } = globalThis as object;
  platform?.on?.('unhandledRejection', listener);
  return { reasons, stop: () => platform?.off?.('unhandledRejection', listener) };
}
