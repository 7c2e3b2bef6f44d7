package watchserver

import (
	"net/http"

	"github.com/listwatch/listwatch/internal/apihttp"
)

// ServeHTTP serves Source.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Serve(w, r, Endpoint{Source: s.Source, SharedCompression: s.SharedCompression})
}

// Serve responds to r with a list or a watch of e. An error becomes a Kubernetes Status.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, e Endpoint) {
	r, a, ok := s.entrance().Enter(w, r)
	if !ok {
		return
	}
	defer a.Leave()
	a.Respond(w, r, s.serve(w, r, a, e))
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, a *apihttp.Admitted, e Endpoint) error {
	if a.Resource == (apihttp.Resource{}) {
		a.Resource = e.resource()
	}
	e, err := e.admit(r)
	if err != nil {
		return err
	}
	q, err := parseRequest(r, a.Parsed, e)
	if err != nil {
		return err
	}
	if part := unionPartOf(r); part != nil {
		part.server, part.user, part.endpoint, part.request = s, UserOf(r.Context()), e, q
		return nil
	}
	apihttp.SetEpoch(w.Header(), e.Source)
	apihttp.OfferQuery(w.Header())
	if q.watch {
		return s.watch(w, r, a, e, q)
	}
	return s.list(w, r, a, e, q)
}

// Gate returns a handler that passes a request on to next only if s admits it: if its URL, its
// headers and its origin are acceptable, and if Access.Authenticator accepts its credentials. Use
// it for handlers at other paths of the same server, such as handlers that write. They get the user
// from [UserOf]. Serve includes the gate, and repeats no check if the request has passed it.
func (s *Server) Gate(next http.Handler) http.Handler { return s.entrance().Handler(next) }

// entrance returns the gate of s.
func (s *Server) entrance() *apihttp.Gate {
	s.gateOnce.Do(func() {
		g := &s.gate
		g.AllowOrigins = func() []string { return s.Access.Origins }
		g.NoCompression = func() bool { return s.NoCompression }
		g.Limits, g.Draining = s.Limits.ofRequests, s.watches.drainContext
		g.Sender, g.Authenticate = s.Access.sender, s.Access.authenticate
		g.Refused, g.Changed = s.traceRefused, s.traceChange
	})
	return &s.gate
}

// traceRefused calls Trace.Refused for the error response to r.
func (s *Server) traceRefused(r *http.Request, a *apihttp.Admitted, err error) {
	if t := s.Trace; t != nil && t.Refused != nil {
		t.Refused(r.Context(), describeRequest(r, a), err)
	}
}

// traceChange calls Trace.Changed for the write r.
func (s *Server) traceChange(r *http.Request, a *apihttp.Admitted, c apihttp.Change) {
	if t := s.Trace; t != nil && t.Changed != nil {
		t.Changed(r.Context(), Change{
			Request: describeRequest(r, a), Verb: c.Verb, Key: c.Key, Version: c.Version, DryRun: c.DryRun,
			Took: c.Took,
		})
	}
}
