//go:build unix

package javascript

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/listwatch/listwatch/internal/browsertest"
	"github.com/listwatch/listwatch/internal/testbuild"
	"github.com/listwatch/listwatch/interop/internal/pgtest"
)

// ordersProbe posts what each frame shows, if it differs from the frame before: the status, the
// orders, with an asterisk if an edit is pending, and the problem. It sends each new order once.
const ordersProbe = `<script type="module">
  let shown = "", posts = Promise.resolve();
  const sent = new Set();
  const row = (li) => li.querySelector("label").innerText + (li.className ? "*" : "");
  const look = () => {
    const [status, problem] = ["#status", "[role=alert]"].map((name) => document.querySelector(name)?.innerText);
    const rows = [...document.querySelectorAll("li")];
    const text = [status, rows.map(row).join(" "), problem].join("|");
    if (text !== shown) posts = posts.then(() => fetch("/shown", { method: "POST", body: text })); // in order
    shown = text;
    for (const li of rows) {
      const id = row(li).split(" ")[0];
      if (status === "live" && row(li).includes("new") && !sent.has(id)) {
        sent.add(id);
        li.querySelector("button").click();
      }
    }
    requestAnimationFrame(look);
  };
  look();
</script>`

// TestReactPageEditsRows shows rows of PostgreSQL with TanStack DB. An edit is shown before it is
// written, and is taken back if a constraint refuses it.
func TestReactPageEditsRows(t *testing.T) {
	browsertest.Path(t)
	buildReactPage(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	url := pgtest.Start(t).URL()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	exec := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(`CREATE TABLE orders (id int PRIMARY KEY, tenant text, status text, amount numeric,
		CONSTRAINT paid CHECK (status <> 'sent' OR amount > 0))`)
	exec("INSERT INTO orders VALUES (1, 'acme', 'new', 5), (2, 'globex', 'new', 6)")
	orders := testbuild.Serve(t, "../../examples/orders", "-addr", "127.0.0.1:0", "-database", url, "-react",
		reactDir+"/dist")
	server, shown := browsertest.Probe(t, orders, "/react/orders.html", ordersProbe)
	var frames []string
	await := func(step, want string) {
		t.Helper()
		for !slices.Contains(frames, want) {
			select {
			case text := <-shown:
				frames = append(frames, strings.TrimSpace(string(text)))
			case <-ctx.Done():
				t.Fatalf("%s: the page has shown %q, want %q", step, frames, want)
			}
		}
	}
	browsertest.Open(ctx, t, server.URL+"/react/orders.html")
	await("pending", "live|1 sent 5*|")
	await("written", "live|1 sent 5|")
	exec("INSERT INTO orders VALUES (3, 'acme', 'new', 0)")
	await("pending", "live|1 sent 5 3 sent 0*|")
	await("refused", "live|1 sent 5 3 new 0|the server responded 422: "+
		`Row "3" is invalid: spec.status, spec.amount: Invalid value: violates constraint "paid"`)
}
