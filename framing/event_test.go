package framing

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
)

func TestEventConvertsValidEvents(t *testing.T) {
	for _, c := range []struct {
		typ, object string
		want        listwatch.EventType
		version     listwatch.Version
	}{
		{"ADDED", `{"metadata":{"name":"a","namespace":"n","resourceVersion":"7"}}`, listwatch.Added, 7},
		{
			"MODIFIED", `{ "metadata" : {"name":"a","resourceVersion":"18446744073709551615"} }`, listwatch.Modified,
			1<<64 - 1,
		},
		{"DELETED", `{"metadata":{"name":"a","resourceVersion":"7"}}`, listwatch.Deleted, 7},
		{"BOOKMARK", `{"kind":"Pod","metadata":{"resourceVersion":"9"}}`, listwatch.Bookmark, 9},
		{
			"BOOKMARK", `{"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}`,
			listwatch.Synced, 9,
		},
		{
			"BOOKMARK", `{"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"false"}}}`,
			listwatch.Bookmark, 9,
		},
		{"BOOKMARK", `{"metadata":{"resourceVersion":"9","annotations":null}}`, listwatch.Bookmark, 9},
		{"BOOKMARK", `{"metadata":{"resourceVersion":"9","annotations":{"x":1}}}`, listwatch.Bookmark, 9},
		{
			"ADDED",
			`{"metadata":{"name":"a","resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}`,
			listwatch.Added, 9,
		},
	} {
		e, err := WatchEvent{Type: c.typ, Object: []byte(c.object)}.Event()
		if err != nil || e.Type != c.want || e.Version != c.version || e.Object == nil ||
			e.Object.Version != c.version {
			t.Errorf("%s %s: got %v and %v, want %v at %d", c.typ, c.object, e, err, c.want, c.version)
		}
	}
}

func TestEventReturnsTypedErrors(t *testing.T) {
	for _, c := range []struct {
		typ, object string
		want        listwatch.Code
		contains    string
	}{
		// Conformance case event/unknown-type.
		{"FUTURE", `{"metadata":{"name":"a","resourceVersion":"7"}}`, listwatch.Unsupported, `"FUTURE"`},
		{"", `{}`, listwatch.Unsupported, `""`},
		{"added", `{}`, listwatch.Unsupported, `"added"`},
		{strings.Repeat("x", 1000), `{}`, listwatch.Unsupported, "…"},
		// Conformance case resume/rv-opaque-client.
		{"ADDED", `{"metadata":{"name":"a","resourceVersion":"abc"}}`, listwatch.Unsupported, `"abc"`},
		{"ADDED", `{"metadata":{"name":"a","resourceVersion":"-1"}}`, listwatch.Unsupported, `"-1"`},
		{"ADDED", `{"metadata":{"name":"a","resourceVersion":"1.5"}}`, listwatch.Unsupported, `"1.5"`},
		{"ADDED", `{"metadata":{"name":"a","resourceVersion":"007"}}`, listwatch.Unsupported, `"007"`},
		{
			"DELETED", `{"metadata":{"name":"a","resourceVersion":"18446744073709551616"}}`, listwatch.Unsupported,
			"2^64",
		},
		{"BOOKMARK", `{"metadata":{"resourceVersion":"v1"}}`, listwatch.Unsupported, `"v1"`},

		{"ADDED", `{"metadata":{"name":"a"}}`, listwatch.Corrupt, "no resourceVersion"},
		{"ADDED", `{"metadata":{"name":"a","resourceVersion":""}}`, listwatch.Corrupt, "no resourceVersion"},
		{"ADDED", `{"metadata":{"name":"a","resourceVersion":"0"}}`, listwatch.Corrupt, "no resourceVersion"},
		{"BOOKMARK", `{"metadata":{}}`, listwatch.Corrupt, "no resourceVersion"},
		{"ADDED", `{"metadata":{"resourceVersion":"7"}}`, listwatch.Corrupt, "no name"},
		{"ADDED", `{"metadata":{"name":"a","resourceVersion":7}}`, listwatch.Corrupt, "resourceVersion"},
		{"ADDED", `{"metadata":{"name":1,"resourceVersion":"7"}}`, listwatch.Corrupt, "name"},
		{"ADDED", `{}`, listwatch.Corrupt, "metadata"},
		{"ADDED", `{"metadata":[]}`, listwatch.Corrupt, "metadata"},
		{"ADDED", `[]`, listwatch.Corrupt, ""},
		{"ADDED", `{`, listwatch.Corrupt, ""},
		{"ADDED", ``, listwatch.Corrupt, ""},
		{"ERROR", `{`, listwatch.Corrupt, ""},
		{"ERROR", ``, listwatch.Corrupt, ""},
		{"ERROR", `{"kind":"Pod"}`, listwatch.Corrupt, ""},
	} {
		_, err := WatchEvent{Type: c.typ, Object: []byte(c.object)}.Event()
		if listwatch.CodeOf(err) != c.want || !strings.Contains(fmt.Sprint(err), c.contains) {
			t.Errorf("%.20s %s: got %v, want %v with %s", c.typ, c.object, err, c.want, c.contains)
		}
	}
}

