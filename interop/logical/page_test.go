//go:build unix

package logical

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/listwatch/listwatch/internal/browsertest"
	"github.com/listwatch/listwatch/internal/ports"
	"github.com/listwatch/listwatch/internal/testbuild"
	"github.com/listwatch/listwatch/interop/internal/pgtest"
	"github.com/listwatch/listwatch/interop/internal/testapi"
)

const (
	root   = "../.." // the root of the repository
	page   = root + "/docs/postgres.md"
	readme = root + "/examples/orders/README.md"
)

// blocks returns the blocks of code in a page that are in a language.
func blocks(t testing.TB, file, language string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?s)\n```"+language+"\n(.*?)\n```").FindAllStringSubmatch(string(text), -1) {
		all = append(all, m[1])
	}
	return all
}

// A shop is a database with the table of examples/orders, prepared as docs/postgres.md says.
type shop struct {
	*database
	dir string // for files of programs
}

func newShop(t testing.TB) *shop {
	t.Helper()
	for _, program := range []string{"bash", "curl", "nginx"} {
		if _, err := exec.LookPath(program); err != nil {
			testapi.SkipMissing(t, "%s is not installed", program)
		}
	}
	s := &shop{&database{TB: t, server: pgtest.Start(t)}, t.TempDir()}
	s.url = s.server.URL()
	s.connect()
	s.exec("CREATE DATABASE shop")
	s.url = strings.Replace(s.url, "/postgres?", "/shop?", 1)
	s.connect()
	s.exec(blocks(t, readme, "sql")[0], blocks(t, page, "sql")[0])
	return s
}

// command returns a command of a page that does not run yet. It connects to the PostgreSQL of the
// test.
func (s *shop) command(line string) *exec.Cmd {
	s.Helper()
	config, err := pgx.ParseConfig(s.url)
	if err != nil {
		s.Fatal(err)
	}
	cmd := exec.Command("bash", "-c", strings.ReplaceAll(line, "@localhost/", "@/"))
	cmd.Dir = root
	flags := strings.Join(testbuild.Flags(), " ")
	cmd.Env = append(os.Environ(), "PGHOST="+config.Host, "GOFLAGS="+os.Getenv("GOFLAGS")+" "+flags)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// start runs a command of a page until the end of the test, or until the returned function is
// called.
func (s *shop) start(line string) (stop func()) {
	s.Helper()
	var output bytes.Buffer
	cmd := s.command(line)
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	stop = func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may have exited
		_ = cmd.Wait()                                      // it was killed
	}
	s.Cleanup(func() {
		stop()
		if s.Failed() {
			s.Logf("%s\n%s", line, output.Bytes())
		}
	})
	return stop
}

// await waits until a server responds at url.
func (s *shop) await(url string) {
	s.Helper()
	const retry = "curl -fsS -o /dev/null --retry 240 --retry-delay 1 --retry-all-errors "
	if out, err := s.command(retry + url).CombinedOutput(); err != nil {
		s.Fatalf("%v\n%s", err, out)
	}
}

// list returns the rows that a user sees.
func (s *shop) list(base, user string) string {
	s.Helper()
	out, err := s.command(`curl -fsS -H "Authorization: Bearer $(curl -fsS -d ` + user + " " + base +
		`/login)" ` + base +
		"/rows").CombinedOutput()
	if err != nil {
		s.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// TestPostgresPageServesATable runs the commands of docs/postgres.md as they are printed, except
// for the addresses. Its statements create a role that is not a superuser.
func TestPostgresPageServesATable(t *testing.T) {
	s := newShop(t)
	commands := blocks(t, page, "sh")
	server, rows := ports.Address(t), ports.Address(t)
	s.exec(blocks(t, page, "sql")[1]) // otherwise, serve --writable would refuse to start
	s.start(commands[0] + " --writable --addr " + server)
	s.await("http://" + server + "/readyz")
	slots, transactions, _ := strings.Cut(blocks(t, page, "sql")[2], ";\n")
	s.exec("BEGIN", "UPDATE orders SET amount = amount")
	if n := s.count(slots + " AND active AND wal_status = 'reserved'"); n != 1 {
		t.Errorf("%d slots are shown, want the one of the server", n)
	}
	if n := s.count(strings.TrimSuffix(transactions, ";")); n != 1 {
		t.Errorf("%d transactions are shown, want the one of the test", n)
	}
	s.exec("ROLLBACK")
	watch, program, _ := strings.Cut(commands[1], "\n")
	cmd := s.command(strings.Replace(watch, "127.0.0.1:8080", server, 1))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have exited
		_ = cmd.Wait()         // it was killed
	})
	s.exec("UPDATE orders SET status = 'paid' WHERE tenant = 'acme'")
	event, err := bufio.NewReader(out).ReadString('\n')
	if !strings.Contains(event, `"name":"1","namespace":"acme","labels":{"status":"paid"}`) ||
		!strings.Contains(event, `"amount":12.50`) {
		t.Errorf("got the event %s, %v", event, err)
	}
	written, err := s.command(strings.Replace(commands[2], "127.0.0.1:8080", server, 1)).CombinedOutput()
	if err != nil || s.count("SELECT FROM orders WHERE tenant = 'acme' AND amount = 7.5") != 1 {
		t.Errorf("the row was not written: %v\n%s", err, written)
	}
	s.start(program + " -addr " + rows)
	s.await("http://" + rows)
	got := s.list("http://"+rows, "ada")
	if !strings.Contains(got, `"tenant":"acme"`) || strings.Contains(got, "globex") {
		t.Errorf("ada of acme sees %s", got)
	}
}

