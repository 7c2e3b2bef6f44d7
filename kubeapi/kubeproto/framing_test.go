package kubeproto_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/kubeapi/kubeproto"
)

var podKind = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}

func newPod(t testing.TB, v int) []byte {
	t.Helper()
	return encode(t, newObject(t, rand.New(rand.NewSource(int64(v))), podKind, v))
}

// message returns a metav1.WatchEvent as Kubernetes' own code encodes it.
func message(t testing.TB, eventType string, object []byte) []byte {
	t.Helper()
	e := metav1.WatchEvent{Type: eventType, Object: runtime.RawExtension{Raw: object}}
	out, err := e.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func prefixed(message []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)
}

func TestEventsEqualThoseOfTheServer(t *testing.T) {
	for _, eventType := range []string{"ADDED", "MODIFIED", "DELETED"} {
		pod := newPod(t, 7)
		e, want := framing.WatchEvent{Type: eventType, Object: pod}, message(t, eventType, pod)
		got, err := kubeproto.Framing{}.AppendMessage([]byte("x"), e)
		if err != nil || !bytes.Equal(got, append([]byte("x"), want...)) {
			t.Errorf("message: got %q, %v, want %q", got, err, want)
		}
		stream, err := kubeproto.Framing{}.AppendEvent(nil, e)
		if err != nil || !bytes.Equal(stream, prefixed(want)) {
			t.Errorf("event: got %q, %v, want %q", stream, err, prefixed(want))
		}
		for _, r := range []io.Reader{bytes.NewReader(stream), iotest.OneByteReader(bytes.NewReader(stream))} {
			d := kubeproto.Framing{}.NewDecoder(r, 0)
			decoded, err := d.Decode()
			if err != nil || decoded.Type != eventType || !bytes.Equal(decoded.Object, pod) {
				t.Errorf("got %s %q, %v", decoded.Type, decoded.Object, err)
			}
			if len(decoded.Object) != cap(decoded.Object) {
				t.Errorf("the object has %d bytes in a buffer of %d, which would be reused with the rest of the event",
					len(decoded.Object), cap(decoded.Object))
			}
			if _, err := d.Decode(); err != io.EOF {
				t.Errorf("got %v at the end, want EOF", err)
			}
		}
	}
}

// What a server makes itself arrives as JSON, except for the key of a difference, which is an
// object.
func TestOwnEventsSurviveTheRoundTrip(t *testing.T) {
	d := listwatch.Description{APIVersion: "apps/v1", Kind: "Deployment", Epoch: "e"}
	expired := &listwatch.Error{
		Code: listwatch.Expired, Message: "too old <&>", Continue: "again",
		Details: &listwatch.Details{
			Name: "n", Group: "g", Kind: "k", UID: "u", RetryAfter: 3 * time.Second,
			Causes: []listwatch.Cause{{Reason: "FieldValueInvalid", Message: "m", Field: "f"}},
		},
	}
	send := func(e framing.WatchEvent) (listwatch.Event, error) {
		t.Helper()
		message, err := kubeproto.Framing{}.AppendMessage(nil, e)
		if err != nil {
			t.Fatal(err)
		}
		var known metav1.WatchEvent
		if err := known.Unmarshal(message); err != nil {
			t.Fatal(err)
		}
		if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(known.Object.Raw, nil, nil); err != nil {
			t.Errorf("client-go cannot decode the object: %v", err)
		}
		if e, err = (kubeproto.Framing{}).DecodeMessage(message); err != nil {
			t.Fatal(err)
		}
		return e.EventOf(kubeproto.Encoding{})
	}
	for _, want := range []listwatch.Event{
		listwatch.NewBookmark(d, listwatch.State{Version: 5, ID: "s"}),
		listwatch.NewSynced(d, listwatch.State{Version: 6, ID: "s"}, 3),
	} {
		got, err := send(framing.FromEvent(want))
		since, isDifference := got.Since()
		wantSince, wantDifference := want.Since()
		if err != nil || got.Type != want.Type || got.State() != want.State() || since != wantSince ||
			isDifference != wantDifference {
			t.Errorf("got %v %v since %d, %v, want %v", got.Type, got.State(), since, err, want)
		}
	}
	key := `{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"a","namespace":"ns","resourceVersion":"8"}}`
	got, err := send(framing.WatchEvent{Type: "DELETED", Object: []byte(key)})
	if want := (listwatch.Key{Namespace: "ns", Name: "a"}); err != nil || got.Object.Key != want || got.Version != 8 ||
		!bytes.HasPrefix(got.Object.Data, []byte("k8s\x00")) {
		t.Errorf("got %v at %d, %v, want the key in Protocol Buffers", got.Object, got.Version, err)
	}
	_, err = send(framing.FromError(expired))
	e := listwatch.AsError(err)
	if diff := cmp.Diff(expired.Details, e.Details); diff != "" || e.Code != expired.Code || e.Continue != "again" ||
		e.Message != expired.Message {
		t.Errorf("got %+v (-want +got):\n%s", e, diff)
	}
	if body, err := (kubeproto.Framing{}).DecodeStatus(encode(t, &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Code: 410, Reason: "Expired",
	})); err != nil || !strings.Contains(string(body), `"reason":"Expired"`) {
		t.Errorf("got %s, %v, want the JSON of the Status", body, err)
	}
}

