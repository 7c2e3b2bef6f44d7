package apihttp

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
)

// A ListBody is a list to respond with.
type ListBody struct {
	Description listwatch.Description
	Page        listwatch.Page
	Form        BodyForm
}

// WriteList responds to r with l and the headers in w, and returns the number of bytes written. It
// writes no body for HEAD. An error means that the list cannot be encoded, or that the request has
// ended, and that nothing was written.
func WriteList(w http.ResponseWriter, r *http.Request, l ListBody) (int64, error) {
	l.Form.setHeaders(w.Header())
	if r.Method == http.MethodHead {
		return 0, nil
	}
	body := newResponseBody(w, r, http.StatusOK)
	defer body.w.endTurn()
	if err := l.write(body); err != nil && body.w.lost == nil {
		if body.out != nil { // the client has a part of the list
			panic(http.ErrAbortHandler)
		}
		return 0, err
	}
	return body.w.written, body.Close()
}

// write writes the list. An error means that an object cannot be encoded or, if the list has an
// encoding, also that the client has disconnected.
func (l *ListBody) write(w io.Writer) error {
	if e := l.Form.Encoding; e != nil {
		apiVersion, kind := listType(l.Form.Representation, l.Description)
		list := framing.List{APIVersion: apiVersion, Kind: kind, Page: l.Page}
		var represent func(dst []byte, o *listwatch.Object) []byte
		if r := l.Form.Representation; r != nil {
			represent = r.AppendItem
		}
		return e.WriteList(w, list, represent)
	}
	start, err := listStart(*l)
	if err != nil {
		return err
	}
	if l.Form.MediaType == cborType {
		return l.writeCBOR(w, start)
	}
	// An error means that the client has disconnected, or that Close returns it.
	_ = l.writeJSON(w, start)
	return nil
}

// listStart returns the bytes of a list before its items, in JSON.
func listStart(l ListBody) ([]byte, error) {
	page := l.Page
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
	return appendListHead(nil, l.Form.Representation, l.Description, metadata), nil
}

// item returns an item of the list in JSON. It may use scratch.
func (l *ListBody) item(scratch []byte, o *listwatch.Object) []byte {
	switch r, p := l.Form.Representation, l.Form.Projection; {
	case r != nil:
		return r.AppendItem(scratch[:0], p.Reduce(o))
	case !p.Empty():
		return p.Append(scratch[:0], o.Data)
	}
	return o.Data
}

// writeJSON writes the list. Items are always the last member, so the end is the same for all
// lists. It returns the first error of w.
func (l *ListBody) writeJSON(w io.Writer, start []byte) error {
	_, err := w.Write(start)
	var scratch []byte
	comma := []byte{','}
	for i, o := range l.Page.Items {
		if i > 0 {
			_, err = w.Write(comma)
		}
		if err != nil {
			return err
		}
		item := l.item(scratch, o)
		if _, err = w.Write(item); err != nil {
			return err
		}
		if l.Form.Representation != nil || !l.Form.Projection.Empty() {
			scratch = item
		}
	}
	_, err = w.Write([]byte("]}\n"))
	return err
}

// writeCBOR writes the list in CBOR, for Kubernetes' clients. start is JSON. An error means
// that an object cannot be encoded, and not that the client has disconnected.
func (l *ListBody) writeCBOR(w io.Writer, start []byte) error {
	// beginArray and end enclose an array of indefinite length (RFC 8949 3.2.2).
	const beginArray, end = 0x9F, 0xFF
	scratch, err := framing.AppendCBOR([]byte(framing.CBORSelfDescribed), slices.Concat(start, []byte("]}")))
	if err != nil {
		return err
	}
	// The last byte encodes the empty array of items. Begin the array with the items instead.
	scratch[len(scratch)-1] = beginArray
	w.Write(scratch)
	for _, o := range l.Page.Items {
		if scratch, err = framing.AppendCBOR(scratch[:0], l.item(nil, o)); err != nil {
			return err
		}
		if _, err := w.Write(scratch); err != nil {
			return nil
		}
	}
	w.Write([]byte{end})
	return nil
}
