package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/compress"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// A listBody reads a list, object by object: {"kind":"…List","apiVersion":…,"metadata":{…},"items":[…]}, members in any order.
type listBody struct {
	// Immutable after construction.
	in    *boundedReader
	dec   *json.Decoder
	limit int64 // of one object

	kind, apiVersion string // of the objects; empty: not known, or not yet
	page             listwatch.Page
	hasItems         bool
	raw              json.RawMessage // scratch
}

// newListBody returns a reader of r in which an object may have limit bytes, and all of it total; negative: unlimited.
func newListBody(r io.Reader, limit, total int64) *listBody {
	in := &boundedReader{r: r, total: total}
	return &listBody{in: in, dec: json.NewDecoder(in), limit: min(limit, 1<<40), page: listwatch.Page{Remaining: -1}}
}

func (b *listBody) read() (listwatch.Page, error) {
	err := b.readObject()
	if err == nil {
		err = b.finish()
	}
	if err != nil {
		return listwatch.Page{}, listBodyError(err)
	}
	return b.page, nil
}

func (b *listBody) readObject() error {
	if err := b.expect(json.Delim('{')); err != nil {
		return err
	}
	for b.more() {
		name, err := b.token()
		if err != nil {
			return err
		}
		if err := b.member(name); err != nil {
			return err
		}
	}
	if err := b.expect(json.Delim('}')); err != nil {
		return err
	}
	switch t, err := b.token(); {
	case err == nil:
		return corruptList(fmt.Sprintf("%v follows the list", t), nil)
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

func (b *listBody) member(name json.Token) error {
	switch name {
	case "kind":
		var kind string
		if err := b.decode(&kind); err != nil {
			return err
		}
		var ok bool
		// The items of the kind List itself bear their own: then this leaves nothing.
		if b.kind, ok = strings.CutSuffix(kind, "List"); !ok {
			return &listwatch.Error{Code: listwatch.Unsupported, Message: fmt.Sprintf("the answer is of kind %.64q, want a list", kind)}
		}
		return nil
	case "apiVersion":
		return b.decode(&b.apiVersion)
	case "metadata":
		return b.metadata()
	case "items":
		return b.items()
	}
	return b.decode(&b.raw)
}

func (b *listBody) metadata() error {
	var m struct {
		ResourceVersion    string
		Continue           string
		RemainingItemCount *int
	}
	if err := b.decode(&m); err != nil {
		return err
	}
	version, err := listwatch.ParseVersion(m.ResourceVersion)
	if err != nil {
		return &listwatch.Error{Code: listwatch.Unsupported, Message: "metadata of the list", Err: err}
	}
	b.page.Version, b.page.Continue = version, m.Continue
	if m.RemainingItemCount != nil {
		b.page.Remaining = *m.RemainingItemCount
	}
	return nil
}

func (b *listBody) items() error {
	if b.hasItems {
		return corruptList("items is there twice", nil)
	}
	b.hasItems = true
	switch t, err := b.token(); {
	case err != nil:
		return err
	case t == nil:
		return nil // how Go spells a slice that was never made
	case t != json.Delim('['):
		return corruptList(fmt.Sprintf("items is %v, want an array", t), nil)
	}
	for b.more() {
		if err := b.decode(&b.raw); err != nil {
			return err
		}
		o, err := parseItem(b.raw)
		if err != nil {
			return err
		}
		b.page.Items = append(b.page.Items, o)
	}
	return b.expect(json.Delim(']'))
}

// parseItem reads an object, which must be fit to be an event's: both go into the same places.
func parseItem(data []byte) (*listwatch.Object, error) {
	e, err := framing.WatchEvent{Type: "ADDED", Object: data}.Event()
	if err != nil {
		e := *listwatch.AsError(err)
		e.Op = "list"
		return nil, &e
	}
	return e.Object, nil
}

// finish checks what can be said only at the end, and completes the objects: the list's kind may come after them.
func (b *listBody) finish() error {
	switch {
	case !b.hasItems:
		return corruptList("the answer has no items", nil)
	case b.page.Version == 0:
		return &listwatch.Error{Code: listwatch.Unsupported, Message: "the list has no resourceVersion, so it can't be followed"}
	case b.page.Continue == "":
		b.page.Remaining = 0
	}
	if b.kind == "" || b.apiVersion == "" {
		return nil
	}
	for i, o := range b.page.Items {
		typed, err := b.typed(o)
		if err != nil {
			return err
		}
		b.page.Items[i] = typed
	}
	return nil
}

// typed returns o with kind and apiVersion, where it lacks them, before all else, in Kubernetes' order.
func (b *listBody) typed(o *listwatch.Object) (*listwatch.Object, error) {
	var head []byte
	for _, m := range [...]struct{ name, value string }{{"kind", b.kind}, {"apiVersion", b.apiVersion}} {
		if rawjson.Lookup(o.Data, m.name) != nil {
			continue
		}
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		head = append(head, `,"`+m.name+`":`...)
		head = append(head, value...)
	}
	if head == nil {
		return o, nil
	}
	head[0] = '{'
	// An object with metadata has a member, which a comma must go before.
	return parseItem(slices.Concat(head, []byte{','}, o.Data[1:]))
}

// more is More of the decoder, which reads ahead.
func (b *listBody) more() bool {
	b.allow()
	return b.dec.More()
}

func (b *listBody) token() (json.Token, error) {
	b.allow()
	return b.dec.Token()
}

func (b *listBody) decode(v any) error {
	b.allow()
	return b.dec.Decode(v)
}

func (b *listBody) expect(want json.Delim) error {
	t, err := b.token()
	if err == nil && t != want {
		err = corruptList(fmt.Sprintf("got %v, want %v", t, want), nil)
	}
	return err
}

// allow lets the decoder read one more value.
func (b *listBody) allow() { b.in.allowed = b.dec.InputOffset() + b.limit + space }

// space is what may be between two values.
const space = 64 << 10

// A boundedReader fails where more is read than is allowed: a decoder that needs to has met a value that is too large.
type boundedReader struct {
	r       io.Reader
	total   int64 // negative: unlimited
	allowed int64
	read    int64
}

func (r *boundedReader) Read(p []byte) (int, error) {
	most := r.allowed
	if r.total >= 0 {
		most = min(most, r.total)
	}
	if r.read >= most {
		// At the end of what is allowed the stream may end, too.
		n, err := r.r.Read(p[:min(1, len(p))])
		if n > 0 {
			err = corruptList(fmt.Sprintf("an object or the list has more bytes than allowed: %d", most), nil)
		}
		return 0, err
	}
	n, err := r.r.Read(p[:min(int64(len(p)), most-r.read)])
	r.read += int64(n)
	return n, err
}

func corruptList(message string, cause error) *listwatch.Error {
	return &listwatch.Error{Code: listwatch.Corrupt, Op: "list", Message: message, Err: cause}
}

// listBodyError tells bytes that are no list from a connection that broke.
func listBodyError(err error) error {
	if _, ok := errors.AsType[*listwatch.Error](err); ok {
		return err
	}
	_, isSyntax := errors.AsType[*json.SyntaxError](err)
	_, isType := errors.AsType[*json.UnmarshalTypeError](err)
	_, isCoding := errors.AsType[*compress.CorruptError](err)
	if isSyntax || isType || isCoding {
		return corruptList("the answer is no list", err)
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return &listwatch.Error{Code: listwatch.Unavailable, Op: "list", Message: "the answer was cut off", Err: err}
}
