package kubeproto

import (
	"bufio"
	"errors"
	"fmt"
	"io"
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
	l := listReader{in: bufio.NewReaderSize(r, 32<<10), limit: limit}
	l.list.Remaining = -1
	err := l.read()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return framing.List{}, err
	}
	return l.list, nil
}

// A listReader reads a list item by item.
type listReader struct {
	in       *bufio.Reader
	consumed int64  // the bytes read from in
	limit    int    // the maximum number of bytes of an item, and of each other part of a list
	head     []byte // the start of the envelope of an item, before the tag of its message
	list     framing.List
	hasItems bool
}

// ReadByte implements [io.ByteReader].
func (l *listReader) ReadByte() (byte, error) {
	c, err := l.in.ReadByte()
	if err == nil {
		l.consumed++
	}
	return c, err
}

func (l *listReader) read() error {
	start, err := l.bytes(len(prefix))
	if err != nil {
		return err
	}
	if string(start) != prefix {
		return corruptList(fmt.Errorf("it starts with %q, want %q", start, prefix))
	}
	for {
		number, size, err := l.field()
		switch {
		case err == io.EOF && l.hasItems:
			return nil
		case err != nil:
			return err
		}
		switch number {
		case typeField:
			err = l.typeMeta(size)
		case rawField:
			err = l.message(size)
		case contentEncodingField, contentTypeField:
			if size > 0 {
				err = corruptList(errors.New("its content has an encoding or a type"))
			}
		default:
			err = l.skip(size)
		}
		if err != nil {
			return unexpected(err)
		}
	}
}

// unexpected returns err, which happened within a list.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// field reads the tag of a field, and the size of its content. Only BytesType is accepted, because
// Kubernetes' lists have no other fields. The error is io.EOF if there is no field.
func (l *listReader) field() (number protowire.Number, size int64, err error) {
	tag, err := l.varint()
	if err != nil {
		return 0, 0, err
	}
	number, wire := protowire.DecodeTag(tag)
	if number <= 0 || wire != protowire.BytesType {
		return 0, 0, corruptList(fmt.Errorf("field %d has wire type %d", number, wire))
	}
	n, err := l.varint()
	if err != nil {
		return 0, 0, unexpected(err)
	}
	if size = int64(n); size < 0 {
		return 0, 0, corruptList(errors.New("a length is negative"))
	}
	return number, size, nil
}

// varint reads a varint. The error is io.EOF if there is not a single byte.
func (l *listReader) varint() (uint64, error) {
	var buf [10]byte
	for i := range buf {
		c, err := l.ReadByte()
		if err != nil && i > 0 {
			return 0, unexpected(err)
		}
		if err != nil {
			return 0, err
		}
		if buf[i] = c; c < 0x80 {
			v, n := protowire.ConsumeVarint(buf[:i+1])
			if n < 0 {
				return 0, corruptList(protowire.ParseError(n))
			}
			return v, nil
		}
	}
	return 0, corruptList(errors.New("a number is too long"))
}

// bytes reads n bytes.
func (l *listReader) bytes(n int) ([]byte, error) {
	data := make([]byte, n)
	return data, l.fill(data)
}

func (l *listReader) fill(data []byte) error {
	n, err := io.ReadFull(l.in, data)
	l.consumed += int64(n)
	return err
}

func (l *listReader) skip(n int64) error {
	skipped, err := io.CopyN(io.Discard, l.in, n)
	l.consumed += skipped
	return err
}

// part reads a part of the list with n bytes, other than an item.
func (l *listReader) part(n int64) ([]byte, error) {
	if n > int64(l.limit) {
		return nil, l.tooLarge()
	}
	return l.bytes(int(n))
}

func (l *listReader) tooLarge() error {
	return corruptList(fmt.Errorf("an object exceeds the limit of %d bytes", l.limit))
}

// typeMeta reads the type of the list.
func (l *listReader) typeMeta(size int64) error {
	data, err := l.part(size)
	if err != nil {
		return err
	}
	apiVersion, kind, err := parseType(data)
	if err != nil {
		return corruptList(err)
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
		return corruptList(errors.New("the type of the list must precede its items, which follow once"))
	}
	l.hasItems = true
	for end := l.consumed + size; l.consumed < end; {
		number, size, err := l.field()
		if err != nil {
			return err
		}
		if size > end-l.consumed {
			return corruptList(errors.New("a length exceeds the length of the list"))
		}
		switch number {
		case metadataField:
			err = l.metadata(size)
		case itemField:
			err = l.item(size)
		default:
			err = l.skip(size)
		}
		if err != nil {
			return err
		}
		if l.consumed > end {
			return corruptList(errors.New("an item exceeds the length of the list"))
		}
	}
	return nil
}

func (l *listReader) metadata(size int64) error {
	data, err := l.part(size)
	if err != nil {
		return err
	}
	var m metav1.ListMeta
	if err := m.Unmarshal(data); err != nil {
		return corruptList(err)
	}
	if l.list.Version, err = listwatch.ParseVersion(m.ResourceVersion); err != nil {
		return &listwatch.Error{Code: listwatch.Unsupported, Message: "the metadata of the list", Err: err}
	}
	if l.list.Continue = m.Continue; m.RemainingItemCount != nil {
		l.list.Remaining = int(*m.RemainingItemCount)
	}
	return nil
}

func (l *listReader) item(size int64) error {
	if size > int64(l.limit) {
		return l.tooLarge()
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
		err = corruptList(err)
	}
	l.list.Items = append(l.list.Items, o)
	return err
}

func corruptList(cause error) error {
	return &listwatch.Error{Code: listwatch.Corrupt, Op: "list", Message: "the list", Err: cause}
}
