/** The longest timeout in milliseconds. setTimeout treats a longer one as 1 ms. */
export const maxTimeout = 2 ** 31 - 1;

/**
 * Calls f when the signal is aborted, or at once if it already was. It returns a function that
 * cancels the call.
 */
export function onAbort(signal, f) {
  if (signal?.aborted) f();
  signal?.addEventListener("abort", f);
  return () => signal?.removeEventListener("abort", f);
}

/** Calls f when a page is online or visible again, until the signal is aborted. Its connections may be dead then. */
export function onWake(f, signal) {
  const { document } = globalThis;
  for (const type of ["online", "pageshow"]) globalThis.addEventListener?.(type, f, { signal });
  document?.addEventListener("visibilitychange", () => document.hidden || f(), { signal });
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