func TestMalformedObjectsAreRejected(t *testing.T) {
	pod := newPod(t, 7)
	field := func(number byte, content string) string {
		return string([]byte{number<<3 | 2, byte(len(content))}) + content
	}
	object := func(meta string) []byte {
		return []byte("k8s\x00" + field(1, field(1, "v1")+field(2, "Pod")) + field(2, meta) + "\x1a\x00\x22\x00")
	}
	for what, c := range map[string]struct {
		data []byte
		code listwatch.Code
		want string
	}{
		"JSON":                 {[]byte(`{"metadata":{}}`), listwatch.Invalid, "does not start with"},
		"nothing":              {nil, listwatch.Invalid, "does not start with"},
		"no metadata":          {object(field(2, "")), listwatch.Invalid, "no metadata"},
		"two metadata":         {object(field(1, "") + field(1, "")), listwatch.Invalid, "field 1 occurs twice"},
		"two versions":         {object(field(1, field(6, "1")+field(6, "2"))), listwatch.Invalid, "occurs twice"},
		"another type":         {object("\x08\x01"), listwatch.Invalid, "wire type 0"},
		"not UTF-8":            {object(field(1, field(1, "\xff"))), listwatch.Invalid, "UTF-8"},
		"a version of letters": {object(field(1, field(6, "x"))), listwatch.Unsupported, "resourceVersion"},
		"truncated":            {pod[:len(pod)-5], listwatch.Invalid, "unexpected EOF"},
		"two messages":         {append(bytes.Clone(pod), field(2, "")...), listwatch.Invalid, "occurs twice"},
		"compressed":           {append(bytes.Clone(pod[:len(pod)-4]), field(3, "gzip")...), listwatch.Invalid, "gzip"},
	} {
		_, err := kubeproto.Encoding{}.Read(c.data)
		if listwatch.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %v with %q", what, err, c.code, c.want)
		}
	}
}

func TestUnknownFieldsSurvive(t *testing.T) {
	unknown := "\xfa\x7f\x03new" // field 2047
	data := []byte("k8s\x00\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x14\x0a\x0c\x32\x015" + unknown + "\x0a\x01n" + unknown +
		"\x1a\x00\x22\x00")
	got := string(kubeproto.Encoding{}.WithVersion(data, 10))
	if strings.Count(got, unknown) != 2 || !strings.Contains(got, "\x32\x0210") {
		t.Errorf("got %q, want version 10 and both unknown fields", got)
	}
}

