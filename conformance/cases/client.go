package cases

import (
	"context"
	"net/http"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/transport"
)

// remote returns the client under test for the collection at s, over s's client and others.
func (e *env) remote(s *site, others ...transport.Client) listwatch.Source {
	return e.remoteWith(s, func(*client.Remote) {}, others...)
}

func (e *env) remoteTraced(s *site, trace *client.Trace, others ...transport.Client) listwatch.Source {
	return e.remoteWith(s, func(r *client.Remote) { r.Trace = trace }, others...)
}

// remoteWith is remote with what configure changes. In real time the client does not wait before it comes back.
func (e *env) remoteWith(s *site, configure func(*client.Remote), others ...transport.Client) listwatch.Source {
	r := &client.Remote{
		URL: s.watched("").String(), Network: s.Network, Transports: append([]transport.Client{s.client}, others...),
	}
	if !e.setup.FakeTime {
		r.Backoff = listwatch.Backoff{Min: -1, Max: -1}
	}
	if s.Header != nil {
		r.Header = func(context.Context, bool) (http.Header, error) { return s.Header, nil }
	}
	configure(r)
	e.Cleanup(func() { r.Close() })
	if e.target.Client == nil {
		return r
	}
	under := e.target.Client(r)
	if under == nil {
		e.Skipf("%s has no client that resumes by itself", e.target.Name)
	}
	return under
}

// follow opens a watch of r from a version.
func (e *env) follow(r listwatch.Source, version listwatch.Version) listwatch.Watcher {
	e.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), e.patience())
	defer cancel()
	w, err := r.Watch(ctx, listwatch.Query{Start: listwatch.At, Version: version})
	if err != nil {
		e.Fatalf("watch: %v", err)
	}
	e.Cleanup(func() { w.Close() })
	return w
}

// nextOf returns the next event of w.
func (e *env) nextOf(w listwatch.Watcher) (listwatch.Event, error) {
	ctx, cancel := context.WithTimeout(context.Background(), e.patience())
	defer cancel()
	var one [1]listwatch.Event
	_, err := w.Next(ctx, one[:])
	return one[0], err
}
