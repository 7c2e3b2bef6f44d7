package watchserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// list answers a list: {"kind":"…List","apiVersion":…,"metadata":{…},"items":[…]}.
func (s *Server) list(w http.ResponseWriter, r *http.Request, t Endpoint, q request) error {
	shape, err := representJSON(r, t.Represent, true)
	if err != nil {
		return err
	}
	ctx := r.Context()
	if q.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, q.timeout)
		defer cancel()
	}
	page, err := t.Source.List(ctx, q.Query)
	if q.timeout > 0 && errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil && r.Context().Err() == nil {
		return timedOut(q.timeout) // a source may have deadlines of its own, which it tells of itself
	}
	if err != nil {
		return err
	}
	head, err := listHead(listwatch.Describe(t.Source), page, shape)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-cache, private")
	h.Add("Vary", "Accept")
	if r.Method == http.MethodHead {
		return nil
	}
	out := newBody(w, r, http.StatusOK, cmp.Or(s.Limits.WriteTimeout, transport.DefaultWriteTimeout))
	if q.pretty {
		var whole, indented bytes.Buffer
		writeList(&whole, head, page.Items, shape)
		if err := json.Indent(&indented, whole.Bytes(), "", "  "); err != nil {
			return &listwatch.Error{Code: listwatch.Corrupt, Op: "list", Err: err}
		}
		out.Write(indented.Bytes())
	} else {
		writeList(out, head, page.Items, shape)
	}
	out.Close() // an error means that the client is gone
	return nil
}

// jsonAlone is what lists and single objects can be had in.
var jsonAlone = func() *framing.Registry {
	r, err := framing.NewRegistry(framing.JSON{})
	if err != nil {
		panic("watchserver: " + err.Error())
	}
	return r
}()

// listHead is a list up to its items.
func listHead(d listwatch.Description, page listwatch.Page, shape ListRepresentation) ([]byte, error) {
	var m struct {
		ResourceVersion    string `json:"resourceVersion"`
		Continue           string `json:"continue,omitempty"`
		RemainingItemCount *int   `json:"remainingItemCount,omitempty"`
	}
	m.ResourceVersion, m.Continue = page.Version.String(), page.Continue
	if page.Continue != "" && page.Remaining >= 0 {
		m.RemainingItemCount = &page.Remaining
	}
	metadata, err := json.Marshal(m)
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Unknown, Op: "list", Err: err}
	}
	if shape != nil {
		return shape.AppendListHead(nil, metadata), nil
	}
	head, err := json.Marshal(struct {
		Kind       string          `json:"kind"`
		APIVersion string          `json:"apiVersion"`
		Metadata   json.RawMessage `json:"metadata"`
	}{d.Kind + "List", d.APIVersion, metadata})
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Unknown, Op: "list", Err: err}
	}
	return slices.Concat(head[:len(head)-1], []byte(`,"items":[`)), nil
}

// writeList writes a list, of which all end alike: the items are the last member.
func writeList(w io.Writer, head []byte, items []*listwatch.Object, shape ListRepresentation) {
	w.Write(head)
	var scratch []byte
	comma := []byte{','}
	for i, o := range items {
		if i > 0 {
			w.Write(comma)
		}
		item := o.Data
		if shape != nil {
			scratch = shape.AppendItem(scratch[:0], o)
			item = scratch
		}
		w.Write(item)
	}
	w.Write([]byte("]}\n"))
}