func TestMalformedEventsAreRejected(t *testing.T) {
	whole := message(t, "ADDED", newPod(t, 7))
	for what, m := range map[string][]byte{
		"no object":       message(t, "ADDED", nil),
		"no type":         message(t, "", newPod(t, 7)),
		"two types":       append(message(t, "ADDED", newPod(t, 7)), "\x0a\x05ADDED"...),
		"truncated":       whole[:len(whole)-1],
		"not a message":   []byte("{}"),
		"a JSON bookmark": message(t, "BOOKMARK", []byte(`{}`)),
	} {
		if _, err := (kubeproto.Framing{}).DecodeMessage(m); !errors.Is(err, listwatch.Corrupt) {
			t.Errorf("%s: got %v, want Corrupt", what, err)
		}
	}
	stream := prefixed(whole)
	for n := 1; n < len(stream); n += 100 {
		_, err := kubeproto.Framing{}.NewDecoder(bytes.NewReader(stream[:n]), 0).Decode()
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut after %d bytes: got %v, want an unexpected EOF", n, err)
		}
	}
	huge := binary.BigEndian.AppendUint32(nil, 1<<31)
	_, err := kubeproto.Framing{}.NewDecoder(bytes.NewReader(huge), 1<<20).Decode()
	if !errors.Is(err, listwatch.Corrupt) || errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a huge event: got %v, want Corrupt before it is read", err)
	}
}

func TestMalformedListsAreRejected(t *testing.T) {
	var page listwatch.Page
	page.Version = 9
	for v := 1; v <= 3; v++ {
		o, err := kubeproto.Encoding{}.Read(newPod(t, v))
		if err != nil {
			t.Fatal(err)
		}
		page.Items = append(page.Items, o)
	}
	var out bytes.Buffer
	l := framing.List{APIVersion: "v1", Kind: "PodList", Page: page}
	if err := (kubeproto.Encoding{}).WriteList(&out, l, nil); err != nil {
		t.Fatal(err)
	}
	whole := out.Bytes()
	read := func(data []byte, limit int) error {
		_, err := kubeproto.Encoding{}.ReadList(bytes.NewReader(data), limit)
		return err
	}
	for n := range len(whole) - 4 {
		if err := read(whole[:n], 1<<20); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("cut after %d of %d bytes: got %v, want an unexpected EOF", n, len(whole), err)
		}
	}
	if err := read(whole, 100); !errors.Is(err, listwatch.Corrupt) {
		t.Errorf("an object above the limit: got %v, want Corrupt", err)
	}
	for what, data := range map[string][]byte{
		"JSON":               []byte(`{"kind":"PodList"}`),
		"data after it":      append(bytes.Clone(whole), "\x12\x00"...),
		"an overlong item":   bytes.Replace(whole, []byte("\x0a\x07\x0a\x00\x12"), []byte("\x0a\x7f\x0a\x00\x12"), 1),
		"items without type": []byte("k8s\x00\x12\x00"),
		"an endless number":  []byte("k8s\x00" + strings.Repeat("\xff", 20)),
	} {
		if err := read(data, 1<<20); !errors.Is(err, listwatch.Corrupt) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: got %v, want an error", what, err)
		}
	}
	mixed := []byte("k8s\x00\x0a\x0a\x0a\x02v1\x12\x04List\x12\x00")
	if err := read(mixed, 1<<20); !errors.Is(err, listwatch.Unsupported) {
		t.Errorf("a list of several kinds: got %v, want Unsupported", err)
	}
	page.Items[1] = &listwatch.Object{Data: []byte(`{}`)}
	out.Reset()
	if err := (kubeproto.Encoding{}).WriteList(&out, framing.List{Kind: "PodList", Page: page}, nil); err == nil ||
		out.Len() > 0 {
		t.Errorf("a list with JSON: got %v after %d bytes, want an error before the first byte", err, out.Len())
	}
}
