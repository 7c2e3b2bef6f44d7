package kubeproto

import (
	"bytes"
	"errors"
	"fmt"
	"iter"

	"google.golang.org/protobuf/encoding/protowire"
)

// A field is a field of a message.
type field struct {
	number     protowire.Number
	wire       protowire.Type
	start, end int    // with the tag, in the message; end is zero if the field is absent
	value      []byte // without its length
}

// fields returns an iterator over the fields of a message. An error is the last element.
func fields(message []byte) iter.Seq2[field, error] {
	return func(yield func(field, error) bool) {
		for at := 0; at < len(message); {
			f := field{start: at}
			n, size := 0, 0
			if f.number, f.wire, n = protowire.ConsumeTag(message[at:]); n >= 0 {
				size = protowire.ConsumeFieldValue(f.number, f.wire, message[at+n:])
			}
			if n < 0 || size < 0 {
				yield(f, protowire.ParseError(min(n, size)))
				return
			}
			f.end = at + n + size
			f.value = message[at+n : f.end]
			if f.wire == protowire.BytesType {
				f.value, _ = protowire.ConsumeBytes(f.value) // ConsumeFieldValue has checked it
			}
			if !yield(f, nil) {
				return
			}
			at = f.end
		}
	}
}

// set sets f to found. A field that occurs twice is legal, and decoders merge messages. But no
// server writes it, and only one of the two could be changed, so set refuses it.
func (f *field) set(found field) error {
	switch {
	case found.wire != protowire.BytesType:
		return fmt.Errorf("field %d has wire type %d, want %d", found.number, found.wire, protowire.BytesType)
	case f.end != 0:
		return fmt.Errorf("field %d occurs twice", found.number)
	}
	*f = found
	return nil
}

// The prefix of all bodies, the end of an envelope, whose content has no encoding and no type of
// its own, and the numbers of fields. ObjectMeta is the first field of all objects, and ListMeta
// that of all lists.
const (
	prefix      = "k8s\x00"
	envelopeEnd = "\x1a\x00\x22\x00"

	typeField, rawField, contentEncodingField, contentTypeField = 1, 2, 3, 4 // of runtime.Unknown
	apiVersionField, kindField                                  = 1, 2       // of runtime.TypeMeta
	metadataField                                               = 1

	nameField, namespaceField, versionField, labelsField, managedFieldsField = 1, 3, 6, 11, 17
)

// An object is an object or another message in its envelope.
type object struct {
	body             []byte // without the prefix
	apiVersion, kind []byte
	raw              field // of body
	metadata         field // of raw
}

// parse parses an object. data must have metadata.
func parse(data []byte) (o object, err error) {
	var ok bool
	if o.body, ok = bytes.CutPrefix(data, []byte(prefix)); !ok {
		return o, fmt.Errorf("it does not start with %q", prefix)
	}
	var typeMeta field
	for f, err := range fields(o.body) {
		if err != nil {
			return o, err
		}
		switch f.number {
		case typeField:
			err = typeMeta.set(f)
		case rawField:
			err = o.raw.set(f)
		case contentEncodingField, contentTypeField:
			if len(f.value) > 0 {
				err = fmt.Errorf("it contains %.64q", f.value)
			}
		}
		if err != nil {
			return o, err
		}
	}
	if o.apiVersion, o.kind, err = parseType(typeMeta.value); err != nil {
		return o, err
	}
	for f, err := range fields(o.raw.value) {
		if err == nil && f.number == metadataField {
			err = o.metadata.set(f)
		}
		if err != nil {
			return o, err
		}
	}
	if o.metadata.end == 0 {
		return o, errors.New("it has no metadata")
	}
	return o, nil
}

// parseType parses a TypeMeta.
func parseType(message []byte) (apiVersion, kind []byte, err error) {
	var version, name field
	for f, err := range fields(message) {
		if err == nil && f.number == apiVersionField {
			err = version.set(f)
		} else if err == nil && f.number == kindField {
			err = name.set(f)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return version.value, name.value, nil
}

// withMetadata returns the object with other metadata, which is the concatenation of parts.
func (o *object) withMetadata(parts ...[]byte) []byte {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	raw, old := o.raw.value, o.metadata
	rawSize := len(raw) - (old.end - old.start) + protowire.SizeTag(metadataField) + protowire.SizeBytes(size)
	total := len(prefix) + len(o.body) - (o.raw.end - o.raw.start) + protowire.SizeTag(rawField) +
		protowire.SizeBytes(rawSize)
	out := append(append(make([]byte, 0, total), prefix...), o.body[:o.raw.start]...)
	out = appendLength(out, rawField, rawSize)
	out = append(out, raw[:old.start]...)
	out = appendLength(out, metadataField, size)
	for _, p := range parts {
		out = append(out, p...)
	}
	out = append(out, raw[old.end:]...)
	return append(out, o.body[o.raw.end:]...)
}

// appendLength appends the tag of a field, and the length of its content.
func appendLength(dst []byte, number protowire.Number, size int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(dst, number, protowire.BytesType), uint64(size))
}

// appendBytes appends a field.
func appendBytes[T string | []byte](dst []byte, number protowire.Number, content T) []byte {
	return append(appendLength(dst, number, len(content)), content...)
}

// appendEnvelope appends the start of an envelope for a message of the given type and size. The
// message and envelopeEnd must follow.
func appendEnvelope[T string | []byte](dst []byte, apiVersion, kind T, size int) []byte {
	dst = appendLength(append(dst, prefix...), typeField, sizeField(len(apiVersion))+sizeField(len(kind)))
	dst = appendBytes(appendBytes(dst, apiVersionField, apiVersion), kindField, kind)
	return appendLength(dst, rawField, size)
}

// sizeField returns the size of a field with a number below 16 and a content of n bytes.
func sizeField(n int) int { return 1 + protowire.SizeBytes(n) }
