package kubeproto

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
)

// itemField is the number of the items of a list. They have no type of their own.
const itemField = 2

// WriteList implements [framing.ListEncoding].
func (Encoding) WriteList(
	w io.Writer, l framing.List, represent func(dst []byte, o *listwatch.Object) []byte,
) error {
	meta := metav1.ListMeta{ResourceVersion: l.Version.String(), Continue: l.Continue}
	if remaining := int64(l.Remaining); l.Continue != "" && remaining >= 0 {
		meta.RemainingItemCount = &remaining
	}
	metadata, err := meta.Marshal()
	if err != nil {
		return err
	}
	var scratch []byte
	item := func(o *listwatch.Object) ([]byte, error) {
		data := o.Data
		if represent != nil {
			scratch = represent(scratch[:0], o)
			data = scratch
		}
		parsed, err := parse(data)
		if err != nil {
			return nil, fmt.Errorf("object %s: %w", o.Key, err)
		}
		return parsed.raw.value, nil
	}
	size := sizeField(len(metadata)) // lengths come before contents
	for _, o := range l.Items {
		message, err := item(o)
		if err != nil {
			return &listwatch.Error{Code: listwatch.Corrupt, Op: "list", Err: err}
		}
		size += sizeField(len(message))
	}
	out := appendBytes(appendEnvelope(nil, l.APIVersion, l.Kind, size), metadataField, metadata)
	for _, o := range l.Items {
		if _, err := w.Write(out); err != nil {
			return err
		}
		message, err := item(o)
		if err != nil {
			return err
		}
		if _, err := w.Write(appendLength(out[:0], itemField, len(message))); err != nil {
			return err
		}
		out = append(out[:0], message...)
	}
	_, err = w.Write(append(out, envelopeEnd...))
	return err
}

// ReadList implements [framing.ListEncoding].
func (Encoding) ReadList(r io.Reader, limit int) (framing.List, error) {
	l := listReader{in: bufio.NewReaderSize(r, 32<<10), limit: int64(limit)}
	l.list.Remaining = -1
	err := l.read()
	switch {
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	case errors.Is(err, errMalformed):
		err = &listwatch.Error{Code: listwatch.Corrupt, Op: "list", Message: "the list", Err: err}
	}
	if err != nil {
		return framing.List{}, err
	}
	return l.list, nil
}

// errMalformed marks the errors of a list that is not valid.
var errMalformed = errors.New("not a list in Protocol Buffers")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errMalformed}, args...)...)
}

// A listReader reads a list item by item. An error of its methods is io.EOF if the input ends.
type listReader struct {
	in       *bufio.Reader
	consumed int64  // the bytes read from in
	limit    int64  // the maximum number of bytes of an item, and of each other part of a list
	head     []byte // the start of the envelope of an item; nil before the type of the list
	list     framing.List
	hasItems bool
}

