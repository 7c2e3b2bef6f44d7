package adapters

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/url"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/cases"
)

// A Process is a command under test. Close ends it.
type Process struct {
	// Target is what to run the cases on.
	Target cases.Target
	*hook
}

// serverHello is the first line of a server's command (docs/conformance-hook.md).
type serverHello struct {
	URL, Kind, Root, CA string
	Can                 []string
}

// serverWords are what a server's command may say that it can, and what cases ask for; "open" and "stats" are dealt with apart.
var serverWords = map[string]cases.Ability{
	"open": cases.SoleWriter, "put": cases.Writes, "dense": cases.ConsecutiveVersions, "compact": cases.Compacts, "spaces": cases.Namespaces, "fields": cases.FieldSelectors,
	"lives": cases.UnrelatedCollection, "drain": cases.Drains, "stats": cases.CountsWatches,
}

// A serverRequest is a line for a server's command.
type serverRequest struct {
	ID     int             `json:"id"`
	Do     string          `json:"do"`
	At     string          `json:"at,omitempty"`
	Key    *hookKey        `json:"key,omitempty"`
	Object json.RawMessage `json:"object,omitempty"`
}

type hookKey struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// A serverAnswer is what such a line is answered by.
type serverAnswer struct {
	At, URL, Version string
	Stats            json.RawMessage
}

// ExecServer starts a command that starts a server and does to it what cases ask for. What it writes to its standard error goes to notes. Patience
// is how long a case waits for what must come; zero: 10 s.
func ExecServer(ctx context.Context, command string, notes io.Writer, patience time.Duration) (*Process, error) {
	var hello serverHello
	h, err := startHook(ctx, command, notes, &hello)
	if err != nil {
		return nil, err
	}
	s := &execServer{hook: h, hello: hello, access: Options{Timeout: patience}}
	p := &Process{hook: h, Target: cases.Target{Name: "exec", Patience: patience, Open: s.open}}
	for _, word := range hello.Can {
		p.Target.Abilities |= serverWords[word]
		s.stats = s.stats || word == "stats"
	}
	if hello.Root != "" {
		p.Target.Abilities |= cases.KubernetesPaths
	}
	if err := s.prepare(ctx, &p.Target); err != nil {
		_ = p.Close() // what is wrong is known
		return nil, unusable("the server of "+command, err)
	}
	return p, nil
}

// An execServer is a server behind a hook.
type execServer struct {
	*hook
	hello  serverHello
	access Options
	stats  bool
}

func (s *execServer) prepare(ctx context.Context, t *cases.Target) error {
	if s.hello.CA != "" {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM([]byte(s.hello.CA)) {
			return invalidf(`there is no certificate in PEM in "ca"`)
		}
		s.access.TLS = &tls.Config{RootCAs: roots}
	}
	if s.hello.Kind == "" {
		return invalidf(`it does not say of what "kind" its objects are`)
	}
	u, err := parseURL(s.hello.URL)
	if err != nil {
		return err
	}
	return tryWays(ctx, t, s.site(u, ""))
}

func (s *execServer) site(u *url.URL, at string) *cases.Instance {
	return &cases.Instance{
		URL: u, Kind: s.hello.Kind, KubernetesPath: s.hello.Root, Network: s.access.network(), Store: &execStore{s, at},
		OpenWatches: func() int { return s.watches(at) },
		Compact:     func(ctx context.Context) error { return s.do(ctx, serverRequest{Do: "compact", At: at}, nil) },
		Drain:       func(ctx context.Context) error { return s.do(ctx, serverRequest{Do: "drain", At: at}, nil) },
	}
}

// watches is how many the server says are open; negative: it does not say.
func (s *execServer) watches(at string) int {
	ctx, cancel := context.WithTimeout(context.Background(), cleanTime)
	defer cancel()
	var a serverAnswer
	stats := struct{ Watches int }{-1}
	if s.do(ctx, serverRequest{Do: "stats", At: at}, &a) != nil || json.Unmarshal(a.Stats, &stats) != nil {
		return -1
	}
	return stats.Watches
}

func (s *execServer) do(ctx context.Context, r serverRequest, a *serverAnswer) error {
	if a == nil {
		a = new(serverAnswer)
	}
	return s.ask(ctx, func(id int) any { r.ID = id; return r }, a)
}

// open gives a case a collection of its own, if the command can.
func (s *execServer) open(t cases.T, _ cases.Setup) *cases.Instance {
	t.Helper()
	a := serverAnswer{URL: s.hello.URL}
	opens := s.opens()
	if opens {
		if err := s.do(t.Context(), serverRequest{Do: "open"}, &a); err != nil {
			t.Fatalf("open a collection: %v", err)
		}
	}
	u, err := parseURL(a.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), cleanTime)
		defer cancel()
		if s.stats && t.Failed() {
			var now serverAnswer
			err := s.do(ctx, serverRequest{Do: "stats", At: a.At}, &now)
			t.Logf("stats of the server: %s %v", now.Stats, err)
		}
		if opens {
			if err := s.do(ctx, serverRequest{Do: "close", At: a.At}, nil); err != nil {
				t.Logf("close the collection: %v", err)
			}
		}
	})
	return s.site(u, a.At)
}

func (s *execServer) opens() bool {
	for _, word := range s.hello.Can {
		if word == "open" {
			return true
		}
	}
	return false
}

// An execStore writes to a collection behind a hook.
type execStore struct {
	*execServer
	at string
}

// Put creates or replaces an object.
func (s *execStore) Put(ctx context.Context, key listwatch.Key, data []byte) (listwatch.Version, error) {
	return s.write(ctx, serverRequest{Do: "put", Key: &hookKey{key.Namespace, key.Name}, Object: data})
}

// Delete removes an object.
func (s *execStore) Delete(ctx context.Context, key listwatch.Key) (listwatch.Version, error) {
	return s.write(ctx, serverRequest{Do: "delete", Key: &hookKey{key.Namespace, key.Name}})
}

func (s *execStore) write(ctx context.Context, r serverRequest) (listwatch.Version, error) {
	r.At = s.at
	var a serverAnswer
	if err := s.do(ctx, r, &a); err != nil {
		return 0, err
	}
	return listwatch.ParseVersion(a.Version)
}