// ownPageProbe posts the list of the page whenever it changes, and clicks an order that is sent.
const ownPageProbe = `<script type="module">
  let shown = "", posts = Promise.resolve();
  setInterval(() => {
    const text = document.querySelector("ul").innerText;
    if (text !== shown) posts = posts.then(() => fetch("/shown", { method: "POST", body: text })); // in order
    shown = text;
    for (const item of document.querySelectorAll("li")) if (item.innerText.includes("sent")) item.click();
  }, 50);
</script>`

// TestOwnPageHasTheRowsOfItsTenant runs the commands of docs/postgres.md for a page of another
// server, and opens the page.
func TestOwnPageHasTheRowsOfItsTenant(t *testing.T) {
	browsertest.Path(t)
	s := newShop(t)
	s.exec(blocks(t, page, "sql")[1])
	api := ports.Address(t)
	html := strings.ReplaceAll(blocks(t, page, "html")[0], "127.0.0.1:8080", api)
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, html) // fails if the browser has disconnected
	}))
	defer files.Close()
	target, err := url.Parse(files.URL)
	if err != nil {
		t.Fatal(err)
	}
	site, shown := browsertest.Probe(t, target, "/", ownPageProbe)
	s.start(strings.NewReplacer("tokens.csv", s.dir+"/tokens.csv", "policy.jsonl", s.dir+"/policy.jsonl",
		"http://localhost:5173", site.URL).Replace(blocks(t, page, "sh")[3]) + " --addr " + api)
	s.await("http://" + api + "/readyz")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	browsertest.Open(ctx, t, site.URL)
	await := func(want string) {
		t.Helper()
		for last := ""; last != want; {
			select {
			case text := <-shown:
				last = string(text)
			case <-ctx.Done():
				t.Fatalf("the page shows %q, want %q", last, want)
			}
		}
	}
	await("1: new, 12.5")
	s.exec("UPDATE orders SET status = 'sent'")
	await("1: paid, 12.5")
	for _, test := range []struct{ user, tenant, status string }{
		{"ada", "acme", "200"}, {"ada", "globex", "403"}, {"bob", "globex", "200"},
	} {
		out, err := s.command(`curl -sS -o /dev/null -w '%{http_code}' -H "Authorization: Bearer token-of-` + test.user +
			`" http://` + api + "/apis/tables.listwatch.dev/v1/namespaces/" + test.tenant + "/orders").CombinedOutput()
		if err != nil || string(out) != test.status {
			t.Errorf("%+v: %v, status %s", test, err, out)
		}
	}
}

// ordersProbe posts what the page shows whenever it changes: the number of logins, the number of
// times that the line of row 1 was made, the status, the problem and the rows, with an asterisk if
// an edit is pending. It edits the amount of a row whose status is "edit", and the key of a row
// whose status is "move".
const ordersProbe = `<script type="module">
  let shown = "", posts = Promise.resolve(), first = null, made = 0;
  function look() {
    const line = document.querySelector("tbody tr");
    if (line !== first) made++;
    first = line;
    const logins = performance.getEntriesByType("resource").filter((e) => e.name.endsWith("/login")).length;
    const parts = [...document.querySelectorAll("#status, [role=alert], tbody tr")];
    const text = [logins + "." + made, ...parts.map((e) => e.innerText + (e.className ? "*" : ""))].join("|");
    if (text !== shown) posts = posts.then(() => fetch("/shown", { method: "POST", body: text })); // in order
    shown = text;
  }
  setInterval(() => {
    look();
    for (const { cells } of document.querySelectorAll("tbody tr")) {
      const edited = { edit: cells[3], move: cells[0] }[cells[2].innerText];
      if (!edited || edited.innerText === "77" || shown.includes("immutable")) continue;
      edited.focus();
      edited.textContent = "77";
      edited.blur();
      look();
    }
  }, 50);
</script>`

