import { maxTimeout } from "./signals.js";

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
  delay(end) {
    const { error, lived } = end;
    const wasBrief = isBrief(end);
    if (lived >= healthy) this.#doublings = 0;
    if (!error && !wasBrief) return Math.random() * min;
    const bound = Math.min(min * 2 ** this.#doublings++, max);
    return Math.min(Math.random() * bound + (error?.retryAfter ?? 0) + (wasBrief ? 100 : 0), maxTimeout);
  }
}

/** Whether a stream ended soon and without an event. */
export const isBrief = ({ opened, received, lived }) => opened && received === 0 && lived < brief;
