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

func (l *listBody) read() (listwatch.Page, error) {
	err := l.readObject()
	if err == nil {
		err = l.finish()
	}
	if err != nil {
		return listwatch.Page{}, listBodyError(err)
	}
	return l.page, nil
}

func (l *listBody) readObject() error {
	if err := l.expect(json.Delim('{')); err != nil {
		return err
	}
	for l.more() {
		name, err := l.token()
		if err != nil {
			return err
		}
		if err := l.member(name); err != nil {
			return err
		}
	}
	if err := l.expect(json.Delim('}')); err != nil {
		return err
	}
	switch t, err := l.token(); {
	case err == nil:
		return corruptList(fmt.Sprintf("unexpected %v after the list", t), nil)
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

func (l *listBody) member(name json.Token) error {
	switch name {
	case "kind":
		var kind string
		if err := l.decode(&kind); err != nil {
			return err
		}
		var ok bool
		// A list of kind "List" may hold objects of any kind, each with its own kind member.
		// l.itemKind is then empty.
		if l.itemKind, ok = strings.CutSuffix(kind, "List"); !ok {
			return &listwatch.Error{
				Code:    listwatch.Unsupported,
				Message: fmt.Sprintf("the response has kind %.64q, want a kind that ends in List", kind),
			}
		}
		return nil
	case "apiVersion":
		return l.decode(&l.itemAPIVersion)
	case "metadata":
		return l.metadata()
	case "items":
		return l.items()
	}
	return l.decode(&l.valueBuffer)
}

func (l *listBody) metadata() error {
	var m struct {
		ResourceVersion    string
		Continue           string
		RemainingItemCount *int
	}
	if err := l.decode(&m); err != nil {
		return err
	}
	version, err := listwatch.ParseVersion(m.ResourceVersion)
	if err != nil {
		return &listwatch.Error{Code: listwatch.Unsupported, Message: "the metadata of the list", Err: err}
	}
	l.page.Version, l.page.Continue = version, m.Continue
	if m.RemainingItemCount != nil {
		l.page.Remaining = *m.RemainingItemCount
	}
	return nil
}

func (l *listBody) items() error {
	if l.hasItems {
		return corruptList("the list has two members named items", nil)
	}
	l.hasItems = true
	switch t, err := l.token(); {
	case err != nil:
		return err
	case t == nil:
		return nil // no items: Go encodes a nil slice as null
	case t != json.Delim('['):
		return corruptList(fmt.Sprintf("items is %v, want an array", t), nil)
	}
	for l.more() {
		if err := l.decode(&l.valueBuffer); err != nil {
			return err
		}
		o, err := parseItem(l.valueBuffer)
		if err != nil {
			return err
		}
		l.page.Items = append(l.page.Items, o)
	}
	return l.expect(json.Delim(']'))
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
func (l *listBody) finish() error {
	switch {
	case !l.hasItems:
		return corruptList("the list has no items", nil)
	case l.page.Version == 0:
		return errUnversionedList
	case l.page.Continue == "":
		l.page.Remaining = 0
	}
	if l.itemKind == "" || l.itemAPIVersion == "" {
		return nil
	}
	for i, o := range l.page.Items {
		if data := rawjson.WithType(o.Data, l.itemAPIVersion, l.itemKind); len(data) > len(o.Data) {
			l.page.Items[i] = &listwatch.Object{Key: o.Key, Version: o.Version, Labels: o.Labels, Data: data}
		}
	}
	return nil
}

var errUnversionedList = &listwatch.Error{
	Code: listwatch.Unsupported, Message: "the list has no resourceVersion, so it cannot be watched",
}

// more reports whether the array or object has another element. It calls allow,
// because the decoder may have to read ahead.
func (l *listBody) more() bool {
	l.allow()
	return l.dec.More()
}

func (l *listBody) token() (json.Token, error) {
	l.allow()
	return l.dec.Token()
}

func (l *listBody) decode(v any) error {
	l.allow()
	return l.dec.Decode(v)
}

func (l *listBody) expect(want json.Delim) error {
	t, err := l.token()
	if err == nil && t != want {
		err = corruptList(fmt.Sprintf("got %v, want %v", t, want), nil)
	}
	return err
}

// allow permits the decoder to read one more value.
func (l *listBody) allow() { l.in.allowed = l.dec.InputOffset() + l.limit + maxSpace }

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
	return &listwatch.Error{
		Code: listwatch.Unavailable, Op: "list", Message: "the response ended within the list", Err: err,
	}
}
