package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/compress"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// A listBody reads a list object by object, so that a large list is not held in memory twice. The
// members of the list may come in any order:
// {"kind":"…List","apiVersion":…,"metadata":{…},"items":[…]}.
type listBody struct {
	// Immutable after construction.
	in    *boundedReader
	dec   *json.Decoder
	limit int64 // the maximum number of bytes of one object

	// itemKind and itemAPIVersion are the type of the items. They are empty if the type is not
	// known.
	itemKind, itemAPIVersion string
	page                     listwatch.Page
	hasItems                 bool
	valueBuffer              json.RawMessage // reused for each value
}

// newListBody returns a reader of r. One object may have at most limit bytes, and the whole
// list at most total bytes. If total is negative, the list is not limited.
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
		return corruptList(fmt.Sprintf("unexpected %v after the list", t), nil)
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
		// A list of kind "List" may hold objects of any kind, each with its own kind member.
		// b.itemKind is then empty.
		if b.itemKind, ok = strings.CutSuffix(kind, "List"); !ok {
			return &listwatch.Error{Code: listwatch.Unsupported, Message: fmt.Sprintf("the response has kind %.64q, want a kind that ends in List", kind)}
		}
		return nil
	case "apiVersion":
		return b.decode(&b.itemAPIVersion)
	case "metadata":
		return b.metadata()
	case "items":
		return b.items()
	}
	return b.decode(&b.valueBuffer)
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
		return &listwatch.Error{Code: listwatch.Unsupported, Message: "the metadata of the list", Err: err}
	}
	b.page.Version, b.page.Continue = version, m.Continue
	if m.RemainingItemCount != nil {
		b.page.Remaining = *m.RemainingItemCount
	}
	return nil
}

func (b *listBody) items() error {
	if b.hasItems {
		return corruptList("the list has two members named items", nil)
	}
	b.hasItems = true
	switch t, err := b.token(); {
	case err != nil:
		return err
	case t == nil:
		return nil // no items: Go encodes a nil slice as null
	case t != json.Delim('['):
		return corruptList(fmt.Sprintf("items is %v, want an array", t), nil)
	}
	for b.more() {
		if err := b.decode(&b.valueBuffer); err != nil {
			return err
		}
		o, err := parseItem(b.valueBuffer)
		if err != nil {
			return err
		}
		b.page.Items = append(b.page.Items, o)
	}
	return b.expect(json.Delim(']'))
}

// parseItem parses an object with the same checks as the object of an event.
func parseItem(data []byte) (*listwatch.Object, error) {
	e, err := framing.WatchEvent{Type: "ADDED", Object: data}.Event()
	if err != nil {
		e := *listwatch.AsError(err)
		e.Op = "list"
		return nil, &e
	}
	return e.Object, nil
}

// finish checks that the list is complete, and adds kind and apiVersion to the objects. It cannot
// add them earlier, because the kind of the list may follow the items.
func (b *listBody) finish() error {
	switch {
	case !b.hasItems:
		return corruptList("the list has no items", nil)
	case b.page.Version == 0:
		return &listwatch.Error{Code: listwatch.Unsupported, Message: "the list has no resourceVersion, so it cannot be watched"}
	case b.page.Continue == "":
		b.page.Remaining = 0
	}
	if b.itemKind == "" || b.itemAPIVersion == "" {
		return nil
	}
	for i, o := range b.page.Items {
		if data := rawjson.WithType(o.Data, b.itemAPIVersion, b.itemKind); len(data) > len(o.Data) {
			b.page.Items[i] = &listwatch.Object{Key: o.Key, Version: o.Version, Labels: o.Labels, Data: data}
		}
	}
	return nil
}

// more reports whether the array or object has another element. It calls allow,
// because the decoder may have to read ahead.
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

// allow permits the decoder to read one more value.
func (b *listBody) allow() { b.in.allowed = b.dec.InputOffset() + b.limit + maxSpace }

// maxSpace is the maximum number of bytes, such as white space and names, between two values.
const maxSpace = 64 << 10

func corruptList(message string, cause error) *listwatch.Error {
	return &listwatch.Error{Code: listwatch.Corrupt, Op: "list", Message: message, Err: cause}
}

// listBodyError returns Corrupt for bytes that are not a list, and Unavailable for a lost
// connection.
func listBodyError(err error) error {
	if _, ok := errors.AsType[*listwatch.Error](err); ok {
		return err
	}
	_, isSyntax := errors.AsType[*json.SyntaxError](err)
	_, isType := errors.AsType[*json.UnmarshalTypeError](err)
	_, isCompression := errors.AsType[*compress.CorruptError](err)
	if isSyntax || isType || isCompression {
		return corruptList("the response is not a valid list", err)
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return &listwatch.Error{Code: listwatch.Unavailable, Op: "list", Message: "the response ended within the list", Err: err}
}
