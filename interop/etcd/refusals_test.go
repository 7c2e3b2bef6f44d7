package etcd

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/interop/internal/etcdtest"
	"github.com/listwatch/listwatch/interop/internal/program"
	"github.com/listwatch/listwatch/kubestatus"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/etcd"
)

// wantError checks the code of err, and that its message contains all words.
func wantError(t testing.TB, err error, code listwatch.Code, words ...string) {
	t.Helper()
	if !errors.Is(err, code) {
		t.Errorf("got %v, want code %v", err, code)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("got %v, want a message with %q", err, w)
		}
	}
}

func TestUnreachableEtcdIsNamed(t *testing.T) {
	t.Parallel()
	err := openUntil(t, "connection refused",
		etcd.Options{Endpoints: []string{"http://127.0.0.1:1"}, Timeout: 300 * time.Millisecond})
	wantError(t, err, listwatch.Unavailable, "http://127.0.0.1:1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := etcd.Open(ctx, etcd.Options{Endpoints: []string{"http://127.0.0.1:1"}}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("Open with a cancelled context: got %v, want context.Canceled", err)
	}
}

// openUntil opens a database repeatedly until the error contains reason, and returns the error. The
// error of a single attempt may lack the reason, because the store searches for the reason for only
// one second, which is too short on a busy machine.
func openUntil(t *testing.T, reason string, o etcd.Options) (err error) {
	t.Helper()
	eventually(t, "the reason: "+reason, func() bool {
		_, err = etcd.Open(t.Context(), o)
		return err != nil && strings.Contains(err.Error(), reason)
	})
	return err
}

func TestForeignKeysAreRefused(t *testing.T) {
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
		"/shape": "NAMESPACE/NAME", "/text": "invalid character", "/protobuf": "Protocol Buffers",
		"/kind": `want "Thing"`,
	} {
		db := openDB(t, etcd.Options{Endpoints: []string{server.URL}, Prefix: prefix})
		_, err := db.Collection(things)
		wantError(t, err, listwatch.Corrupt, want, prefix+"/things.example.com/")
		// With SkipUnreadable the store starts, and does not change the unreadable key.
		c,
			err := openDB(t, etcd.Options{
			Endpoints: []string{server.URL}, Prefix: prefix,
			SkipUnreadable: true,
		}).Collection(things)
		if err != nil {
			t.Fatal(err)
		}
		if page := list(t, c, listwatch.Query{}); len(page.Items) != 0 {
			t.Errorf("%s: got list %+v, want an empty list", prefix, page)
		}
		if prefix != "/shape" {
			_, err = c.Create(t.Context(), thing("a", 1))
			wantError(t, err, listwatch.AlreadyExists)
		}
	}
	if got, err := raw.Get(t.Context(), "/text/things.example.com/default/a"); err != nil ||
		string(got.Kvs[0].Value) != "hello" {
		t.Errorf("the unreadable key: got %v, error %v; want the old value", got, err)
	}
}

func TestEtcdUsersNeedPermission(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t, nil)
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	must(server.UserAdd(ctx, "root", "root"))
	must(server.UserGrantRole(ctx, "root", "root"))
	must(server.UserAdd(ctx, "app", "secret"))
	must(server.RoleAdd(ctx, "app"))
	must(server.RoleGrantPermission(ctx, "app", "/app/", "/app0", clientv3.PermissionType(clientv3.PermReadWrite)))
	must(server.UserGrantRole(ctx, "app", "app"))
	must(server.AuthEnable(ctx))
	o := etcd.Options{Endpoints: []string{server.URL}, Prefix: "/app", Timeout: waitTimeout}
	_, err := etcd.Open(ctx, o)
	wantError(t, err, listwatch.Unauthorized, server.URL)
	o.Username, o.Password = "app", "wrong"
	_, err = etcd.Open(ctx, o)
	wantError(t, err, listwatch.Unauthorized, server.URL, "invalid user ID or password")
	o.Password, o.Prefix = "secret", "/other"
	_, err = etcd.Open(ctx, o)
	wantError(t, err, listwatch.Forbidden, "permission denied")
	o.Prefix = "/app"
	c := openThings(t, openDB(t, o))
	w := watchAt(t, c, 1)
	if _, err := c.Create(ctx, thing("a", 1)); err != nil {
		t.Fatal(err)
	}
	readEvents(t, w, 1)
	// A revoked permission causes errors. After it is restored, the store works without a
	// restart.
	root, err := clientv3.New(clientv3.Config{
		Endpoints: []string{server.URL}, Username: "root", Password: "root",
		Logger: zap.NewNop(),
	})
	must(nil, err)
	defer root.Close()
	must(root.UserRevokeRole(ctx, "app", "app"))
	_, err = c.Create(ctx, thing("b", 1))
	wantUnavailable := func(err error) {
		t.Helper()
		wantError(t, err, listwatch.Unavailable, "permission denied")
		// A client did nothing wrong, and cannot know which rights etcd gives to this server.
		if s := kubestatus.Of(err); s.Code != http.StatusServiceUnavailable || strings.Contains(s.Message, "/app") {
			t.Errorf("got %+v, want status 503 without a key", s)
		}
	}
	wantUnavailable(err)
	_, err = c.List(ctx, listwatch.Query{})
	wantUnavailable(err)
	must(root.UserGrantRole(ctx, "app", "app"))
	if _, err := c.Create(ctx, thing("b", 1)); err != nil {
		t.Error(err)
	}
	readEvents(t, w, 1)
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
	c := openThings(t, openDB(t, etcd.Options{Endpoints: []string{server.URL}, TLS: &tls.Config{RootCAs: pool}}))
	if _, err := c.Create(t.Context(), thing("a", 1)); err != nil {
		t.Error(err)
	}
	err = openUntil(t, "certificate", etcd.Options{Endpoints: []string{server.URL}, Timeout: 500 * time.Millisecond})
	wantError(t, err, listwatch.Unavailable)
}

