package watchserver

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
)

// list responds with a list: {"kind":"…List","apiVersion":…,"metadata":{…},"items":[…]}.
func (s *Server) list(w http.ResponseWriter, r *http.Request, a *apihttp.Admitted, e Endpoint, q request) error {
	started := time.Now()
	if err := a.BeginList(); err != nil {
		return err
	}
	d := listwatch.Describe(e.Source)
	form, err := a.ChooseBody(true, d)
	if err != nil {
		return err
	}
	form.Projection = q.Projection // of the request or, by default, of e
	if !projects(e.Source) {
		q.Projection = listwatch.Projection{} // form reduces the objects, without copies
	}
	page, err := listWithTimeout(r.Context(), e.Source, q)
	if err == nil {
		err = listwatch.CheckVersion(e.Source, page.Version)
	}
	if err == nil {
		err = a.GrowList(len(page.Items))
	}
	if err != nil {
		return err
	}
	written, err := apihttp.WriteList(w, r, apihttp.ListBody{
		Description: d, Page: page, Form: form,
	})
	if err != nil {
		return err
	}
	s.traceList(r, a, page, written, started)
	return nil
}

// projects reports whether source has only some members of its objects, so that it must see the
// projection of a request.
func projects(source listwatch.Source) bool {
	s, ok := listwatch.As[interface{ Projection() listwatch.Projection }](source)
	return ok && !s.Projection().Empty()
}

// listWithTimeout lists source within the timeout of the request.
func listWithTimeout(ctx context.Context, source listwatch.Source, q request) (listwatch.Page, error) {
	if q.Timeout == 0 {
		return source.List(ctx, q.Query)
	}
	limited, cancel := context.WithTimeout(ctx, q.Timeout)
	defer cancel()
	page, err := source.List(limited, q.Query)
	// The error of a deadline that the source itself has set is returned unchanged.
	if errors.Is(err, context.DeadlineExceeded) && limited.Err() != nil && ctx.Err() == nil {
		return listwatch.Page{}, errListTimeout(q.Timeout)
	}
	return page, err
}

// traceList calls Trace.Listed for a list that started at start.
func (s *Server) traceList(r *http.Request, a *apihttp.Admitted, page listwatch.Page, bytes int64, start time.Time) {
	if t := s.Trace; t != nil && t.Listed != nil {
		t.Listed(r.Context(), List{
			Request: describeRequest(r, a), Items: len(page.Items), Bytes: bytes, Version: page.Version,
			Took: time.Since(start),
		})
	}
}