// Conformance case error/in-stream: an error keeps its code, reason, message and details on
// the wire.
func TestErrorsSurviveTheRoundTrip(t *testing.T) {
	for _, err := range []error{
		&listwatch.Error{Code: listwatch.Expired, Message: "too old resource version: 5 (9)"},
		&listwatch.Error{Code: listwatch.NotYet, Details: &listwatch.Details{RetryAfter: time.Second}},
		&listwatch.Error{Code: listwatch.TooSlow, Message: "<&>"},
		&listwatch.Error{Code: listwatch.Forbidden, Reason: "Teapot", Status: 403},
		context.DeadlineExceeded,
	} {
		w := FromError(err)
		if w.Type != TypeError || w.Version != 0 {
			t.Errorf("%v: got %s at %d", err, w.Type, w.Version)
		}
		eachFramer(t, func(t *testing.T, f Framer) {
			stream, _ := encode(t, f, w)
			back, decodeErr := f.NewDecoder(strings.NewReader(string(stream)), 0).Decode()
			if decodeErr != nil {
				t.Fatal(decodeErr)
			}
			_, got := back.Event()
			var e *listwatch.Error
			if !errors.As(got, &e) || !e.Remote || e.Code != listwatch.CodeOf(err) ||
				e.Status != listwatch.AsError(err).HTTPStatus() {
				t.Errorf("got %#v, want the error %#v", got, err)
			}
		})
	}
}

func TestListwatchEventsSurviveTheRoundTrip(t *testing.T) {
	o, err := listwatch.ParseObject([]byte(`{"metadata":{"name":"a","resourceVersion":"7"}}`))
	if err != nil {
		t.Fatal(err)
	}
	d := listwatch.Description{Kind: "Pod", APIVersion: "v1", Epoch: "e"}
	for _, e := range []listwatch.Event{
		{Type: listwatch.Added, Object: o, Version: 7},
		{Type: listwatch.Deleted, Object: o, Version: 7},
		listwatch.NewBookmark(d, listwatch.State{Version: 8}), listwatch.NewSynced(d, listwatch.State{Version: 9}, 0),
		{Type: listwatch.Added, Initial: true, Object: o, Version: 7},
	} {
		w := FromEvent(e)
		if e.Initial != (w.Version == 0) {
			t.Errorf("%v: got position %d", e.Type, w.Version)
		}
		got, err := w.Event()
		if err != nil || got.Type != e.Type || got.Version != e.Version ||
			string(got.Object.Data) != string(e.Object.Data) {
			t.Errorf("got %v and %v, want %v", got, err, e)
		}
	}
}

func TestTrustedEventKeepsTheBytes(t *testing.T) {
	w := WatchEvent{Type: "ADDED", Object: []byte(`{"metadata":{"name":"a","resourceVersion":"7","labels":{"l":"v"}}}`)}
	e, err := w.TrustedEvent()
	if err != nil || e.Version != 7 || e.Object.Key.Name != "a" || e.Object.Labels["l"] != "v" ||
		&e.Object.Data[0] != &w.Object[0] {
		t.Errorf("got %+v, %v, want a at 7 in the same bytes", e, err)
	}
	if want, err := w.Event(); err != nil || want.Object.Key != e.Object.Key || want.Version != e.Version {
		t.Errorf("got %+v, %v, want the same event as %+v", want, err, e)
	}
	if _, err := (WatchEvent{Type: "ADDED", Object: []byte(`{"a":1}`)}).TrustedEvent(); !errors.Is(err,
		listwatch.Corrupt) {
		t.Errorf("an object without metadata: got %v, want Corrupt", err)
	}
}

func TestTrustedEventOfInvalidJSONIsAnError(t *testing.T) {
	for _, object := range []string{
		"", "{", `{"metadata`, `{"metadata":{"name":"a`, `{"metadata":`,
		`{"metadata":{"labels":{`, `[`, `{"a":"\`,
	} {
		if _, err := (WatchEvent{Type: "ADDED", Object: []byte(object)}).TrustedEvent(); !errors.Is(err,
			listwatch.Corrupt) {
			t.Errorf("%s: got %v, want Corrupt", object, err)
		}
	}
}
