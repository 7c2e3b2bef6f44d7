/** The longest timeout in milliseconds. setTimeout treats a longer one as 1 ms. */
export const maxTimeout = 2 ** 31 - 1;

const [min, max, healthy, brief] = [800, 30_000, 120_000, 1000]; // milliseconds

/**
 * The delay between attempts. Each is random, so that clients that were disconnected together do
 * not reconnect together. Its upper bound doubles with each failure.
 */
export class Backoff {
  #doublings = 0;

  /**
   * Returns the milliseconds to wait after a stream has ended or could not be opened.
   *
   * @param {{error?: Error & {retryAfter?: number}, lived: number, received: number, opened: boolean}} end
   */
  delay({ error, lived, received, opened }) {
    const wasBrief = opened && received === 0 && lived < brief;
    if (lived >= healthy) this.#doublings = 0;
    if (!error && !wasBrief) return Math.random() * min;
    const bound = Math.min(min * 2 ** this.#doublings++, max);
    return Math.min(Math.random() * bound + (error?.retryAfter ?? 0) + (wasBrief ? 100 : 0), maxTimeout);
  }
}

/** Calls f when the signal is aborted, at once if it was before. It returns a function that ends this. */
export function onAbort(signal, f) {
  if (signal?.aborted) f();
  signal?.addEventListener("abort", f);
  return () => signal?.removeEventListener("abort", f);
}

/** Waits for a time, or until the signal is aborted. */
export async function sleep(milliseconds, signal) {
  let timer, forget;
  await new Promise((resolve) => {
    timer = setTimeout(resolve, milliseconds);
    forget = onAbort(signal, resolve);
  });
  clearTimeout(timer);
  forget();
}
