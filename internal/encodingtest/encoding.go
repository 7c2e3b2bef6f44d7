// Package encodingtest has an encoding whose bytes are not JSON, and a framing for it. Tests use
// them to find code that takes every object for JSON.
package encodingtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
)

// Encoding is JSON in which the highest bit of each byte is inverted, so that no part of it is
// JSON.
type Encoding struct{}

var _ framing.ListEncoding = Encoding{}

// Flip converts JSON to the encoding, and the encoding to JSON.
func Flip(data []byte) []byte {
	flipped := make([]byte, len(data))
	for i, c := range data {
		flipped[i] = c ^ 0x80
	}
	return flipped
}

// Object returns o, an object in JSON, in the encoding.
func Object(o *listwatch.Object) *listwatch.Object {
	if o == nil {
		return nil
	}
	return &listwatch.Object{Key: o.Key, Version: o.Version, Labels: o.Labels, Fields: o.Fields, Data: Flip(o.Data)}
}

// Text returns the JSON of o, which has the encoding or is JSON.
func Text(o *listwatch.Object) string {
	if len(o.Data) > 0 && o.Data[0] == '{' {
		return string(o.Data)
	}
	return string(Flip(o.Data))
}

// Read implements [listwatch.Encoding].
func (Encoding) Read(data []byte) (*listwatch.Object, error) {
	o, err := listwatch.ParseObject(Flip(data))
	if err != nil {
		return nil, err
	}
	o.Data = data
	return o, nil
}

// Fields implements [listwatch.Encoding].
func (Encoding) Fields(data []byte, paths []string) []string {
	read := listwatch.Description{Fields: paths}.ReadFields(Flip(data))
	values := make([]string, len(paths))
	for i, path := range paths {
		values[i] = read[path]
	}
	return values
}

// WithVersion implements [listwatch.Encoding].
func (Encoding) WithVersion(data []byte, v listwatch.Version) []byte {
	o := listwatch.Object{Data: Flip(data)}
	return Flip(o.At(v).Data)
}

// MediaType implements [framing.ListEncoding].
func (Encoding) MediaType() string { return "application/vnd.listwatch.flipped" }

// A list is the JSON of a list.
type list struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Metadata   struct {
		ResourceVersion    string `json:"resourceVersion"`
		Continue           string `json:"continue,omitempty"`
		RemainingItemCount *int   `json:"remainingItemCount,omitempty"`
	} `json:"metadata"`
	Items []json.RawMessage `json:"items"`
}

// WriteList implements [framing.ListEncoding].
func (Encoding) WriteList(
	w io.Writer, l framing.List, represent func(dst []byte, o *listwatch.Object) []byte,
) error {
	out := list{Kind: l.Kind, APIVersion: l.APIVersion, Items: []json.RawMessage{}}
	out.Metadata.ResourceVersion, out.Metadata.Continue = l.Version.String(), l.Continue
	if l.Continue != "" && l.Remaining >= 0 {
		out.Metadata.RemainingItemCount = &l.Remaining
	}
	for _, o := range l.Items {
		item := o.Data
		if represent != nil {
			item = represent(nil, o)
		}
		out.Items = append(out.Items, Flip(item))
	}
	data, err := json.Marshal(out)
	if err != nil {
		return err
	}
	_, err = w.Write(Flip(data))
	return err
}

// ReadList implements [framing.ListEncoding].
func (Encoding) ReadList(r io.Reader, limit int) (l framing.List, err error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return l, err
	}
	var in list
	if err := json.Unmarshal(Flip(data), &in); err != nil {
		return l, corrupt("list", err)
	}
	l.APIVersion, l.Kind, l.Continue, l.Remaining = in.APIVersion, in.Kind, in.Metadata.Continue, -1
	if in.Metadata.RemainingItemCount != nil {
		l.Remaining = *in.Metadata.RemainingItemCount
	}
	l.Version, err = listwatch.ParseVersion(in.Metadata.ResourceVersion)
	for _, item := range in.Items {
		if len(item) > limit {
			return l, corrupt("list", fmt.Errorf("an object exceeds %d bytes", limit))
		}
		o, readErr := Encoding{}.Read(Flip(item))
		err = errors.Join(err, readErr)
		l.Items = append(l.Items, o)
	}
	if err != nil {
		return framing.List{}, corrupt("list", err)
	}
	return l, nil
}

func corrupt(what string, cause error) error {
	return &listwatch.Error{Code: listwatch.Corrupt, Message: "the " + what + " is malformed", Err: cause}
}

// Framing is the framing of [Encoding]: a message is the type of the event, a line break, and the
// object. In a stream, each message follows its length.
type Framing struct{}

var (
	_ framing.SubprotocolFramer = Framing{}
	_ framing.EncodedFramer     = Framing{}
	_ framing.StatusDecoder     = Framing{}
)

// Framings holds the framings of package framing, and Framing.
var Framings = func() *framing.Registry {
	r, err := framing.NewRegistry(append(framing.Default().Framers(), Framing{})...)
	if err != nil {
		panic(err)
	}
	return r
}()

// MediaType implements [framing.Framer]. It is the type of lists, too, as in Kubernetes.
func (Framing) MediaType() string { return Encoding{}.MediaType() }

// ContentType implements the method of framers with parameters; see [framing.ContentTypeOf].
func (Framing) ContentType() string { return Encoding{}.MediaType() + ";stream=watch" }

// Subprotocol implements [framing.SubprotocolFramer].
func (Framing) Subprotocol() string { return "listwatch.test.flipped" }

// Encoding implements [framing.EncodedFramer].
func (Framing) Encoding() listwatch.Encoding { return Encoding{} }

// Binary implements [framing.MessageFramer].
func (Framing) Binary() bool { return true }

// AppendMessage implements [framing.MessageFramer].
func (Framing) AppendMessage(dst []byte, e framing.WatchEvent) ([]byte, error) {
	if e.Type == "" || len(e.Object) == 0 {
		return dst, &listwatch.Error{Code: listwatch.Invalid, Message: "the type or the object is empty"}
	}
	if e.Object[0] == '{' {
		e.Object = Flip(e.Object)
	}
	return append(append(append(dst, e.Type...), '\n'), e.Object...), nil
}

// AppendEvent implements [framing.Framer].
func (f Framing) AppendEvent(dst []byte, e framing.WatchEvent) ([]byte, error) {
	return framing.AppendPrefixed(dst, e, f.AppendMessage)
}

// DecodeMessage implements [framing.MessageFramer].
func (Framing) DecodeMessage(message []byte) (framing.WatchEvent, error) {
	return decode(bytes.Clone(message))
}

// NewDecoder implements [framing.Framer].
func (Framing) NewDecoder(r io.Reader, limit int) framing.Decoder {
	return framing.NewPrefixedDecoder(r, limit, decode)
}

func decode(message []byte) (framing.WatchEvent, error) {
	kind, object, ok := bytes.Cut(message, []byte{'\n'})
	if !ok || len(object) == 0 || object[0] < 0x80 {
		return framing.WatchEvent{}, corrupt("event", strconv.ErrSyntax)
	}
	e := framing.WatchEvent{Type: string(kind), Object: object[:len(object):len(object)]}
	if e.Type == "BOOKMARK" || e.Type == framing.TypeError {
		e.Object = Flip(object)
	}
	return e, nil
}

// DecodeStatus implements [framing.StatusDecoder].
func (Framing) DecodeStatus(body []byte) ([]byte, error) { return Flip(body), nil }
