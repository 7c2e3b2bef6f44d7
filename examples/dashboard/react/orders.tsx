// The orders of examples/orders, with tokens that expire.
import { listwatchCollectionOptions } from "@listwatch/tanstack-db";
import { createCollection, useLiveQuery } from "@tanstack/react-db";
import { WatchError, type KubernetesObject } from "listwatch";
import { useState, useSyncExternalStore } from "react";

interface Order extends KubernetesObject {
  spec: { id: number; status: string; amount: number };
}

let token = "";

// The client calls this before each request, and with refresh after a 401.
async function headers({ refresh }: { refresh: boolean }) {
  if (!token || refresh) {
    const response = await fetch("/login", { method: "POST", body: "ada" });
    token = await response.text();
    if (!response.ok) throw new WatchError(response.status === 403 ? "Forbidden" : "Unavailable", token);
  }
  return { Authorization: `Bearer ${token}` };
}

const orders = createCollection({ ...listwatchCollectionOptions<Order>("/rows", { headers }), id: "orders" });

export function Orders() {
  const { data } = useLiveQuery((q) => q.from({ order: orders }).orderBy(({ order }) => order.spec.id));
  const { status } = useSyncExternalStore(orders.utils.subscribeStatus, orders.utils.getStatus);
  const [problem, setProblem] = useState("");
  const send = async (key: string) => {
    setProblem("");
    try {
      await orders.update(key, (order) => { order.spec.status = "sent"; }).when("settled");
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <>
      <p id="status" data-status={status}>{status}</p>
      <ul>
        {data.map(({ metadata: { namespace, name }, spec, $synced }) => (
          <li key={name} className={$synced ? "" : "pending"}>
            <label>{name} {spec.status} {spec.amount}</label>
            <button onClick={() => send(`${namespace}/${name}`)}>send</button>
          </li>
        ))}
      </ul>
      <p role="alert">{problem}</p>
    </>
  );
}