// TestOrdersPageFollowsATenant runs the two servers of examples/orders/README.md behind nginx, and
// opens their page.
func TestOrdersPageFollowsATenant(t *testing.T) {
	browsertest.Path(t)
	s := newShop(t)
	front, servers := s.startTwoOrders()
	target, err := url.Parse(front)
	if err != nil {
		t.Fatal(err)
	}
	await := openOrders(t, target, browsertest.Chromium)
	await("opened", `^1\.1\|live\|.*\|1\tacme\tnew\t12.5$`)
	s.exec("UPDATE orders SET status = 'paid'")
	await("updated", `^1\.2\|live\|.*\|1\tacme\tpaid\t12.5$`)
	await("the token expired", `^2\.2\|live\|.*\|`)
	s.exec("INSERT INTO orders (tenant, amount) VALUES ('globex', 1), ('acme', 2)")
	await("inserted", `\|live\|.*\|1\tacme\tpaid\t12.5\|4\tacme\tnew\t2$`)
	if got := s.list(front, "bob"); strings.Count(got, `"tenant":"globex"`) != 2 || strings.Contains(got, "acme") {
		t.Errorf("bob of globex sees %s", got)
	}
	s.exec(blocks(t, readme, "sql")[1], "UPDATE orders SET status = 'edit' WHERE id = 4")
	await("edited", `\|live\|\|1\tacme\tpaid\t12.5\|4\tacme\tedit\t77\*$`)
	// The line of row 1 was not made again.
	await("written", `^[0-9]+\.2\|live\|\|1\tacme\tpaid\t12.5\|4\tacme\tedit\t77$`)
	if n := s.count("SELECT FROM orders WHERE id = 4 AND amount = 77"); n != 1 {
		t.Error("the table does not have the edit")
	}
	s.exec("UPDATE orders SET status = 'move', amount = 2 WHERE id = 4")
	await("a key was edited", `\|live\|\|1\tacme\tpaid\t12.5\|77\tacme\tmove\t2\*$`)
	await("refused", `\|live\|.*immutable.*\|1\tacme\tpaid\t12.5\|4\tacme\tmove\t2$`)
	servers[0].stop()
	s.exec("UPDATE orders SET status = 'sent' WHERE id = 4")
	await("one server stopped", `\|live\|.*\|1\tacme\tpaid\t12.5\|4\tacme\tsent\t2$`)
	s.start(servers[0].line)
	s.await("http://" + servers[0].addr)
	servers[1].stop()
	s.exec("UPDATE orders SET tenant = 'globex' WHERE id = 4")
	await("the other server stopped", `\|live\|.*\|1\tacme\tpaid\t12.5$`)
	for _, engine := range []browsertest.Engine{browsertest.Firefox, browsertest.WebKit} {
		t.Run(string(engine), func(t *testing.T) {
			await := openOrders(t, target, engine)
			await("opened", `\|live\|.*\|1\tacme\tpaid\t12.5$`)
			await("the token expired", `^2\.1\|live\|.*\|`)
		})
	}
}

// openOrders opens the page of examples/orders, as user ada. It returns a function that waits until
// the page shows a text.
func openOrders(t *testing.T, target *url.URL, engine browsertest.Engine) (await func(step, pattern string)) {
	t.Helper()
	site, shown := browsertest.Probe(t, target, "/", ordersProbe)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	t.Cleanup(cancel)
	browsertest.OpenIn(ctx, t, engine, site.URL)
	return func(step, pattern string) {
		t.Helper()
		want, last := regexp.MustCompile(pattern), ""
		for !want.MatchString(last) {
			select {
			case text := <-shown:
				last = string(text)
			case <-ctx.Done():
				t.Fatalf("%s: the page shows %q, want %s", step, last, pattern)
			}
			if strings.Contains(last, "globex") {
				t.Fatalf("%s: ada of acme sees %q", step, last)
			}
		}
	}
}

// An ordersServer is a server of examples/orders.
type ordersServer struct {
	line, addr string
	stop       func()
}

// startTwoOrders runs the commands of the README for two servers. It returns the URL of nginx.
func (s *shop) startTwoOrders() (front string, servers []*ordersServer) {
	s.Helper()
	addresses := []string{ports.Address(s.TB), ports.Address(s.TB), ports.Address(s.TB)}
	replace := strings.NewReplacer("127.0.0.1:8084", addresses[0], "127.0.0.1:8085", addresses[1], "127.0.0.1:8086",
		addresses[2], "/tmp", s.dir, "$PWD/examples/orders", s.dir)
	config, err := os.ReadFile(root + "/examples/orders/nginx.conf")
	if err == nil {
		err = os.WriteFile(filepath.Join(s.dir, "nginx.conf"), []byte(replace.Replace(string(config))), 0o600)
	}
	if err != nil {
		s.Fatal(err)
	}
	lines := strings.Split(replace.Replace(blocks(s.TB, readme, "sh")[1]), "\n")
	if out, err := s.command(strings.Join(lines[:2], "\n")).CombinedOutput(); err != nil {
		s.Fatalf("%v\n%s", err, out)
	}
	for i, line := range lines[2:4] {
		server := &ordersServer{addr: addresses[i], line: lines[0] + "; exec " + strings.TrimSuffix(line, " &")}
		server.stop = s.start(server.line)
		servers = append(servers, server)
	}
	s.start("PATH=$PATH:/usr/sbin; exec " + lines[4] + " -g 'daemon off;'")
	front = "http://" + addresses[2]
	for _, url := range []string{"http://" + addresses[0], "http://" + addresses[1], front} {
		s.await(url)
	}
	return front, servers
}
