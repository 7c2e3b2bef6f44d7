// Package protoencoding serves a collection of Protocol Buffers messages of its own to Go clients
// as they are, and to pages as JSON.
//
// encoding.go is the encoding of an object and of a list, framing.go is the framing of a watch, and
// readings.go has the collection, as two Sources.
package protoencoding

import (
	"io"

	"google.golang.org/protobuf/proto"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
)

// mediaType is the media type of objects, lists and streams.
const mediaType = "application/vnd.example.readings"

// Encoding is the encoding of a [Reading].
type Encoding struct{}

var _ framing.ListEncoding = Encoding{}

// marshaler writes equal messages as equal bytes.
var marshaler = proto.MarshalOptions{Deterministic: true}

// marshal returns m in the encoding. A message without an invalid string can always be encoded.
func marshal(m proto.Message) []byte {
	data, err := marshaler.Marshal(m)
	if err != nil {
		panic(err) // Read and Readings.Put refuse invalid strings
	}
	return data
}

// Read implements [listwatch.Encoding].
func (Encoding) Read(data []byte) (*listwatch.Object, error) {
	var r Reading
	if err := proto.Unmarshal(data, &r); err != nil {
		return nil, &listwatch.Error{Code: listwatch.Invalid, Message: "not a Reading", Err: err}
	}
	return &listwatch.Object{
		Key:     listwatch.Key{Namespace: r.GetRoom(), Name: r.GetSensor()},
		Version: listwatch.Version(r.GetVersion()),
		Labels:  r.GetLabels(),
		Data:    data,
	}, nil
}

// Fields implements [listwatch.Encoding]. The collection has no fields for selectors.
func (Encoding) Fields(_ []byte, paths []string) []string { return make([]string, len(paths)) }

// WithVersion implements [listwatch.Encoding]. Unknown fields remain, because proto keeps them.
func (Encoding) WithVersion(data []byte, v listwatch.Version) []byte {
	var r Reading
	if err := proto.Unmarshal(data, &r); err != nil {
		panic(err) // Read has accepted data
	}
	r.Version = uint64(v)
	return marshal(&r)
}

// MediaType implements [framing.ListEncoding].
func (Encoding) MediaType() string { return mediaType }

// WriteList implements [framing.ListEncoding]. The server has no representations of a Reading.
func (Encoding) WriteList(w io.Writer, l framing.List, _ func([]byte, *listwatch.Object) []byte) error {
	out := &ReadingList{Version: uint64(l.Version), Continue: l.Continue}
	if l.Continue != "" && l.Remaining >= 0 {
		out.Remaining = proto.Int64(int64(l.Remaining))
	}
	for _, o := range l.Items {
		out.Items = append(out.Items, o.Data)
	}
	_, err := w.Write(marshal(out))
	return err
}

// ReadList implements [framing.ListEncoding]. The client limits the size of the list.
func (e Encoding) ReadList(r io.Reader, limit int) (framing.List, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return framing.List{}, err
	}
	var in ReadingList
	if err := proto.Unmarshal(data, &in); err != nil {
		return framing.List{}, corrupt("the list is malformed", err)
	}
	l := framing.List{APIVersion: apiVersion, Kind: kind + "List", Page: listwatch.Page{
		Version: listwatch.Version(in.GetVersion()), Continue: in.GetContinue(), Remaining: -1,
	}}
	if in.Remaining != nil {
		l.Remaining = int(in.GetRemaining())
	}
	for _, item := range in.GetItems() {
		if len(item) > limit {
			return framing.List{}, corrupt("an object exceeds the limit", nil)
		}
		o, err := e.Read(item)
		if err != nil {
			return framing.List{}, corrupt("an object of the list is malformed", err)
		}
		l.Items = append(l.Items, o)
	}
	return l, nil
}

func corrupt(message string, cause error) error {
	return &listwatch.Error{Code: listwatch.Corrupt, Message: message, Err: cause}
}
