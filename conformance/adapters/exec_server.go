package adapters

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
)

// A Process is a running command under test. The caller must close it.
type Process struct {
	// Target is the target for the conformance cases.
	Target harness.Target
	*hookProcess
}

// serverHello is the first line that a server command writes (docs/conformance-hook.md).
type serverHello struct {
	URL, Kind, Root, CA string
	Can                 []string
}

// serverAbilities maps the words of the control hook to abilities.
var serverAbilities = map[string]harness.Ability{
	"open": harness.SoleWriter, "put": harness.Writes, "dense": harness.ConsecutiveVersions,
	"compact": harness.Compacts, "spaces": harness.Namespaces, "fields": harness.FieldSelectors,
	"lives": harness.UnrelatedCollection | harness.Restarts, "drain": harness.Drains, "stats": harness.CountsWatches,
	"bookmarks": harness.FrequentBookmarks, "expires": harness.Expires,
}

// A serverRequest is a request to a server command.
type serverRequest struct {
	ID     int             `json:"id"`
	Do     string          `json:"do"`
	At     string          `json:"at,omitempty"`
	Key    *hookKey        `json:"key,omitempty"`
	Object json.RawMessage `json:"object,omitempty"`
	// Bookmarks is the interval of bookmarks in milliseconds. If zero, the server chooses it.
	Bookmarks int64 `json:"bookmarks,omitempty"`
	// TTL is the time in milliseconds after which objects end. If zero, they do not end.
	TTL int64 `json:"ttl,omitempty"`
}

type hookKey struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// A serverReply is the reply to a serverRequest.
type serverReply struct {
	At, URL, Version string
	TTL              int64
	Stats            json.RawMessage
}

// ExecServer starts a command that controls a server, and returns a Process whose target is that
// server. The standard error of the command goes to notes. timeout is the time that a case waits
// for an expected event; if zero, it is 10 seconds. The caller must close the Process.
func ExecServer(ctx context.Context, command string, notes io.Writer, timeout time.Duration) (*Process, error) {
	var hello serverHello
	h, err := startHook(ctx, command, notes, &hello)
	if err != nil {
		return nil, err
	}
	s := &execServer{hookProcess: h, hello: hello, options: Options{Timeout: timeout}}
	p := &Process{hookProcess: h, Target: harness.Target{Name: "exec", Patience: timeout, Open: s.open}}
	for _, ability := range hello.Can {
		p.Target.Abilities |= serverAbilities[ability]
	}
	s.hasStats = slices.Contains(hello.Can, "stats")
	if hello.Root != "" {
		p.Target.Abilities |= harness.KubernetesPaths
	}
	if err := s.prepare(ctx, &p.Target); err != nil {
		_ = p.Close() // the cause is already known
		return nil, untestable(fmt.Sprintf("server of command %q", command), err)
	}
	return p, nil
}

// An execServer is a server that the suite controls through the control hook.
type execServer struct {
	*hookProcess
	hello    serverHello
	options  Options
	hasStats bool
}

func (e *execServer) prepare(ctx context.Context, t *harness.Target) error {
	if e.hello.CA != "" {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM([]byte(e.hello.CA)) {
			return invalidf(`"ca" must contain a certificate in PEM`)
		}
		e.options.TLS = &tls.Config{RootCAs: roots}
	}
	if e.hello.Kind == "" {
		return invalidf(`"kind" is missing: the first line must name the kind of the objects`)
	}
	u, err := parseURL(e.hello.URL)
	if err != nil {
		return err
	}
	t.AdapterError = e.takeInvalid
	t.Ping = func(ctx context.Context) error {
		if err := e.failure(); err != nil {
			return err
		}
		return ping(ctx, u)
	}
	return probeVariants(ctx, t, e.instance(u, ""))
}

func (e *execServer) instance(u *url.URL, at string) *harness.Instance {
	return &harness.Instance{
		URL: u, Kind: e.hello.Kind, KubernetesPath: e.hello.Root,
		Network: e.options.network(), Store: &execStore{e, at},
		OpenWatches: func() int { return e.watches(at) },
		Compact: func(ctx context.Context) error {
			return e.do(ctx, serverRequest{Do: "compact", At: at}, nil)
		},
		Drain: func(ctx context.Context) error {
			return e.do(ctx, serverRequest{Do: "drain", At: at}, nil)
		},
	}
}

// watches returns the number of open watches, or -1 if the server does not report this number.
func (e *execServer) watches(at string) int {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	var a serverReply
	stats := struct{ Watches int }{-1}
	if e.do(ctx, serverRequest{Do: "stats", At: at}, &a) != nil || json.Unmarshal(a.Stats, &stats) != nil {
		return -1
	}
	return stats.Watches
}

func (e *execServer) do(ctx context.Context, r serverRequest, a *serverReply) error {
	if a == nil {
		a = new(serverReply)
	}
	return e.request(ctx, func(id int) any { r.ID = id; return r }, a)
}

// open creates a collection for a case. If the command cannot create collections, open returns the
// one collection that all cases share.
func (e *execServer) open(t harness.T, s harness.Setup) *harness.Instance {
	t.Helper()
	a := serverReply{URL: e.hello.URL}
	opens := e.canOpen()
	if opens {
		request := serverRequest{Do: "open", Bookmarks: s.Timing.Bookmark.Milliseconds(), TTL: s.TTL.Milliseconds()}
		if err := e.do(t.Context(), request, &a); err != nil {
			t.Fatalf("open a collection: %v", err)
		}
	}
	u, err := parseURL(a.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), cleanupTimeout)
		defer cancel()
		if e.hasStats && t.Failed() {
			var now serverReply
			err := e.do(ctx, serverRequest{Do: "stats", At: a.At}, &now)
			t.Logf("server stats: %s %v", now.Stats, err)
		}
		if opens {
			if err := e.do(ctx, serverRequest{Do: "close", At: a.At}, nil); err != nil {
				t.Logf("close the collection: %v", err)
			}
		}
	})
	i := e.instance(u, a.At)
	i.TTL = cmp.Or(time.Duration(a.TTL)*time.Millisecond, s.TTL)
	return i
}

func (e *execServer) canOpen() bool { return slices.Contains(e.hello.Can, "open") }

// An execStore writes to a collection through the control hook.
type execStore struct {
	*execServer
	at string
}

// Put creates or replaces an object.
func (e *execStore) Put(ctx context.Context, key listwatch.Key, data []byte) (listwatch.Version, error) {
	return e.write(ctx, serverRequest{Do: "put", Key: &hookKey{key.Namespace, key.Name}, Object: data})
}

// Delete deletes an object.
func (e *execStore) Delete(ctx context.Context, key listwatch.Key) (listwatch.Version, error) {
	return e.write(ctx, serverRequest{Do: "delete", Key: &hookKey{key.Namespace, key.Name}})
}

func (e *execStore) write(ctx context.Context, r serverRequest) (listwatch.Version, error) {
	r.At = e.at
	var a serverReply
	if err := e.do(ctx, r, &a); err != nil {
		return 0, err
	}
	return listwatch.ParseVersion(a.Version)
}
