package watchserver

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"unique"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/internal/httpheader"
	"github.com/listwatch/listwatch/internal/rest"
	"github.com/listwatch/listwatch/internal/wire"
	"github.com/listwatch/listwatch/transport"
)

// watch opens a watch. If watch returns an error, nothing has been written. Otherwise it returns
// the stream for the caller to run, or nil if the stream is detached.
func (s *Server) watch(
	w http.ResponseWriter, r *http.Request, a *apihttp.Admitted, e Endpoint, q request,
) (*stream, *transport.Stream, error) {
	projection := cmp.Or(e.projections, q.Projection.String())
	from := origin{request: describeRequest(r, a), projection: projection, weight: q.weight}
	if err := s.watches.reserve(from.claim(), s.Limits); err != nil {
		if s.watches.isDraining() && r.ProtoMajor == 1 {
			w.Header().Set("Connection", "close")
		}
		return nil, nil, err
	}
	added := false
	defer func() {
		if !added { // also after a panic of the source, from which net/http recovers
			s.watches.release(from.claim())
		}
	}()
	if q.SendsInitialEvents() {
		// The runtime runs goroutines in the order in which they become ready. If many clients
		// return at once, any other request would wait until all their watches are open.
		if s.entrance().Turns().Await(r.Context(), from.request.Client) != nil {
			return nil, nil, apihttp.ContextError(r.Context())
		}
	}
	st, out, err := s.open(w, r, a, e, q, from)
	if err != nil {
		return nil, nil, err
	}
	s.watches.add(st)
	added = true
	if a.Outdated() { // Recheck may have missed st
		st.recheck()
	}
	if !e.Until.IsZero() {
		st.failAt(e.Until, e.untilError())
	}
	if out.Detached {
		st.start(out) // Drain waits for its end
		if out.Serve != nil {
			go out.Serve()
		}
		return nil, nil, nil
	}
	return st, out, nil
}

func (s *Server) open(
	w http.ResponseWriter, r *http.Request, a *apihttp.Admitted, e Endpoint, q request, from origin,
) (*stream, *transport.Stream, error) {
	framings := s.framings().For(listwatch.Describe(e.Source).Encoding)
	representation, accept, err := a.ChooseStream(framings, httpheader.RequestsWebSocket(r))
	if err != nil {
		return nil, nil, err
	}
	watcher, err := e.Source.Watch(r.Context(), q.Query)
	if err != nil {
		if !isStreamError(err) {
			return nil, nil, err
		}
		watcher = failedPoller{err}
	}
	apihttp.SetFields(w.Header(), q.Projection)
	q.Timeout = s.Timing.watchDuration(q.Timeout)
	o := s.transportOptions(framings)
	o.Accept = accept
	r = e.SharedCompression.options(r, q.Query, e.Source, &o)
	if isConflating(watcher) {
		w.Header().Set(transport.ConflateHeader, rest.FormatConflation(q.Conflate))
		o.Segments = false // streams that skip different events cannot share them
	}
	if a.NoCompression {
		r = transport.WithoutCompression(r)
	}
	out, transportName, err := s.accept(w, r, o)
	if err != nil {
		watcher.Close()
		return nil, nil, err
	}
	st := newStream(s, e.Source, q, watcher, out)
	st.encoder = wire.NewStreamEncoder(out, representation, s.sharedSegmenter())
	from.transport, from.mediaType, from.compression = transportName,
		out.Encoder.Framer.MediaType(), out.Encoder.Compression()
	st.origin = unique.Make(from)
	st.attachment = s.attach(r, e, out)
	a.Forget()
	return st, out, nil
}

// attach returns the attachment of the stream out. It keeps the request only if that is necessary.
func (s *Server) attach(r *http.Request, e Endpoint, out *transport.Stream) *attachment {
	recheck := e.recheck()
	keepsRequest := s.Trace != nil || recheck != nil || UserOf(r.Context()).Recheck != nil
	if out.Detached && !keepsRequest && out.Finish == nil && out.Progress == nil {
		return detached
	}
	a := &attachment{ctx: r.Context(), authorize: recheck, finishing: out.Finish, progress: out.Progress}
	switch {
	case !out.Detached:
	case keepsRequest:
		a.ctx = context.WithoutCancel(a.ctx)
	default:
		a.ctx = detached.ctx
	}
	if !out.Detached || out.Finish != nil {
		a.closed = make(chan struct{})
	}
	return a
}

// isStreamError reports whether the server accepts a watch that cannot start because of err,
// and then sends err as an ERROR event. It does so for errors about the history, which clients
// thus receive in the same way before and after the start of a watch.
func isStreamError(err error) bool {
	return errors.Is(err, listwatch.Expired) || errors.Is(err, listwatch.NotYet)
}

// accept opens the stream over the first transport that claims r, and returns the name of that
// transport.
func (s *Server) accept(w http.ResponseWriter, r *http.Request,
	o transport.Options,
) (*transport.Stream, string, error) {
	for _, tr := range s.transports() {
		if tr.Claims(r) {
			out, err := tr.Accept(w, r, o)
			return out, tr.Name(), err
		}
	}
	return nil, "", &listwatch.Error{
		Code: listwatch.Unsupported, Status: http.StatusHTTPVersionNotSupported, Message: "no transport for " + r.Proto,
	}
}
