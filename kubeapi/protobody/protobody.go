package protobody

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"unicode/utf8"

	"github.com/listwatch/listwatch"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// MediaType is the media type of Kubernetes' Protocol Buffers.
const MediaType = runtime.ContentTypeProtobuf

// ToJSON converts the object in a request body to compact JSON. It returns [ErrTooLarge] if the
// JSON would have more bytes than limit. Other errors are of type *listwatch.Error: with code
// Unsupported and status 415 if the kind or a field with a value is unknown, and with code Invalid
// if the body is malformed. The result shares no memory with body.
func ToJSON(body []byte, limit int64) ([]byte, error) {
	out, err := convert(body, limit)
	switch unknown, isUnknown := errors.AsType[unknownError](err); {
	case err == nil, errors.Is(err, ErrTooLarge):
		return out, err
	case isUnknown:
		return nil, unsupported(unknown)
	}
	return nil, &listwatch.Error{
		Code: listwatch.Invalid, Message: fmt.Sprintf("the request body must be an object in %s: %v", MediaType, err),
	}
}

// unsupported returns an error of status 415. Typed clients of Kubernetes send Protocol
// Buffers by default and do not fall back to JSON, so the message explains how to configure
// them.
func unsupported(why unknownError) error {
	return &listwatch.Error{
		Code: listwatch.Unsupported, Status: http.StatusUnsupportedMediaType, Reason: "UnsupportedMediaType",
		Message: fmt.Sprintf("the request body is in %s, in which %s; application/json is supported "+
			"(client-go: set ContentType of rest.Config; kubectl: "+
			"kubectl create ... --dry-run=client -o yaml | kubectl create -f -)", MediaType, why),
	}
}

// magic is the prefix of every body (Kubernetes, "API concepts", Protobuf encoding).
var magic = []byte("k8s\x00")

func convert(body []byte, limit int64) ([]byte, error) {
	types := kinds()
	raw, ok := bytes.CutPrefix(body, magic)
	if !ok {
		return nil, fmt.Errorf("does not start with %q", magic)
	}
	var e runtime.Unknown
	if err := types.decode(raw, &e, limit); err != nil {
		return nil, err
	}
	switch {
	case e.ContentEncoding != "" || e.ContentType != "" && e.ContentType != MediaType:
		return nil, fmt.Errorf("contains %q in encoding %q", e.ContentType, e.ContentEncoding)
	case e.Kind == "" || e.APIVersion == "":
		return nil, errors.New("kind or apiVersion is missing")
	case !utf8.ValidString(e.Kind + e.APIVersion):
		return nil, errInvalidUTF8
	}
	version, err := schema.ParseGroupVersion(e.APIVersion)
	if err != nil || version.Version == "" {
		return nil, fmt.Errorf("has apiVersion %q, which is neither a version nor a group and a version", e.APIVersion)
	}
	object, err := types.new(version.WithKind(e.Kind))
	if err != nil {
		return nil, err
	}
	if err := types.decode(e.Raw, object, limit); err != nil {
		return nil, err
	}
	object.GetObjectKind().SetGroupVersionKind(version.WithKind(e.Kind))
	return toJSON(object, limit)
}

// decode decodes a message into an object, or into an envelope.
func (k *kindTable) decode(data []byte, into runtime.Object, limit int64) error {
	budget := memory(memoryRatio*min(limit, math.MaxInt64/memoryRatio>>1) + 1<<20)
	if err := k.messageOf(into).check(data, &budget); err != nil {
		return err
	}
	return into.(interface{ Unmarshal([]byte) error }).Unmarshal(data)
}

// memoryRatio is an upper bound on the memory of any decoded object divided by the size of its
// JSON.
const memoryRatio = 60

var errInvalidUTF8 = errors.New("not valid UTF-8")

// replaced finds the escape that encoding/json writes for invalid UTF-8.
var replaced = regexp.MustCompile(`(^|[^\\])(\\\\)*\\ufffd`)

func toJSON(object runtime.Object, limit int64) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(object); err != nil {
		return nil, err
	}
	data := bytes.TrimSuffix(out.Bytes(), []byte("\n"))
	switch {
	case int64(len(data)) > limit:
		return nil, ErrTooLarge
	case !utf8.Valid(data), // the encoder copies the JSON of a RawExtension
		bytes.Contains(data, []byte(`\ufffd`)) && replaced.Match(data):
		return nil, errInvalidUTF8
	}
	return data, nil
}