// While etcd is unavailable, the store refuses consistent reads and is not ready. It
// recovers without a restart.
func TestFreshReadsFailWithoutEtcd(t *testing.T) {
	t.Parallel()
	server := etcdtest.StartProcess(t)
	db := openDB(t, etcd.Options{Endpoints: []string{server.URL}})
	c := openThings(t, db)
	if _, err := c.Create(t.Context(), thing("a", 1)); err != nil {
		t.Fatal(err)
	}
	w := watchAt(t, c, 2)
	eventually(t, "Ready", func() bool { return db.Ready(t.Context()) == nil })
	server.Pause()
	_, err := c.List(t.Context(), listwatch.Query{})
	wantError(t, err, listwatch.NotYet)
	if status := listwatch.AsError(err).HTTPStatus(); status != http.StatusGatewayTimeout {
		t.Errorf("got status %d, want 504", status)
	}
	if page, err := c.List(t.Context(), listwatch.Query{Start: listwatch.StartAny}); err != nil ||
		len(page.Items) != 1 {
		t.Errorf("list of any version: got %+v, error %v; want one object", page, err)
	}
	if err := db.Ready(t.Context()); err == nil {
		t.Error("Ready without etcd: got nil, want an error")
	}
	server.Resume()
	eventually(t, "Ready with etcd", func() bool { return db.Ready(t.Context()) == nil })
	if _, err := c.Create(t.Context(), thing("b", 1)); err != nil {
		t.Fatal(err)
	}
	readEvents(t, w, 1)
}

// reverser is a Transformer that stores values in reverse.
type reverser struct{}

func (reverser) ToStorage(_ store.Location, plain []byte) ([]byte, error) {
	return reversed(plain), nil
}

func (reverser) FromStorage(_ store.Location, kept []byte) ([]byte, error) {
	return reversed(kept), nil
}

func reversed(b []byte) []byte {
	out := make([]byte, len(b))
	for i := range b {
		out[len(b)-1-i] = b[i]
	}
	return out
}

func TestTransformerChangesStoredValues(t *testing.T) {
	t.Parallel()
	server := etcdtest.StartProcess(t)
	o := etcd.Options{Endpoints: []string{server.URL}, Prefix: "/t", Transformer: reverser{}}
	first := openThings(t, openDB(t, o))
	written, err := first.Create(t.Context(), thing("a", 1))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := etcdtest.Dial(t, server.URL).Get(t.Context(), "/t/things.example.com/default/a")
	if err != nil || !strings.HasPrefix(string(raw.Kvs[0].Value), "}}1:") {
		t.Errorf("got stored value %v, error %v; want the reversed object", raw, err)
	}
	page := list(t, openThings(t, openDB(t, o)), listwatch.Query{})
	if len(page.Items) != 1 || string(page.Items[0].Data) != string(written.Data) {
		t.Errorf("list at another store: got %+v, want %s", page, written.Data)
	}
	o.Transformer = nil
	_, err = openDB(t, o).Collection(things)
	wantError(t, err, listwatch.Corrupt)
}

