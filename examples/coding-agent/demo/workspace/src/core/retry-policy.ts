export const BASE_DELAY = 250;

export function retryDelay(attempt: number): number {
  return Math.min(BASE_DELAY * 2 ** attempt, 8000);
}
