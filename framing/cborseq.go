package framing

import "io"

// CBORSeq is application/cbor-seq (RFC 8742): each event is one CBOR map {"type","object"}, put together from the JSON and turned
// back into JSON without passing through float64.
//
// # From JSON to CBOR
//
//   - A number without point and exponent is an integer: of 64 bits where it fits, a bignum (RFC 8949 3.4.3) otherwise.
//   - Every other number, and -0, is a float64 if the shortest decimal form of that float64 has the very value that was written,
//     and a decimal fraction (3.4.4) otherwise: 0.1 is a float64, 1e400 is 4([400, 1]).
//   - A number of more than 16,384 digits or with an exponent beyond 63 bits is an error of code Unsupported.
//   - Strings are UTF-8; half of a surrogate pair, which UTF-8 can't spell, becomes U+FFFD, as encoding/json reads it.
//   - Members keep their order, and those of one name are all kept: RFC 8949 5.6 calls such a map invalid, and a strict peer
//     refuses it, but JSON with them is no better. Lengths are definite.
//
// # From CBOR to JSON
//
// Both definite and indefinite lengths are read, floats of 16, 32 and 64 bits, the tag 55799 anywhere, and what Kubernetes makes
// of Go: a byte string is a string, if it is UTF-8, and under tag 22 the base64 text of its bytes. A float is written so that it
// stays one (1.0 and not 1). NaN, infinities, undefined, names that are no strings and all other tags are refused.
type CBORSeq struct{}

var _ MessageFramer = CBORSeq{}

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

// NewDecoder implements [Framer]. The limit holds for the JSON that an event becomes, too.
func (CBORSeq) NewDecoder(r io.Reader, limit int) Decoder {
	c := &cborReader{}
	d := newDecoder(r, limit, c)
	c.most = d.in.limit
	return d
}

// AppendMessage implements [MessageFramer].
func (c CBORSeq) AppendMessage(dst []byte, e WatchEvent) ([]byte, error) {
	return c.AppendEvent(dst, e)
}

// DecodeMessage implements [MessageFramer].
func (CBORSeq) DecodeMessage(message []byte) (WatchEvent, error) {
	text := make([]byte, 0, len(message)+len(message)/2) // enough for most
	return noRest(decodeMessage(message, &cborReader{body: bodyReader{text: text}, open: make([]cborLevel, 0, 16)}))
}

// Binary implements [MessageFramer].
func (CBORSeq) Binary() bool { return true }

// The major types (RFC 8949 3.1) and the tags in use.
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

	// The additional information of a head: 24 to 27 say how many bytes of argument follow.
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