func (l *listReader) read() error {
	start := make([]byte, len(prefix))
	if err := l.fill(start); err != nil {
		return err
	}
	if string(start) != prefix {
		return malformed("it starts with %q, want %q", start, prefix)
	}
	for {
		number, size, err := l.field()
		switch {
		case err == io.EOF && l.hasItems:
			return nil
		case err != nil:
			return err
		case number == typeField:
			err = l.typeMeta(size)
		case number == rawField:
			err = l.message(size)
		case number <= contentTypeField && size > 0:
			err = malformed("its content has an encoding or a type")
		default:
			_, err = l.part(size)
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
	}
}

// field reads the tag of a field and the size of its content. Kubernetes' lists have only fields of
// BytesType. The error is io.EOF only if there is no field.
func (l *listReader) field() (number protowire.Number, size int64, err error) {
	tag, err := l.varint()
	if err != nil {
		return 0, 0, err
	}
	n, err := l.varint()
	number, wire := protowire.DecodeTag(tag)
	switch {
	case err == io.EOF:
		return 0, 0, io.ErrUnexpectedEOF
	case err != nil:
		return 0, 0, err
	case number <= 0 || wire != protowire.BytesType || n > math.MaxInt64:
		return 0, 0, malformed("field %d has wire type %d and length %d", number, wire, n)
	}
	return number, int64(n), nil
}

// varint reads a number. The error is io.EOF only if there is no byte.
func (l *listReader) varint() (uint64, error) {
	data, err := l.in.Peek(binary.MaxVarintLen64)
	v, n := protowire.ConsumeVarint(data)
	switch {
	case n > 0:
		l.consumed += int64(n)
		_, _ = l.in.Discard(n) // these bytes are in the buffer
		return v, nil
	case err == nil:
		return 0, malformed("a number is too long")
	case err == io.EOF && len(data) > 0:
		return 0, io.ErrUnexpectedEOF
	}
	return 0, err
}

// fill reads len(data) bytes.
func (l *listReader) fill(data []byte) error {
	n, err := io.ReadFull(l.in, data)
	l.consumed += int64(n)
	return err
}

// part reads the n bytes of a part of the list.
func (l *listReader) part(n int64) ([]byte, error) {
	if n > l.limit {
		return nil, malformed("an object exceeds the limit of %d bytes", l.limit)
	}
	data := make([]byte, n)
	return data, l.fill(data)
}

// typeMeta reads the type of the list.
func (l *listReader) typeMeta(size int64) error {
	data, err := l.part(size)
	if err != nil {
		return err
	}
	apiVersion, kind, err := parseType(data)
	if err != nil {
		return malformed("its type: %w", err)
	}
	l.list.APIVersion, l.list.Kind = string(apiVersion), string(kind)
	item, isList := strings.CutSuffix(l.list.Kind, "List")
	if !isList || item == "" {
		return &listwatch.Error{
			Code:    listwatch.Unsupported,
			Message: fmt.Sprintf("the response has kind %.64q, want the kind of a list of objects of one kind", kind),
		}
	}
	l.head = appendEnvelope(nil, l.list.APIVersion, item, 0)
	l.head = l.head[:len(l.head)-2] // without the tag and the length of a message
	return nil
}

// message reads the message of the list.
func (l *listReader) message(size int64) error {
	if l.head == nil || l.hasItems {
		return malformed("the type of the list must precede its items, which follow once")
	}
	l.hasItems = true
	for end := l.consumed + size; l.consumed < end; {
		number, size, err := l.field()
		switch {
		case err != nil:
			return err
		case size > end-l.consumed:
			return malformed("an item exceeds the length of the list")
		case number == itemField:
			err = l.item(size)
		default:
			var data []byte
			if data, err = l.part(size); err == nil && number == metadataField {
				err = l.metadata(data)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *listReader) metadata(data []byte) (err error) {
	var m metav1.ListMeta
	if err := m.Unmarshal(data); err != nil {
		return malformed("its metadata: %w", err)
	}
	if l.list.Version, err = listwatch.ParseVersion(m.ResourceVersion); err != nil {
		return &listwatch.Error{Code: listwatch.Unsupported, Message: "the metadata of the list", Err: err}
	}
	if l.list.Continue = m.Continue; m.RemainingItemCount != nil {
		l.list.Remaining = int(*m.RemainingItemCount)
	}
	return nil
}

// item reads an item, and adds the envelope that it has in a watch.
func (l *listReader) item(size int64) error {
	if size > l.limit {
		return malformed("an object exceeds the limit of %d bytes", l.limit)
	}
	data := make([]byte, 0, len(l.head)+sizeField(int(size))+len(envelopeEnd))
	data = appendLength(append(data, l.head...), rawField, int(size))
	start := len(data)
	data = data[:start+int(size)]
	if err := l.fill(data[start:]); err != nil {
		return err
	}
	o, err := Encoding{}.Read(append(data, envelopeEnd...))
	if err != nil && listwatch.CodeOf(err) != listwatch.Unsupported {
		return malformed("an item: %w", err)
	}
	l.list.Items = append(l.list.Items, o)
	return err
}
