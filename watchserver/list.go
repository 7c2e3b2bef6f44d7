package watchserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// list responds with a list: {"kind":"…List","apiVersion":…,"metadata":{…},"items":[…]}.
func (s *Server) list(w http.ResponseWriter, r *http.Request, e Endpoint, q request) error {
	started := time.Now()
	r, end, err := s.Begin(r)
	if err != nil {
		return err
	}
	defer end()
	representation, mediaType, err := chooseBody(r, e.Represent, true)
	if err != nil {
		return err
	}
	page, err := listWithTimeout(r.Context(), e.Source, q)
	if err == nil {
		err = listwatch.CheckVersion(e.Source, page.Version)
	}
	if err == nil {
		err = usageOf(r.Context()).takeList(page.Items)
	}
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", mediaType)
	h.Set("Cache-Control", "no-cache, private")
	h.Add("Vary", "Accept")
	var written int64
	if r.Method != http.MethodHead {
		if written, err = writePage(w, r, listwatch.Describe(e.Source), page, representation, s.Limits.WriteTimeout); err != nil {
			return err
		}
	}
	s.traceList(r, page, written, started)
	return nil
}

// WriteList responds to r with page as a list of objects of d, in the given representation
// unless it is nil. The headers in w must contain the Content-Type; see [WriteBody]. An error
// means that the list cannot be encoded and that nothing was written.
func WriteList(w http.ResponseWriter, r *http.Request, d listwatch.Description, page listwatch.Page, representation ListRepresentation) error {
	_, err := writePage(w, r, d, page, representation, 0)
	return err
}

// writePage writes the body of a list, and returns the number of bytes written.
func writePage(
	w http.ResponseWriter, r *http.Request, d listwatch.Description, page listwatch.Page, representation ListRepresentation, timeout time.Duration,
) (int64, error) {
	start, err := listStart(d, page, representation)
	if err != nil {
		return 0, err
	}
	body := newResponseBody(w, r, http.StatusOK, cmp.Or(timeout, transport.DefaultWriteTimeout))
	defer body.w.endTurn()
	if w.Header().Get("Content-Type") != cborType {
		// An error means that the client has disconnected.
		_ = writeList(body, start, page.Items, representation)
	} else if err := writeCBORList(body, start, page.Items); err != nil {
		if body.out != nil { // the client has a part of the list
			panic(http.ErrAbortHandler)
		}
		return 0, err
	}
	body.Close() // an error means that the client has disconnected
	return body.w.written, nil
}

// listWithTimeout lists source within the timeout of the request.
func listWithTimeout(ctx context.Context, source listwatch.Source, q request) (listwatch.Page, error) {
	if q.timeout == 0 {
		return source.List(ctx, q.Query)
	}
	limited, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	page, err := source.List(limited, q.Query)
	// The error of a deadline that the source itself has set is returned unchanged.
	if errors.Is(err, context.DeadlineExceeded) && limited.Err() != nil && ctx.Err() == nil {
		return listwatch.Page{}, errListTimeout(q.timeout)
	}
	return page, err
}

// listStart returns the bytes of a list before its items.
func listStart(d listwatch.Description, page listwatch.Page, representation ListRepresentation) ([]byte, error) {
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
	if representation != nil {
		return representation.AppendListHead(nil, metadata), nil
	}
	object, err := json.Marshal(struct {
		Kind       string          `json:"kind"`
		APIVersion string          `json:"apiVersion"`
		Metadata   json.RawMessage `json:"metadata"`
	}{d.Kind + "List", d.APIVersion, metadata})
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Unknown, Op: "list", Err: err}
	}
	return slices.Concat(object[:len(object)-1], []byte(`,"items":[`)), nil
}

// writeList writes a list. Items are always the last member, so the end is the same for all
// lists. It returns the first error of w.
func writeList(w io.Writer, start []byte, items []*listwatch.Object, representation ListRepresentation) error {
	_, err := w.Write(start)
	var scratch []byte
	comma := []byte{','}
	for i, o := range items {
		if i > 0 {
			_, err = w.Write(comma)
		}
		if err != nil {
			return err
		}
		item := o.Data
		if representation != nil {
			scratch = representation.AppendItem(scratch[:0], o)
			item = scratch
		}
		if _, err = w.Write(item); err != nil {
			return err
		}
	}
	_, err = w.Write([]byte("]}\n"))
	return err
}

// writeCBORList writes a list in CBOR, for Kubernetes' clients. start is JSON. An error means
// that an object cannot be encoded, and not that the client has disconnected.
func writeCBORList(w io.Writer, start []byte, items []*listwatch.Object) error {
	// beginArray and end enclose an array of indefinite length (RFC 8949 3.2.2).
	const beginArray, end = 0x9F, 0xFF
	scratch, err := framing.AppendCBOR([]byte(framing.CBORSelfDescribed), slices.Concat(start, []byte("]}")))
	if err != nil {
		return err
	}
	// The last byte encodes the empty array of items. Begin the array with the items instead.
	scratch[len(scratch)-1] = beginArray
	w.Write(scratch)
	for _, o := range items {
		if scratch, err = framing.AppendCBOR(scratch[:0], o.Data); err != nil {
			return err
		}
		if _, err := w.Write(scratch); err != nil {
			return nil
		}
	}
	w.Write([]byte{end})
	return nil
}
