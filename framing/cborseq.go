package framing

import "io"

// CBORSeq is application/cbor-seq (RFC 8742): each event is one CBOR map with the members
// type and object. Objects are converted from JSON and back without passing through
// float64. docs/adr/0012 explains why this package does not use a library for that.
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
type CBORSeq struct{}

var _ SubprotocolFramer = CBORSeq{}

// MediaType implements [Framer].
func (CBORSeq) MediaType() string { return "application/cbor-seq" }

// AppendEvent implements [Framer].
func (CBORSeq) AppendEvent(dst []byte, e WatchEvent) ([]byte, error) {
	if err := e.check(); err != nil {
		return dst, err
	}
	out := appendHead(dst, cborMap, 2)
	out = appendText(out, "type")
	out = appendText(out, e.Type)
	out = appendText(out, "object")
	out, err := appendCBOR(out, e.Object)
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
	return rejectRest(decodeMessage(message, &cborReader{body: bodyReader{text: text}, open: make([]cborLevel, 0, 16)}))
}

// Binary implements [MessageFramer].
func (CBORSeq) Binary() bool { return true }

// Subprotocol implements [SubprotocolFramer].
func (CBORSeq) Subprotocol() string { return "listwatch.v1.cbor" }

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

	// The additional information of a head. 24 to 27 mean that 1, 2, 4 or 8 bytes of argument
	// follow.
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
