package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/interop/internal/etcdtest"
	"github.com/listwatch/listwatch/store/etcd"
)

func refused(t testing.TB, err error, code listwatch.Code, words ...string) {
	t.Helper()
	if !errors.Is(err, code) {
		t.Errorf("got %v, want code %v", err, code)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%v does not say %q", err, w)
		}
	}
}

func TestAnEtcdThatIsNotThereIsNamed(t *testing.T) {
	t.Parallel()
	_, err := etcd.Open(t.Context(), etcd.Options{Endpoints: []string{"http://127.0.0.1:1"}, Timeout: 300 * time.Millisecond})
	refused(t, err, listwatch.Unavailable, "http://127.0.0.1:1", "connection refused")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := etcd.Open(ctx, etcd.Options{Endpoints: []string{"http://127.0.0.1:1"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
}

func TestAPrefixThatHoldsSomethingElseIsRefused(t *testing.T) {
	t.Parallel()
	server := etcdtest.StartProcess(t)
	raw := etcdtest.Dial(t, server.URL)
	for key, value := range map[string]string{
		"/keys/things.example.com/config":        `{"metadata":{"name":"config"}}`,
		"/shape/things.example.com/a/b/c":        `{"metadata":{"name":"b"}}`,
		"/text/things.example.com/default/a":     "hello",
		"/protobuf/things.example.com/default/a": "k8s\x00\x0a",
		"/kind/things.example.com/default/a":     `{"kind":"Pod","metadata":{"name":"a"}}`,
	} {
		if _, err := raw.Put(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	for prefix, want := range map[string]string{
		"/shape": "NAMESPACE/NAME", "/text": "JSON", "/protobuf": "Protocol Buffers", "/kind": `want "Thing"`,
	} {
		db := open(t, etcd.Options{Endpoints: []string{server.URL}, Prefix: prefix})
		_, err := db.Collection(things)
		refused(t, err, listwatch.Corrupt, want, prefix+"/things.example.com/")
		// It can be made to go on; the key is left alone.
		c, err := open(t, etcd.Options{Endpoints: []string{server.URL}, Prefix: prefix, SkipUnreadable: true}).Collection(things)
		if err != nil {
			t.Fatal(err)
		}
		if page, err := c.List(t.Context(), listwatch.Query{}); err != nil || len(page.Items) != 0 {
			t.Errorf("%s: %+v, %v; want nothing", prefix, page, err)
		}
		if prefix != "/shape" {
			_, err = c.Create(t.Context(), thing("a", 1))
			refused(t, err, listwatch.AlreadyExists)
		}
	}
	if got, err := raw.Get(t.Context(), "/text/things.example.com/default/a"); err != nil || string(got.Kvs[0].Value) != "hello" {
		t.Errorf("what was there: %v, %v", got, err)
	}
}

func TestUsersOfEtcd(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t, nil)
	do := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	do(server.UserAdd(ctx, "root", "root"))
	do(server.UserGrantRole(ctx, "root", "root"))
	do(server.UserAdd(ctx, "app", "secret"))
	do(server.RoleAdd(ctx, "app"))
	do(server.RoleGrantPermission(ctx, "app", "/app/", "/app0", clientv3.PermissionType(clientv3.PermReadWrite)))
	do(server.UserGrantRole(ctx, "app", "app"))
	do(server.AuthEnable(ctx))
	o := etcd.Options{Endpoints: []string{server.URL}, Prefix: "/app", Timeout: patience}
	_, err := etcd.Open(ctx, o)
	refused(t, err, listwatch.Unauthorized, server.URL)
	o.Username, o.Password = "app", "wrong"
	_, err = etcd.Open(ctx, o)
	refused(t, err, listwatch.Unauthorized, server.URL, "invalid user ID or password")
	o.Password, o.Prefix = "secret", "/other"
	_, err = etcd.Open(ctx, o)
	refused(t, err, listwatch.Forbidden, "permission denied")
	o.Prefix = "/app"
	c := collection(t, open(t, o))
	w := watchAt(t, c, 1)
	if _, err := c.Create(ctx, thing("a", 1)); err != nil {
		t.Fatal(err)
	}
	read(t, w, 1)
	// A right that is taken away is an error, and one that is given back mends all.
	root, err := clientv3.New(clientv3.Config{Endpoints: []string{server.URL}, Username: "root", Password: "root", Logger: zap.NewNop()})
	do(nil, err)
	defer root.Close()
	do(root.UserRevokeRole(ctx, "app", "app"))
	_, err = c.Create(ctx, thing("b", 1))
	refused(t, err, listwatch.Forbidden, "permission denied")
	_, err = c.List(ctx, listwatch.Query{})
	refused(t, err, listwatch.Forbidden)
	do(root.UserGrantRole(ctx, "app", "app"))
	if _, err := c.Create(ctx, thing("b", 1)); err != nil {
		t.Error(err)
	}
	read(t, w, 1)
}

func TestEtcdOverTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	info, err := transport.SelfCert(zap.NewNop(), dir, []string{"127.0.0.1:1"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	server := etcdtest.Start(t, func(c *embed.Config) {
		c.ListenClientUrls = []url.URL{{Scheme: "https", Host: "127.0.0.1:0"}}
		c.AdvertiseClientUrls = c.ListenClientUrls
		c.ClientTLSInfo = info
	})
	pem, err := os.ReadFile(info.CertFile)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	c := collection(t, open(t, etcd.Options{Endpoints: []string{server.URL}, TLS: &tls.Config{RootCAs: pool}}))
	if _, err := c.Create(t.Context(), thing("a", 1)); err != nil {
		t.Error(err)
	}
	_, err = etcd.Open(t.Context(), etcd.Options{Endpoints: []string{server.URL}, Timeout: 500 * time.Millisecond})
	refused(t, err, listwatch.Unavailable, "certificate")
}

// A server whose etcd is away answers no read that must be fresh, says so to probes, and goes on by itself.
func TestNothingStaleIsServedAsFreshWhileEtcdIsAway(t *testing.T) {
	t.Parallel()
	server := etcdtest.StartProcess(t)
	db := open(t, etcd.Options{Endpoints: []string{server.URL}})
	c := collection(t, db)
	if _, err := c.Create(t.Context(), thing("a", 1)); err != nil {
		t.Fatal(err)
	}
	w := watchAt(t, c, 2)
	if err := db.Ready(t.Context()); err != nil {
		t.Errorf("ready: %v", err)
	}
	server.Pause()
	_, err := c.List(t.Context(), listwatch.Query{})
	refused(t, err, listwatch.NotYet)
	if status := listwatch.AsError(err).HTTPStatus(); status != http.StatusGatewayTimeout {
		t.Errorf("status %d, want 504", status)
	}
	if page, err := c.List(t.Context(), listwatch.Query{Start: listwatch.Any}); err != nil || len(page.Items) != 1 {
		t.Errorf("a list that takes any state: %+v, %v", page, err)
	}
	if err := db.Ready(t.Context()); err == nil {
		t.Error("ready, and etcd is away")
	}
	server.Resume()
	eventually(t, "ready again", func() bool { return db.Ready(t.Context()) == nil })
	if _, err := c.Create(t.Context(), thing("b", 1)); err != nil {
		t.Fatal(err)
	}
	read(t, w, 1)
}

// reverse is a Transformer that can be seen in etcd.
type reverse struct{}

func (reverse) ToStorage(_ etcd.Location, plain []byte) ([]byte, error)  { return turn(plain), nil }
func (reverse) FromStorage(_ etcd.Location, kept []byte) ([]byte, error) { return turn(kept), nil }

func turn(b []byte) []byte {
	out := make([]byte, len(b))
	for i := range b {
		out[len(b)-1-i] = b[i]
	}
	return out
}

func TestATransformerIsBetweenTheStoreAndEtcd(t *testing.T) {
	t.Parallel()
	server := etcdtest.StartProcess(t)
	o := etcd.Options{Endpoints: []string{server.URL}, Prefix: "/t", Transformer: reverse{}}
	first := collection(t, open(t, o))
	written, err := first.Create(t.Context(), thing("a", 1))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := etcdtest.Dial(t, server.URL).Get(t.Context(), "/t/things.example.com/default/a")
	if err != nil || !strings.HasPrefix(string(raw.Kvs[0].Value), "}}1:") {
		t.Errorf("etcd has %v, %v", raw, err)
	}
	page, err := collection(t, open(t, o)).List(t.Context(), listwatch.Query{})
	if err != nil || len(page.Items) != 1 || string(page.Items[0].Data) != string(written.Data) {
		t.Errorf("another server has %+v, %v; want %s", page, err, written.Data)
	}
	o.Transformer = nil
	_, err = open(t, o).Collection(things)
	refused(t, err, listwatch.Corrupt)
}

// The program: two servers over one etcd, and what it says where there is none.
func TestTwoProcessesServeOneEtcd(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "listwatch")
	build := exec.Command("go", "build", "-o", program, "github.com/listwatch/listwatch/cmd/listwatch")
	build.Dir = "../.." // the module of the program
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	server := etcdtest.StartProcess(t)
	urls := make([]string, 2)
	for i := range urls {
		urls[i] = serve(t, program, "--etcd", server.URL, "--etcd-prefix", "/two")
	}
	const path = "/api/v1/namespaces/default/configmaps"
	got, err := http.Post(urls[0]+path, "application/json", strings.NewReader(`{"metadata":{"name":"a"},"data":{"k":"v"}}`))
	if err != nil || got.StatusCode != http.StatusCreated {
		t.Fatalf("%v, %v", got, err)
	}
	written, _ := io.ReadAll(got.Body)
	got.Body.Close()
	if got, err = http.Get(urls[1] + path + "/a"); err != nil {
		t.Fatal(err)
	}
	there, _ := io.ReadAll(got.Body)
	got.Body.Close()
	if string(there) != string(written) {
		t.Errorf("the other server has %s, want %s", there, written)
	}
	ready := func(want int) {
		t.Helper()
		got, err := http.Get(urls[1] + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		if text, _ := io.ReadAll(got.Body); got.StatusCode != want {
			t.Errorf("/readyz: %d %s, want %d", got.StatusCode, text, want)
		}
	}
	ready(http.StatusOK)
	server.Kill()
	ready(http.StatusServiceUnavailable)
	out, err := exec.Command(program, "serve", "--addr", "127.0.0.1:0", "--etcd", server.URL).CombinedOutput()
	if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(out), "connection refused") {
		t.Errorf("without etcd: %v, %s", err, out)
	}
}

// serve starts the program, which ends with the test, and returns its URL.
func serve(t testing.TB, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, append([]string{"serve", "--addr", "127.0.0.1:0"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	text := make([]byte, 0, 4096)
	for {
		text = append(text, make([]byte, 512)...)
		n, err := out.Read(text[len(text)-512:])
		text = text[:len(text)-512+n]
		if _, rest, ok := strings.Cut(string(text), "http://"); ok && strings.ContainsAny(rest, " \n/") {
			go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the program
			return "http://" + rest[:strings.IndexAny(rest, " \n/")]
		}
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
}