// Another program has attached a lease to the key of an object.
func TestUpdatesKeepTheLease(t *testing.T) {
	t.Parallel()
	server := etcdtest.StartProcess(t)
	client := etcdtest.Dial(t, server.URL)
	c := openThings(t, openDB(t, etcd.Options{Endpoints: []string{server.URL}, Prefix: "/lease"}))
	o, err := c.Create(t.Context(), thing("a", 1))
	if err != nil {
		t.Fatal(err)
	}
	lease, err := client.Grant(t.Context(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	const path = "/lease/things.example.com/default/a"
	if _, err = client.Put(t.Context(), path, "", clientv3.WithLease(lease.ID),
		clientv3.WithIgnoreValue()); err != nil {
		t.Fatal(err)
	}
	change := func(*listwatch.Object) ([]byte, error) { return thing("a", 2), nil }
	if _, err = c.Update(t.Context(), o.Key, listwatch.Preconditions{}, change); err != nil {
		t.Fatal(err)
	}
	got, err := client.Get(t.Context(), path)
	if err != nil || len(got.Kvs) != 1 || got.Kvs[0].Lease != int64(lease.ID) {
		t.Fatalf("got %v, %v, want a key with the lease %d", got, err, lease.ID)
	}
	w := watchAt(t, c, listwatch.Version(got.Kvs[0].ModRevision))
	if _, err := client.Revoke(t.Context(), lease.ID); err != nil {
		t.Fatal(err)
	}
	if events := readEvents(t, w, 1); !strings.Contains(events[0], "DELETED") {
		t.Errorf("got %v after the end of the lease, want DELETED", events[0])
	}
	if _, err := c.Create(t.Context(), thing("a", 3)); err != nil {
		t.Errorf("create after the end of the lease: %v", err)
	}
}

// After the password of its etcd user has changed, the program authenticates with the new password,
// and its watch continues.
func TestEtcdPasswordCanBeChanged(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t, nil)
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, file := t.Context(), filepath.Join(t.TempDir(), "password")
	must(nil, os.WriteFile(file, []byte("old\n"), 0o600))
	must(server.UserAdd(ctx, "root", "root"))
	must(server.UserGrantRole(ctx, "root", "root"))
	must(server.UserAdd(ctx, "app", "old"))
	must(server.UserGrantRole(ctx, "app", "root"))
	must(server.AuthEnable(ctx))
	p := serve(t, program.Build(t), "--etcd", server.URL, "--etcd-user", "app", "--etcd-password-file", file)
	watch, err := http.Get(p.URL() + "/api/v1/configmaps?watch=true")
	must(watch, err)
	defer watch.Body.Close()
	create := func(name string) int {
		got, err := http.Post(p.URL()+"/api/v1/namespaces/default/configmaps", "application/json",
			strings.NewReader(`{"metadata":{"name":"`+name+`"}}`))
		must(got, err)
		got.Body.Close()
		return got.StatusCode
	}
	if code := create("before"); code != http.StatusCreated {
		t.Fatalf("got %d, want 201", code)
	}
	root, err := clientv3.New(clientv3.Config{
		Endpoints: []string{server.URL}, Username: "root", Password: "root",
		Logger: zap.NewNop(),
	})
	must(root, err)
	defer root.Close()
	must(nil, os.WriteFile(file, []byte("new\n"), 0o600))
	must(nil, p.Process.Signal(syscall.SIGHUP))
	must(root.UserChangePassword(ctx, "app", "new"))
	eventually(t, "a write with the new password", func() bool {
		code := create("after")
		// An earlier try may have written the object although it timed out.
		return code == http.StatusCreated || code == http.StatusConflict
	})
	for lines, want := bufio.NewScanner(watch.Body), []string{"before", "after"}; len(want) > 0; want = want[1:] {
		if !lines.Scan() || !strings.Contains(lines.Text(), `"name":"`+want[0]+`"`) {
			t.Fatalf("the watch got %q, %v; want %s", lines.Text(), lines.Err(), want[0])
		}
	}
}

// Two processes of the program serve the same etcd. When etcd becomes unreachable, /readyz fails,
// and a new process reports the reason.
func TestTwoProcessesServeOneEtcd(t *testing.T) {
	t.Parallel()
	built := program.Build(t)
	server := etcdtest.StartProcess(t)
	urls := make([]string, 2)
	for i := range urls {
		urls[i] = serve(t, built, "--etcd", server.URL, "--etcd-prefix", "/two").URL()
	}
	const path = "/api/v1/namespaces/default/configmaps"
	got, err := http.Post(urls[0]+path, "application/json",
		strings.NewReader(`{"metadata":{"name":"a"},"data":{"k":"v"}}`))
	if err != nil || got.StatusCode != http.StatusCreated {
		t.Fatalf("got response %v, error %v; want status 201", got, err)
	}
	written, _ := io.ReadAll(got.Body)
	got.Body.Close()
	if got, err = http.Get(urls[1] + path + "/a"); err != nil {
		t.Fatal(err)
	}
	read, _ := io.ReadAll(got.Body)
	got.Body.Close()
	if string(read) != string(written) {
		t.Errorf("the other server returned %s, want %s", read, written)
	}
	wantReadyz := func(want int) {
		t.Helper()
		eventually(t, fmt.Sprint("/readyz with status ", want), func() bool {
			got, err := http.Get(urls[1] + "/readyz")
			if err != nil {
				t.Fatal(err)
			}
			got.Body.Close()
			return got.StatusCode == want
		})
	}
	wantReadyz(http.StatusOK)
	server.Kill()
	wantReadyz(http.StatusServiceUnavailable)
	eventually(t, "the reason: connection refused", func() bool { // see openUntil
		out, err := exec.Command(built, "serve", "--addr", "127.0.0.1:0", "--etcd", server.URL).CombinedOutput()
		if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != 1 {
			t.Fatalf("start without etcd: got %v and output %s, want exit status 1", err, out)
		}
		return strings.Contains(string(out), "connection refused")
	})
}

// serve runs the program until the test ends.
func serve(t *testing.T, path string, args ...string) *program.Process {
	t.Helper()
	return program.Start(t, path, append([]string{"serve", "--addr", "127.0.0.1:0"}, args...)...)
}
