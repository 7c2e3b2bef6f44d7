import type { CollectionConfig } from "@tanstack/db";
import type { CollectionOptions, KubernetesObject, ObjectsOptions, Snapshot } from "listwatch";

export interface ListwatchOptions extends Omit<CollectionOptions, "key" | "persist">, Omit<ObjectsOptions, "signal"> {
  /**
   * The milliseconds for which a write waits until the collection has its result. The default is
   * 5,000. After that the optimistic state is dropped. The write is not undone, because the server
   * has performed it. This happens if the connection is broken, if the object is not selected, and
   * if `fields` hides what was written.
   */
  writeTimeout?: number;
}

/** The state of the connection, as in a Snapshot of listwatch. */
export interface Status extends Pick<Snapshot, "status" | "error"> {}

/** The `utils` of a collection. */
export type ListwatchUtils = {
  /** Returns the state of the connection. It is the same object until something changes. */
  readonly getStatus: () => Status;
  /** Calls the listener after each change of the status. It returns a function that unsubscribes. */
  readonly subscribeStatus: (listener: () => void) => () => void;
  /**
   * Fulfilled when the collection has everything up to a version, or after `writeTimeout`. A
   * mutation function of your own awaits it after a write.
   */
  readonly awaitVersion: (resourceVersion: string) => Promise<void>;
};

/**
 * Returns the options of a collection of TanStack DB that follows a URL. The key of a row is the name
 * of the object, or `namespace/name`. Use the result for one collection only.
 *
 *     const flags = createCollection({ ...listwatchCollectionOptions<Flag>("/flags"), id: "flags" });
 *
 * An insert is sent as POST, a deletion as DELETE. An update is sent as a merge patch of what has
 * changed, with the version of the row that was changed; if the object has another version, the
 * server refuses it, and the transaction is rolled back with a WatchError of code `Conflict`.
 */
export function listwatchCollectionOptions<T extends object = KubernetesObject>(
  url: string | URL, options?: ListwatchOptions,
): CollectionConfig<T, string, never, ListwatchUtils> & { utils: ListwatchUtils };
