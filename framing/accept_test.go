package framing

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch"
)

func TestParseAccept(t *testing.T) {
	for _, c := range []struct {
		accept []string
		want   []MediaRange
	}{
		{nil, nil},
		{[]string{""}, nil},
		{[]string{" , ,"}, nil},
		{[]string{"application/json"}, []MediaRange{{"application", "json", nil, 1000}}},
		{
			[]string{"Application/JSON ; Charset=UTF-8;q=0.5"},
			[]MediaRange{{"application", "json", map[string]string{"charset": "UTF-8"}, 500}},
		},
		{
			[]string{"*/*;q=0,text/*;q=1.000", "a/b;q=0.001"},
			[]MediaRange{{"*", "*", nil, 0}, {"text", "*", nil, 1000}, {"a", "b", nil, 1}},
		},
		{
			[]string{`a/b;x="1,2;\"3\\";y=z;q=0.25`},
			[]MediaRange{{"a", "b", map[string]string{"x": `1,2;"3\`, "y": "z"}, 250}},
		},
		// RFC 9110 12.5.1: q may precede other parameters.
		{[]string{"a/b;q=0.5;x=1"}, []MediaRange{{"a", "b", map[string]string{"x": "1"}, 500}}},
		{[]string{"a/b;;x=1; ;"}, []MediaRange{{"a", "b", map[string]string{"x": "1"}, 1000}}},
		{
			[]string{"text/html, image/gif, *; q=.2, */*; q=.2"},
			[]MediaRange{
				{"text", "html", nil, 1000},
				{"image", "gif", nil, 1000},
				{"*", "*", nil, 200},
				{"*", "*", nil, 200},
			},
		},
		{
			[]string{"application/json;as=Table;v=v1;g=meta.k8s.io,application/json"},
			[]MediaRange{
				{"application", "json", map[string]string{"as": "Table", "v": "v1", "g": "meta.k8s.io"}, 1000},
				{"application", "json", nil, 1000},
			},
		},
	} {
		got, err := ParseAccept(c.accept)
		if err != nil || !cmp.Equal(got, c.want) {
			t.Errorf("%q: %v\n%s", c.accept, err, cmp.Diff(c.want, got))
		}
	}
}

func TestInvalidAcceptIsRejected(t *testing.T) {
	for _, accept := range []string{
		"json", "application/", "/json", "a b/c", "a/b c", "*/json", "a/b;q", "a/b;q=", "a/b;q=2", "a/b;q=1.001",
		"a/b;q=0.1234", "a/b;q=-1", "a/b;q=x", "a/b;q=.",
		"a/b;q=1;q=1", "a/b;x=1;X=2", `a/b;x="1`, `a/b;x="1\`, "a/b;=1", "a/b,,c", "a/b/c", "a/b;x=1 y=2", "a/é",
		"a/b;x =1", "a/b;q=0.5x",
	} {
		got, err := ParseAccept([]string{"text/plain", accept})
		if !errors.Is(err, listwatch.Unsupported) || listwatch.AsError(err).HTTPStatus() != http.StatusNotAcceptable {
			t.Errorf("%q: got %v and %v, want Unsupported and 406", accept, got, err)
		}
	}
}

// This test covers the conformance cases handshake/accept-default, accept-range, accept-q,
// accept-q0 and accept-406 without HTTP.
func TestNegotiate(t *testing.T) {
	var none Framer
	kube := CBORSeq{Kubernetes: true}
	for _, c := range []struct {
		accept   string // each line is a header
		want     Framer
		messages Framer // the result if only message framers are allowed
	}{
		{"", JSON{}, JSON{}},
		{"*/*", JSON{}, JSON{}},
		{"application/*", JSON{}, JSON{}},
		{"application/*;q=0.1", JSON{}, JSON{}},
		{"text/*", SSE{}, none},
		{"text/event-stream", SSE{}, none},
		{"TEXT/Event-Stream", SSE{}, none},
		{"application/json-seq", JSONSeq{}, none},
		{"application/cbor-seq", CBORSeq{}, CBORSeq{}},
		{"application/cbor", kube, kube},
		{"application/vnd.listwatch.json-prefixed", LengthPrefixed{}, none},
		{"application/vnd.kubernetes.protobuf;stream=watch,application/json", JSON{}, JSON{}},
		{"application/cbor, application/json", kube, kube},
		{"application/json, application/cbor", JSON{}, JSON{}},

		// RFC 9110 12.4.2: a greater weight wins over the order.
		{"application/json;q=0.5, text/event-stream;q=0.9", SSE{}, JSON{}},
		{"text/event-stream;q=0.5, application/json;q=0.501", JSON{}, JSON{}},
		{"application/json;q=0.5\ntext/event-stream", SSE{}, JSON{}},
		{"text/event-stream, application/json", SSE{}, JSON{}}, // equal weights: the first wins
		{"text/event-stream, application/json;charset=utf-8", SSE{}, JSON{}},
		{"*/*, text/event-stream", SSE{}, JSON{}}, // text/event-stream is more specific
		{"application/json, */*", JSON{}, JSON{}},
		{"*/*;q=0.9, application/json;q=0.1", SSE{}, CBORSeq{}},
		// text/event-stream is more specific than text/*, so its weight applies.
		{"text/*;q=0.3, text/event-stream;q=0.7, application/json;q=0.5", SSE{}, JSON{}},

		// A weight of zero excludes a type.
		{"application/json;q=0", none, none},
		{"application/json;q=0, */*", SSE{}, CBORSeq{}},
		{"*/*, application/json;q=0", SSE{}, CBORSeq{}},
		{"application/*;q=0, */*;q=0.1", SSE{}, none},
		{"*/*;q=0", none, none},
		{"*/*;q=0, application/json", JSON{}, JSON{}},
		{"application/cbor;q=0, application/cbor-seq", CBORSeq{}, CBORSeq{}},
		{"application/cbor, application/cbor-seq;q=0", none, none},
		{"application/cbor, application/*;charset=utf-8;q=0", kube, kube},

		// Parameters.
		{"application/json;charset=utf-8", JSON{}, JSON{}},
		{`application/json; charset="UTF-8"`, JSON{}, JSON{}},
		{"application/json;stream=watch", JSON{}, JSON{}},
		{"application/json;charset=latin1", none, none},
		{"application/json;as=Table;v=v1;g=meta.k8s.io", none, none},
		{
			"application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", JSON{}, JSON{},
		},
		{"application/json;as=Table;v=v1;g=meta.k8s.io, text/event-stream", SSE{}, none},
		// The range with a parameter is more specific, so its weight of zero applies.
		{"application/json;charset=utf-8;q=0, application/json", none, none},
		{"application/json;stream=x", none, none},

		{"application/yaml", none, none},
		{"text/html, image/*", none, none},
	} {
		accept := strings.Split(c.accept, "\n")
		if c.accept == "" {
			accept = nil
		}
		for messages, want := range map[bool]Framer{false: c.want, true: c.messages} {
			ranges, err := ParseAccept(accept)
			if err != nil {
				t.Fatalf("%q: %v", c.accept, err)
			}
			got, err := Default().Negotiate(ranges, messages)
			if got != want || (err == nil) != (want != none) {
				t.Errorf("%q, messages %v: got %+v and %v, want %+v", c.accept, messages, got, err, want)
			}
			if e := listwatch.AsError(err); err != nil &&
				(e.Code != listwatch.Unsupported || e.HTTPStatus() != http.StatusNotAcceptable ||
					!strings.Contains(e.Message, "application/json, ") ||
					messages == strings.Contains(e.Message, "available: application/json, text/event-stream")) {
				t.Errorf("%q, messages %v: got %v, want a 406 that lists the media types", c.accept, messages, err)
			}
		}
	}
}

func TestRegistryRejectsInvalidFramers(t *testing.T) {
	for name, framers := range map[string][]Framer{
		"none": {}, "nil": {nil}, "duplicate": {JSON{}, SSE{}, JSON{}}, "no type": {fakeFramer("json")},
		"star": {fakeFramer("application/*")}, "upper case": {fakeFramer("a/B")},
		"subprotocol with a space": {namedFramer{name: "a b"}}, "reserved subprotocol": {namedFramer{name: "v1"}},
		"duplicate subprotocol": {JSON{}, namedFramer{name: JSON{}.Subprotocol()}},
		"parameter":             {fakeFramer("a/b;c=d")}, "space": {fakeFramer(" a/b")},
		"list": {fakeFramer("a/b,c/d")}, "empty": {fakeFramer("")},
	} {
		if _, err := NewRegistry(framers...); !errors.Is(err, listwatch.Invalid) {
			t.Errorf("%s: got %v, want Invalid", name, err)
		}
	}
	r, err := NewRegistry(fakeFramer("a/b"), JSON{})
	if err != nil {
		t.Fatal(err)
	}
	if f, err := r.Negotiate(nil, false); f != Framer(fakeFramer("a/b")) {
		t.Errorf("got %v and %v, want the first framer", f, err)
	}
	if f, err := r.Negotiate(nil, true); f != Framer(JSON{}) {
		t.Errorf("got %v and %v, want the first message framer", f, err)
	}
	if _, err := NewRegistry(allFramers...); err != nil {
		t.Error(err)
	}
}

// A namedFramer is JSON with another media type and subprotocol.
type namedFramer struct {
	JSON
	name string
}

func (namedFramer) MediaType() string     { return "example/named" }
func (n namedFramer) Subprotocol() string { return n.name }

func TestLookupSubprotocol(t *testing.T) {
	named := namedFramer{name: "example.v1.json"}
	r, err := NewRegistry(JSON{}, SSE{}, named)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]Framer{
		"listwatch.v1.json": JSON{}, "example.v1.json": named, "": nil, "v1": nil,
		"LISTWATCH.V1.JSON": nil,
	} {
		if f, ok := r.LookupSubprotocol(name); f != want || ok != (want != nil) {
			t.Errorf("%q: got %v, %v, want %v", name, f, ok, want)
		}
	}
	if _, err := NewRegistry(JSON{}, namedFramer{}); err != nil {
		t.Errorf("a framer without a subprotocol: %v", err)
	}
}

// A fakeFramer has only a media type.
type fakeFramer string

func (f fakeFramer) MediaType() string                                    { return string(f) }
func (f fakeFramer) AppendEvent(dst []byte, _ WatchEvent) ([]byte, error) { return dst, nil }
func (f fakeFramer) NewDecoder(io.Reader, int) Decoder                    { return nil }

func TestLookupParsesContentType(t *testing.T) {
	var none Framer
	for contentType, want := range map[string]Framer{
		"application/json": JSON{}, "Application/JSON; charset=UTF-8": JSON{},
		"application/json;stream=watch;x=y": JSON{}, "text/event-stream;charset=utf-8": SSE{},
		"application/json-seq": JSONSeq{}, "application/cbor-seq": CBORSeq{},
		"application/vnd.listwatch.json-prefixed": LengthPrefixed{},
		"application/json;charset=latin1":         none, "application/cbor": none, "text/html": none, "": none,
		"*/*":           none,
		"application/*": none, "application/json, text/plain": none, "json": none,
	} {
		if got, ok := Default().Lookup(contentType); got != want || ok != (want != none) {
			t.Errorf("%q: got %T, %v, want %T", contentType, got, ok, want)
		}
	}
}

func TestMediaRangeStringIsParsable(t *testing.T) {
	for _, accept := range []string{
		"*/*", "text/*;q=0.000", "application/json;q=0.050", "application/json;as=Table;v=v1;g=meta.k8s.io;q=0.999",
		`a/b;c="d\"e\\f g"`, `a/b;c=""`,
	} {
		want, err := ParseAccept([]string{accept})
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseAccept([]string{want[0].String()})
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", accept, err, diff)
		}
	}
}
