package apihttp

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// A ListBody is a list to respond with.
type ListBody struct {
	Description    listwatch.Description
	Page           listwatch.Page
	Representation ListRepresentation // nil for the objects themselves
	// WriteTimeout limits the time that the client takes to accept each piece of the body. If zero,
	// [transport.DefaultWriteTimeout] is used.
	WriteTimeout time.Duration
}

// WriteList responds to r with l, and returns the number of bytes written. The headers in w must
// contain the Content-Type; see [WriteBody]. An error means that the list cannot be encoded, or
// that the request has ended, and that nothing was written.
func WriteList(w http.ResponseWriter, r *http.Request, l ListBody) (int64, error) {
	start, err := listStart(l.Description, l.Page, l.Representation)
	if err != nil {
		return 0, err
	}
	body := newResponseBody(w, r, http.StatusOK, cmp.Or(l.WriteTimeout, transport.DefaultWriteTimeout))
	defer body.w.endTurn()
	if w.Header().Get("Content-Type") != cborType {
		// An error means that the client has disconnected, or that Close returns it.
		_ = writeList(body, start, l.Page.Items, l.Representation)
	} else if err := writeCBORList(body, start, l.Page.Items); err != nil {
		if body.out != nil { // the client has a part of the list
			panic(http.ErrAbortHandler)
		}
		return 0, err
	}
	return body.w.written, body.Close()
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
