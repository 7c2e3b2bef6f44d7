package etcd

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/interop/internal/etcdtest"
	"github.com/listwatch/listwatch/interop/internal/program"
	"github.com/listwatch/listwatch/store/etcd"
)

// If etcd has reached its quota, writes fail with the reason. Reads, watches and deletes continue,
// so /readyz must not fail: it would take all servers of this etcd out of service.
func TestFullEtcdFailsOnlyWrites(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t, func(c *embed.Config) { c.QuotaBackendBytes = 2 << 20 })
	p := serve(t, program.Build(t), "--etcd", server.URL)
	objects := p.URL() + "/api/v1/namespaces/default/configmaps"
	do := func(method, url, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		text, _ := io.ReadAll(got.Body)
		return got.StatusCode, string(text)
	}
	watch, err := http.Get(objects + "?watch=true&fieldSelector=metadata.name!=none")
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Body.Close()
	events := bufio.NewScanner(watch.Body)
	events.Buffer(nil, 1<<20)
	wantEvent := func(kind, name string) {
		t.Helper()
		if !events.Scan() || !strings.Contains(events.Text(), kind) ||
			!strings.Contains(events.Text(), `"name":"`+name+`"`) {
			t.Fatalf("the watch got %.200q, %v; want %s %s", events.Text(), events.Err(), kind, name)
		}
	}
	create := func(i int) (int, string) {
		return do(http.MethodPost, objects,
			fmt.Sprintf(`{"metadata":{"name":"o%d"},"data":{"k":%q}}`, i, strings.Repeat("x", 100<<10)))
	}

	n := 0
	for ; n < 100; n++ {
		code, body := create(n)
		if code == http.StatusCreated {
			wantEvent("ADDED", fmt.Sprint("o", n))
			continue
		}
		if code != http.StatusServiceUnavailable || !strings.Contains(body, "etcd is out of space") ||
			!strings.Contains(body, `"kind":"Status"`) {
			t.Errorf("write %d: got %d %.300s, want 503 with the reason", n, code, body)
		}
		break
	}
	if n < 2 || n == 100 {
		t.Fatalf("%d writes of 100 KiB succeeded with a quota of 2 MiB", n)
	}
	eventually(t, "the reason in the log", func() bool { return strings.Contains(p.Log(), "etcd is out of space") })
	if code, body := do(http.MethodGet, objects, ""); code != http.StatusOK || strings.Count(body, `"name":"o`) != n {
		t.Errorf("list: got %d with %d objects, want %d", code, strings.Count(body, `"name":"o`), n)
	}
	if code, body := do(http.MethodGet, p.URL()+"/readyz", ""); code != http.StatusOK {
		t.Errorf("/readyz: got %d %s", code, body)
	}
	for i := range n {
		if code, body := do(http.MethodDelete, objects+fmt.Sprint("/o", i), ""); code != http.StatusOK {
			t.Fatalf("delete: got %d %s", code, body)
		}
		wantEvent("DELETED", fmt.Sprint("o", i))
	}

	// The operator frees space.
	head, err := server.Get(t.Context(), "/", clientv3.WithCountOnly())
	if err == nil {
		_, err = server.Compact(t.Context(), head.Header.Revision, clientv3.WithCompactPhysical())
	}
	if err == nil {
		_, err = server.Defragment(t.Context(), server.URL)
	}
	if err == nil {
		_, err = server.AlarmDisarm(t.Context(), &clientv3.AlarmMember{})
	}
	if err != nil {
		t.Fatal(err)
	}
	if code, body := create(n); code != http.StatusCreated {
		t.Errorf("a write after space was freed: got %d %.300s", code, body)
	}
	wantEvent("ADDED", fmt.Sprint("o", n))
}

// The write that fills etcd is applied and yet fails with ErrNoSpace. Concurrent writes make this
// likely, because all of them pass the first check of the quota.
func TestWriteThatFillsEtcdHasAnOutcome(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t, func(c *embed.Config) { c.QuotaBackendBytes = 2 << 20 })
	things := openThings(t, openDB(t, etcd.Options{Endpoints: []string{server.URL}}))
	var mu sync.Mutex
	created := make(map[string]bool) // guarded by mu
	var writers sync.WaitGroup
	for w := range 32 {
		writers.Go(func() {
			for i := 0; ; i++ {
				name := fmt.Sprintf("o-%d-%d", w, i)
				o, err := things.Create(t.Context(), []byte(largeThing(name, i)))
				if err != nil {
					wantError(t, err, listwatch.Unavailable, "etcd is out of space")
					return
				}
				mu.Lock()
				created[o.Key.Name] = true
				mu.Unlock()
			}
		})
	}
	writers.Wait()
	page, err := things.List(t.Context(), listwatch.Query{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range page.Items {
		if !created[o.Key.Name] {
			t.Errorf("%s exists, and its create failed", o.Key.Name)
		}
	}
	if len(page.Items) != len(created) {
		t.Errorf("%d objects exist, and %d creates succeeded", len(page.Items), len(created))
	}
}
