/** Returns the names of the rows in order. */
export const names = (collection) => collection.toArray.map((row) => row.metadata.name).sort().join(" ");

/** Records each state of a collection of TanStack DB, and the changes between them. */
export function record(collection, show = names) {
  const states = [], changes = [];
  const waiting = new Set();
  let isInitial = true;
  // Without the initial state, the subscription would drop the deletion of a row that it has not sent.
  const { unsubscribe } = collection.subscribeChanges((received) => {
    if (isInitial || !received.length) return;
    states.push(show(collection));
    changes.push(...received.map(({ type, key }) => `${type} ${key}`));
    for (const look of waiting) look();
  }, { includeInitialState: true });
  isInitial = false;
  states.push(show(collection));
  const until = (want) => new Promise((resolve) => {
    const look = () => states.at(-1) === want && (waiting.delete(look), resolve());
    waiting.add(look);
    look();
  });
  return { states, changes, until, unsubscribe };
}
