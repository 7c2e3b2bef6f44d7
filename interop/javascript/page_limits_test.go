//go:build unix

package javascript

import (
	"context"
	"testing"
)

// stuckPage follows the collection although IndexedDB never answers, the first call of headers
// never settles, the fetch ignores its signal, a listener throws, and onState does.
const stuckPage = `<!doctype html><script type="module">
  import { collection } from "/js/listwatch.js";
  indexedDB.constructor.prototype.open = () => new EventTarget();
  let calls = 0, posts = Promise.resolve();
  const things = collection("/things?over=fetch", {
    persist: "things", transports: ["fetch"], idleTimeout: 3000,
    headers: () => (calls++ ? {} : new Promise(() => {})),
    fetch: (url, { signal, ...init }) => fetch(url, init),
    onState: () => { throw new Error("onState"); },
  });
  things.subscribe(() => { throw new Error("listener"); });
  things.subscribe((snapshot) => {
    const values = Object.fromEntries([...snapshot].map(([key, object]) => [key, object.value]));
    const body = JSON.stringify({ transport: "fetch", status: snapshot.status, values });
    posts = posts.then(() => fetch("/report", { method: "POST", body }));
  });
</script>`

// testStuckPage tests that the collection becomes live, whatever the functions of the page and its
// browser do.
func (s *pageServer) testStuckPage(ctx context.Context, t *testing.T) {
	s.put(t, "a", 1)
	s.await(ctx, t, "list", "live", map[string]int{"a": 1})
	s.put(t, "a", 2)
	s.await(ctx, t, "watch", "live", map[string]int{"a": 2})
}
