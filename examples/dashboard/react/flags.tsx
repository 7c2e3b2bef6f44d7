import { listwatchCollectionOptions } from "@listwatch/tanstack-db";
import { createCollection, useLiveQuery, type Transaction } from "@tanstack/react-db";
import type { KubernetesObject } from "listwatch";
import { useState, useSyncExternalStore } from "react";

interface Flag extends KubernetesObject {
  enabled: boolean;
}

const flags = createCollection({ ...listwatchCollectionOptions<Flag>("/flags"), id: "flags" });

const toggle = (flag: Flag) => { flag.enabled = !flag.enabled; };

export function Flags() {
  const { data } = useLiveQuery((q) => q.from({ flag: flags }).orderBy(({ flag }) => flag.metadata.name));
  const { status } = useSyncExternalStore(flags.utils.subscribeStatus, flags.utils.getStatus);
  const [problem, setProblem] = useState("");
  const write = async (change: () => Transaction<any>) => {
    setProblem("");
    try {
      await change().when("settled");
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  const add = (form: FormData) =>
    write(() => flags.insert({ metadata: { name: String(form.get("name")) }, enabled: false }));
  return (
    <>
      <p id="status" data-status={status}>{status}</p>
      <ul>
        {data.map(({ metadata: { name }, enabled, $synced }) => (
          <li key={name} className={$synced ? "" : "pending"}>
            <label>
              <input type="checkbox" checked={enabled} onChange={() => write(() => flags.update(name, toggle))} /> {name}
            </label>
            <button onClick={() => write(() => flags.delete(name))}>delete</button>
          </li>
        ))}
      </ul>
      <form action={add}><input name="name" placeholder="new flag" required /> <button>add</button></form>
      <p role="alert">{problem}</p>
    </>
  );
}
