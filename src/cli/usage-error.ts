/** Usage error: a command line that cannot be understood. The message says which part of it, and why. */
export class UsageError extends Error {
  override readonly name: string = 'UsageError';
}
