package framing

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubestatus"
)

// CBORSeq is application/cbor-seq (RFC 8742): each event is one CBOR map with the members
// type and object. Objects are converted from JSON and back without passing through
// float64. docs/adr/0010 explains why this package does not use a library for that.
//
// # From JSON to CBOR
//
//   - A number without a point and an exponent is an integer of 64 bits if it fits, otherwise a
//     bignum (RFC 8949 3.4.3).
//   - Any other number, and -0, is a float64 if the shortest decimal form of that float64 has
//     exactly the value of the number. Otherwise it is a decimal fraction (3.4.4). So 0.1 is a
//     float64, and 1e400 is 4([400, 1]).
//   - A number of more than 16,384 digits or with an exponent beyond 63 bits is an error of code
//     Unsupported.
//   - Strings are UTF-8. An unpaired surrogate, which UTF-8 cannot represent, becomes U+FFFD,
//     as in encoding/json.
//   - Members keep their order. Duplicate members are kept, because the JSON has the same
//     defect. RFC 8949 5.6 calls such a map invalid, so strict peers reject it. Lengths are
//     definite.
//
// # From CBOR to JSON
//
// Definite and indefinite lengths, floats of 16, 32 and 64 bits, and the tag 55799 are accepted
// everywhere. As in Kubernetes, a byte string of UTF-8 becomes a string, and a byte string with
// tag 22 becomes its base64 text. The JSON of a float is a float (1.0 and not 1). NaN,
// infinities, undefined, names that are not strings, and all other tags are rejected.
type CBORSeq struct {
	// If Kubernetes is true, events are encoded in the form of [AppendCBOR]. Kubernetes' clients
	// need this form, and request it by the media type application/cbor. Both forms are decoded in
	// the same way.
	Kubernetes bool
}

var _ SubprotocolFramer = CBORSeq{}

// MediaType implements [Framer].
func (CBORSeq) MediaType() string { return "application/cbor-seq" }

// AppendEvent implements [Framer].
func (c CBORSeq) AppendEvent(dst []byte, e WatchEvent) ([]byte, error) {
	if err := e.check(); err != nil {
		return dst, err
	}
	form, out := exactCBOR, dst
	if c.Kubernetes {
		form, out = kubernetesCBOR, append(dst, CBORSelfDescribed...)
	}
	out = appendHead(out, cborMap, 2)
	out = form.appendText(out, "type")
	out = form.appendText(out, e.Type)
	out = form.appendText(out, "object")
	out, err := form.appendObject(out, e.Object)
	if err != nil {
		return dst, err
	}
	return out, nil
}

// NewDecoder implements [Framer]. The limit applies to the CBOR and to the JSON of an event.
func (CBORSeq) NewDecoder(r io.Reader, limit int) Decoder {
	c := &cborReader{}
	d := newDecoder(r, limit, c)
	c.maxJSON = d.in.limit
	return d
}

// AppendMessage implements [MessageFramer].
func (c CBORSeq) AppendMessage(dst []byte, e WatchEvent) ([]byte, error) {
	return c.AppendEvent(dst, e)
}

// DecodeMessage implements [MessageFramer].
func (CBORSeq) DecodeMessage(message []byte) (WatchEvent, error) {
	text := make([]byte, 0, len(message)+len(message)/2) // enough for most messages
	return rejectRest(decodeMessage(message, &cborReader{text: text, open: make([]cborLevel, 0, 16)}))
}

// Binary implements [MessageFramer].
func (CBORSeq) Binary() bool { return true }

// Subprotocol implements [SubprotocolFramer].
func (CBORSeq) Subprotocol() string { return "listwatch.v1.cbor" }

// CBORSelfDescribed is the head of the tag 55799 (RFC 8949 3.4.6). Kubernetes puts it before CBOR
// data, so that readers can recognize the data as CBOR.
const CBORSelfDescribed = "\xd9\xd9\xf7"

// ErrTooLarge is the error of [CBORToJSON] if the JSON would exceed the limit.
var ErrTooLarge = errors.New("the JSON exceeds the limit")

// AppendCBOR appends a JSON object as CBOR for Kubernetes' clients (KEP-4222), in the form of
// k8s.io/apimachinery/pkg/runtime/serializer/cbor but without [CBORSelfDescribed]:
//
//   - Strings, including member names, are byte strings. If the Go field has the type []byte,
//     these clients decode the string as base64.
//   - A number without a point and an exponent is an integer if it fits into 64 bits with a sign.
//     Any other number is the nearest float64, because these clients refuse bignums. A number
//     beyond float64 is an infinity, which these clients refuse, as they refuse the number in JSON.
//
// Members keep their order, and lengths are definite. If object is not a JSON object in UTF-8,
// the error has code Invalid and dst is returned unchanged.
func AppendCBOR(dst, object []byte) ([]byte, error) {
	out, err := kubernetesCBOR.appendObject(dst, object)
	if err != nil {
		return dst, err
	}
	return out, nil
}

// CBORToJSON converts a body, which must be one CBOR map, to compact JSON by the rules of
// [CBORSeq], so numbers keep their exact value. As in Kubernetes, no map may have two members
// of the same name. If the JSON would have more than limit bytes, the error is [ErrTooLarge];
// the limit must be positive. Any other error has code Invalid.
func CBORToJSON(body []byte, limit int) ([]byte, error) {
	c := cborReader{maxJSON: limit}
	in := input{buf: body, limit: math.MaxInt}
	if err := c.readItem(&in); err != nil {
		if err == io.EOF {
			return nil, invalidBody("it ends within an item")
		}
		if len(c.text) > limit {
			return nil, ErrTooLarge
		}
		return nil, invalidBody(kubestatus.Of(err).Message)
	}
	text := c.text
	if in.pos < len(body) {
		return nil, invalidBody("it has data after the first item")
	}
	if text[0] != '{' {
		return nil, invalidBody("it must be a map")
	}
	if len(text) > limit {
		return nil, ErrTooLarge
	}
	if duplicates := rawjson.Inspect(text).Dropped; len(duplicates) > 0 {
		return nil, invalidBody(fmt.Sprintf("it has more than one member %.100q", duplicates[0]))
	}
	return text, nil
}

func invalidBody(problem string) error {
	return &listwatch.Error{Code: listwatch.Invalid, Message: "the CBOR of the body is invalid: " + problem}
}

// The major types (RFC 8949 3.1) and tags.
const (
	cborUint = iota
	cborNegative
	cborBytes
	cborText
	cborArray
	cborMap
	cborTag
	cborSimple

	tagBignum         = 2
	tagNegativeBignum = 3
	tagDecimal        = 4
	tagBase64         = 22
	tagSelfDescribed  = 55799

	// These are values of the additional information in a head. The values 24 to 27 mean that 1, 2,
	// 4 or 8 bytes of argument follow.
	infoByte       = 24
	infoUint16     = 25
	infoUint32     = 26
	infoUint64     = 27
	infoIndefinite = 31

	cborFalse = 20
	cborTrue  = 21
	cborNull  = 22
	cborBreak = 0xFF
)
