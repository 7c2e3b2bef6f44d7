package protobody

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"

	"github.com/listwatch/listwatch"
)

// MediaType is that of the bodies that are read here.
const MediaType = "application/vnd.kubernetes.protobuf"

// JSON returns the object of a body of a write as compact JSON. The error is [ErrTooLarge] where that is larger than limit bytes, or a
// *listwatch.Error: of code Unsupported, with status 415, where the table doesn't know the kind or a field that has a value; of code
// Invalid where the body is broken. It keeps nothing of body.
func ToJSON(body []byte, limit int64) ([]byte, error) {
	all, err := known()
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Unknown, Message: "the table of messages", Err: err}
	}
	return all.json(body, limit)
}

func (t *table) json(body []byte, limit int64) ([]byte, error) {
	e, err := open(body)
	if err != nil {
		return nil, refusal(err)
	}
	m := t.kind(e.apiVersion, e.kind)
	if m == nil {
		return nil, unsupported(fmt.Sprintf("the kind %q of %q is not known here", e.kind, e.apiVersion))
	}
	w := writer{out: make([]byte, 0, len(body)+len(body)/2), limit: limit}
	if err := w.object(m, e); err != nil {
		return nil, refusal(err)
	}
	return w.out, nil
}

// refusal returns err as clients get it.
func refusal(err error) error {
	if errors.Is(err, ErrTooLarge) {
		return ErrTooLarge
	}
	if unknown, ok := errors.AsType[*unknownFieldError](err); ok {
		return unsupported(unknown.Error())
	}
	return &listwatch.Error{Code: listwatch.Invalid, Message: "the body of the request must be an object in " + MediaType, Err: err}
}

// unsupported is a 415. Clients of Kubernetes' own types write Protocol Buffers by default and don't fall back on JSON: who uses them
// must learn here what to set.
func unsupported(why string) error {
	return &listwatch.Error{
		Code: listwatch.Unsupported, Status: http.StatusUnsupportedMediaType, Reason: "UnsupportedMediaType",
		Message: fmt.Sprintf("the body of the request is in %s, in which %s; in application/json it is taken "+
			"(client-go: set ContentType of rest.Config; kubectl: kubectl create ... --dry-run=client -o yaml | kubectl create -f -)", MediaType, why),
	}
}

// magic is what bodies begin with (Kubernetes, "API concepts", Protobuf encoding).
var magic = []byte("k8s\x00")

// Messages of the envelope, as the same page has them.
var (
	envelopeMessage = builtin("Unknown", field{number: 1, message: typeMeta}, field{number: 2, scalar: scalarBytes},
		field{number: 3, scalar: scalarString}, field{number: 4, scalar: scalarString})
	typeMeta = builtin("TypeMeta", field{number: 1, scalar: scalarString}, field{number: 2, scalar: scalarString})
)

// An envelope says what is in it.
type envelope struct {
	apiVersion, kind string
	raw              []byte
}

func open(body []byte) (e envelope, err error) {
	raw, ok := bytes.CutPrefix(body, magic)
	if !ok {
		return e, fmt.Errorf("does not begin with %q", magic)
	}
	values, err := envelopeMessage.values(raw)
	if err != nil {
		return e, err
	}
	if encoding, mediaType := string(values[2].data), string(values[3].data); encoding != "" || mediaType != "" && mediaType != MediaType {
		return e, fmt.Errorf("has %q in encoding %q in it", mediaType, encoding)
	}
	about, err := typeMeta.values(values[0].data)
	if err != nil {
		return e, err
	}
	for _, r := range about {
		if err := checkText(r.data); err != nil {
			return e, err
		}
	}
	e = envelope{string(about[0].data), string(about[1].data), values[1].data}
	if e.kind == "" || e.apiVersion == "" {
		return e, errors.New("says no kind, or no apiVersion")
	}
	return e, nil
}
