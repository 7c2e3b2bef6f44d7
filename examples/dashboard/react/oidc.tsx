// A live collection with the tokens of an OpenID Connect provider. The page of this example does
// not use it.
import { collection, objects, WatchError, type KubernetesObject } from "listwatch";
import { UserManager } from "oidc-client-ts";
import { useState, useSyncExternalStore } from "react";

interface Flag extends KubernetesObject {
  spec: { enabled: boolean };
}

const url = "https://flags.example.com/flags";
const users = new UserManager({
  authority: "https://login.example.com", client_id: "flags", redirect_uri: location.origin + "/callback",
});

// The client calls this before each request, and with refresh after a 401. If the token server cannot
// be reached, signinSilent throws, and the client retries.
async function headers({ refresh }: { refresh: boolean }) {
  const user = refresh ? await users.signinSilent() : await users.getUser();
  if (!user) throw new WatchError("Unauthorized", "please sign in"); // ends the watch
  return { Authorization: `Bearer ${user.access_token}` };
}

const flags = collection<Flag>(url, { headers });
const writer = objects<Flag>(url, { headers });

export function Flags() {
  const snapshot = useSyncExternalStore(flags.subscribe, flags.getSnapshot);
  const [problem, setProblem] = useState("");
  const toggle = (key: string) =>
    writer.update(key, (flag) => { flag.spec.enabled = !flag.spec.enabled; })
      .then(() => setProblem(""), (error: Error) => setProblem(error.message));
  if (snapshot.status === "failed") return <button onClick={() => users.signinRedirect()}>Sign in</button>;
  return (
    <>
      <ul aria-busy={snapshot.status !== "live"}>
        {[...snapshot].map(([key, flag]) => (
          <li key={key}>
            <label><input type="checkbox" checked={flag.spec.enabled} onChange={() => toggle(key)} />{key}</label>
          </li>
        ))}
      </ul>
      <p role="alert">{problem}</p>
    </>
  );
}
