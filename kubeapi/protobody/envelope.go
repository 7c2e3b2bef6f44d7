package protobody

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"

	"github.com/listwatch/listwatch"
)

// MediaType is the media type of Kubernetes' Protocol Buffers.
const MediaType = "application/vnd.kubernetes.protobuf"

// ToJSON converts the object in a request body to compact JSON. It returns [ErrTooLarge] if the
// JSON would have more bytes than limit. Other errors are of type *listwatch.Error: with code
// Unsupported and status 415 if the kind or a field with a value is unknown, and with code Invalid
// if the body is malformed. The result shares no memory with body.
func ToJSON(body []byte, limit int64) ([]byte, error) {
	all, err := kubernetesMessages()
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Unknown, Message: "the table of messages is invalid", Err: err}
	}
	return all.toJSON(body, limit)
}

func (t *messageTable) toJSON(body []byte, limit int64) ([]byte, error) {
	e, err := parseEnvelope(body)
	if err != nil {
		return nil, requestError(err)
	}
	m := t.kind(e.apiVersion, e.kind)
	if m == nil {
		return nil, unsupported(fmt.Sprintf("the kind %q of %q is unknown", e.kind, e.apiVersion))
	}
	w := jsonWriter{out: make([]byte, 0, len(body)+len(body)/2), limit: limit}
	if err := w.object(m, e); err != nil {
		return nil, requestError(err)
	}
	return w.out, nil
}

// requestError converts err to the error that the client receives.
func requestError(err error) error {
	if errors.Is(err, ErrTooLarge) {
		return ErrTooLarge
	}
	if unknown, ok := errors.AsType[*unknownFieldError](err); ok {
		return unsupported(unknown.Error())
	}
	return &listwatch.Error{Code: listwatch.Invalid, Message: "the request body must be an object in " + MediaType, Err: err}
}

// unsupported returns an error of status 415. Typed clients of Kubernetes send Protocol
// Buffers by default and do not fall back to JSON, so the message explains how to configure
// them.
func unsupported(why string) error {
	return &listwatch.Error{
		Code: listwatch.Unsupported, Status: http.StatusUnsupportedMediaType, Reason: "UnsupportedMediaType",
		Message: fmt.Sprintf("the request body is in %s, in which %s; application/json is supported "+
			"(client-go: set ContentType of rest.Config; kubectl: kubectl create ... --dry-run=client -o yaml | kubectl create -f -)", MediaType, why),
	}
}

// magic is the prefix of every body (Kubernetes, "API concepts", Protobuf encoding).
var magic = []byte("k8s\x00")

// The messages of the envelope (Kubernetes, "API concepts", Protobuf encoding).
var (
	envelopeMessage = builtin("Unknown", field{number: 1, message: typeMeta}, field{number: 2, scalar: scalarBytes},
		field{number: 3, scalar: scalarString}, field{number: 4, scalar: scalarString})
	typeMeta = builtin("TypeMeta", field{number: 1, scalar: scalarString}, field{number: 2, scalar: scalarString})
)

// An envelope contains an encoded object and its type.
type envelope struct {
	apiVersion, kind string
	raw              []byte
}

func parseEnvelope(body []byte) (e envelope, err error) {
	raw, ok := bytes.CutPrefix(body, magic)
	if !ok {
		return e, fmt.Errorf("does not start with %q", magic)
	}
	values, err := envelopeMessage.values(raw)
	if err != nil {
		return e, err
	}
	if encoding, mediaType := string(values[2].data), string(values[3].data); encoding != "" || mediaType != "" && mediaType != MediaType {
		return e, fmt.Errorf("contains %q in encoding %q", mediaType, encoding)
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
		return e, errors.New("kind or apiVersion is missing")
	}
	return e, nil
}
