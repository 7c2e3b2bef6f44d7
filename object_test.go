package listwatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch"
)

func parse(t testing.TB, data string) *listwatch.Object {
	t.Helper()
	o, err := listwatch.ParseObject([]byte(data))
	if err != nil {
		t.Fatalf("ParseObject(%s): %v", data, err)
	}
	return o
}

func TestParseObjectReadsMetadata(t *testing.T) {
	o := parse(t, ` { "kind" : "Pod", "metadata" : { "n\u0061me":"a", "namespace":"ns",
		"labels" : {"l":"\u0076", "e":""}, "resourceVersion" : "7" } } `)
	if want := (listwatch.Key{Namespace: "ns", Name: "a"}); o.Key != want || o.Version != 7 {
		t.Errorf("got %v at %v, want %v at 7", o.Key, o.Version, want)
	}
	if diff := cmp.Diff(map[string]string{"l": "v", "e": ""}, o.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	want := `{"kind":"Pod","metadata":{"n\u0061me":"a","namespace":"ns","labels":{"l":"\u0076","e":""},"resourceVersion":"7"}}`
	if got := string(o.Data); got != want {
		t.Errorf("got data %s, want %s", got, want)
	}
}

func TestParseObjectKeepsNumbersAndStringsAsWritten(t *testing.T) {
	const odd = `{"metadata":{},"a":9007199254740993,"b":1e400,"c":-0.10E-2,"d":"\u00e9\/<&>\ud83d\ude00","e":{"":[null,true]}}`
	if got := string(parse(t, odd).Data); got != odd {
		t.Errorf("got %s, want %s", got, odd)
	}
}

func TestParseObjectCopiesItsInput(t *testing.T) {
	data := []byte(`{"metadata":{"name":"a"}}`)
	o, err := listwatch.ParseObject(data)
	if err != nil {
		t.Fatal(err)
	}
	clear(data)
	if string(o.Data) != `{"metadata":{"name":"a"}}` {
		t.Errorf("the object changed with its input: %q", o.Data)
	}
}

func TestParseObjectRejectsInvalidObjects(t *testing.T) {
	for name, data := range map[string]string{
		"empty":               ``,
		"an array":            `[]`,
		"a string":            `"metadata"`,
		"incomplete":          `{"metadata":{`,
		"two objects":         `{"metadata":{}} {"metadata":{}}`,
		"no metadata":         `{"spec":{}}`,
		"metadata null":       `{"metadata":null}`,
		"metadata a list":     `{"metadata":[]}`,
		"name a number":       `{"metadata":{"name":1}}`,
		"labels a list":       `{"metadata":{"labels":[]}}`,
		"label a number":      `{"metadata":{"labels":{"a":1}}}`,
		"version a number":    `{"metadata":{"resourceVersion":7}}`,
		"version not decimal": `{"metadata":{"resourceVersion":"x"}}`,
		"version too large":   `{"metadata":{"resourceVersion":"18446744073709551616"}}`,
		"version with zeros":  `{"metadata":{"resourceVersion":"07"}}`,
		"not UTF-8":           "{\"metadata\":{},\"a\":\"\xff\"}",
		"nested too deep":     `{"metadata":{},"a":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}`,
	} {
		if o, err := listwatch.ParseObject([]byte(data)); !errors.Is(err, listwatch.Invalid) {
			t.Errorf("%s: got %v, %v, want an error of code Invalid", name, o, err)
		}
	}
}

func TestParseObjectTreatsNullAsAbsent(t *testing.T) {
	o := parse(t, `{"metadata":{"name":null,"namespace":null,"labels":null,"resourceVersion":null}}`)
	if o.Key != (listwatch.Key{}) || o.Labels != nil || o.Version != 0 {
		t.Errorf("got key %v, labels %v, version %v, want zero values", o.Key, o.Labels, o.Version)
	}
}

func TestNewObjectSetsTheVersion(t *testing.T) {
	fields := map[string]string{"spec.x": "1"}
	for data, want := range map[string]string{
		`{"metadata":{"name":"a","labels":{"l":"v"}},"spec":{"x":1}}`:           `{"metadata":{"name":"a","labels":{"l":"v"},"resourceVersion":"7"},"spec":{"x":1}}`,
		`{"metadata": {"resourceVersion":"3", "name":"a", "labels":{"l":"v"}}}`: `{"metadata":{"resourceVersion":"7","name":"a","labels":{"l":"v"}}}`,
	} {
		o, err := listwatch.NewObject([]byte(data), 7, fields)
		if err != nil {
			t.Fatal(err)
		}
		if string(o.Data) != want || o.Version != 7 || o.Key.Name != "a" || o.Labels["l"] != "v" ||
			o.Fields["spec.x"] != "1" {
			t.Errorf("%s: got %+v with data %s, want %s", data, o, o.Data, want)
		}
	}
}

func TestNewObjectRejectsInvalidObjects(t *testing.T) {
	for data, version := range map[string]listwatch.Version{
		`{"metadata":{"name":"a"}}`: 0,
		`{"metadata":{}}`:           7,
		`{"spec":{}}`:               7,
		`[]`:                        7,
	} {
		if o, err := listwatch.NewObject([]byte(data), version, nil); !errors.Is(err, listwatch.Invalid) {
			t.Errorf("%s at %d: got %v, %v, want an error of code Invalid", data, version, o, err)
		}
	}
}

func TestAtInsertsAMissingVersion(t *testing.T) {
	for data, want := range map[string]string{
		`{"metadata":{}}`:           `{"metadata":{"resourceVersion":"7"}}`,
		`{"metadata":{"name":"a"}}`: `{"metadata":{"name":"a","resourceVersion":"7"}}`,
		`{"spec":{}}`:               `{"spec":{},"metadata":{"resourceVersion":"7"}}`,
		`{}`:                        `{"metadata":{"resourceVersion":"7"}}`,
		`{"metadata":null}`:         `{"metadata":null}`,
		`[]`:                        `[]`,
	} {
		o := &listwatch.Object{Data: []byte(data)}
		if got := string(o.At(7).Data); got != want {
			t.Errorf("%s: got %s, want %s", data, got, want)
		}
	}
}

func TestAtChangesOnlyTheVersion(t *testing.T) {
	for data, want := range map[string]string{
		`{"metadata":{"resourceVersion":"7","name":"a"},"s":"7"}`:                   `{"metadata":{"resourceVersion":"1234567","name":"a"},"s":"7"}`,
		`{"metadata":{"name":"a","resourceVersion":null}}`:                          `{"metadata":{"name":"a","resourceVersion":"1234567"}}`,
		`{"metadata":{"name":"a"},"resourceVersion":"7"}`:                           `{"metadata":{"name":"a","resourceVersion":"1234567"},"resourceVersion":"7"}`,
		`{"spec":{"resourceVersion":"1"},"metadata":{"resourceVersion":"","x":{}}}`: `{"spec":{"resourceVersion":"1"},"metadata":{"resourceVersion":"1234567","x":{}}}`,
	} {
		o := parse(t, data)
		later := o.At(1234567)
		if string(later.Data) != want || later.Version != 1234567 || later.Key != o.Key {
			t.Errorf("got %s of %v at %v, want %s of %v", later.Data, later.Key, later.Version, want, o.Key)
		}
		if string(o.Data) != data {
			t.Errorf("the original object became %s", o.Data)
		}
		if again := later.At(8).At(1234567); string(again.Data) != want {
			t.Errorf("after two changes: got %s, want %s", again.Data, want)
		}
		unparsed := &listwatch.Object{Data: []byte(data)}
		if got := string(unparsed.At(1234567).Data); got != want {
			t.Errorf("without ParseObject: got %s, want %s", got, want)
		}
	}
}

func TestKeysAreOrderedByNamespaceThenName(t *testing.T) {
	ordered := []listwatch.Key{
		{},
		{Name: "b"},
		{Namespace: "a"},
		{Namespace: "a", Name: "b"},
		{Namespace: "a", Name: "c"},
		{Namespace: "b", Name: "a"},
	}
	for i, a := range ordered {
		for j, b := range ordered {
			if got := a.Compare(b); got != compare(i, j) {
				t.Errorf("%q to %q: got %d, want %d", a, b, got, compare(i, j))
			}
		}
	}
	if got := (listwatch.Key{Namespace: "a", Name: "b"}).String() + " " +
		(listwatch.Key{Name: "c"}).String(); got != "a/b c" {
		t.Errorf("got %q, want a/b and c", got)
	}
}

func compare(i, j int) int {
	switch {
	case i < j:
		return -1
	case i > j:
		return 1
	}
	return 0
}

func TestVersionsAreDecimal(t *testing.T) {
	for text, want := range map[string]listwatch.Version{"": 0, "0": 0, "1": 1, "18446744073709551615": 1<<64 - 1} {
		if got, err := listwatch.ParseVersion(text); got != want || err != nil {
			t.Errorf("%q: got %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"abc", "-1", "+1", "1.5", "1e3", "00", "01", " 1", "1 ", "1_0", "0x1",
		"18446744073709551616", "١",
	} {
		if got, err := listwatch.ParseVersion(text); !errors.Is(err, listwatch.Invalid) {
			t.Errorf("%q: got %v, %v, want an error of code Invalid", text, got, err)
		}
	}
}

func TestBookmarkHoldsOnlyItsVersion(t *testing.T) {
	d := listwatch.Description{Kind: "Pod", APIVersion: "v1"}
	withEpoch := d
	withEpoch.Epoch = "e1"
	for want, e := range map[string]listwatch.Event{
		`{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"7"}}`:                                                                               listwatch.NewBookmark(d, listwatch.State{Version: 7}),
		`{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}`:                            listwatch.NewSynced(d, listwatch.State{Version: 7}, 0),
		`{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"7","annotations":{"listwatch.dev/epoch":"e1"}}}`:                                    listwatch.NewBookmark(withEpoch, listwatch.State{Version: 7}),
		`{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true","listwatch.dev/epoch":"e1"}}}`: listwatch.NewSynced(withEpoch, listwatch.State{Version: 7}, 0),
	} {
		if string(e.Object.Data) != want || e.Version != 7 || e.Type.String() != "BOOKMARK" {
			t.Errorf("got %v %s at %v, want BOOKMARK %s at 7", e.Type, e.Object.Data, e.Version, want)
		}
	}
}

func TestDecodeReadsMetadata(t *testing.T) {
	type flag struct {
		listwatch.Metadata `json:"metadata"`
		On                 bool `json:"on"`
	}
	f,
		err := listwatch.Decode[flag](parse(t,
		`{"metadata":{"name":"a","namespace":"n","resourceVersion":"7","creationTimestamp":null},"on":true}`))
	if err != nil || !f.On || f.Key() != (listwatch.Key{Namespace: "n", Name: "a"}) || f.Metadata.Version() != 7 {
		t.Errorf("got %+v, %v, want the flag n/a at 7", f, err)
	}
	if _, err := listwatch.Decode[flag](parse(t, `{"metadata":{},"on":"yes"}`)); !errors.Is(err, listwatch.Corrupt) {
		t.Errorf("got %v, want an error of code Corrupt", err)
	}
	if got := (&listwatch.Metadata{ResourceVersion: "x"}).Version(); got != 0 {
		t.Errorf("a version that is not a number: got %v, want 0", got)
	}
}

// A fakeWatcher returns its events and then err.
type fakeWatcher struct {
	events   []listwatch.Event
	err      error
	isClosed bool
}

func (w *fakeWatcher) Next(_ context.Context, dst []listwatch.Event) (int, error) {
	n := copy(dst, w.events)
	if w.events = w.events[n:]; n == 0 {
		return 0, w.err
	}
	return n, nil
}

func (w *fakeWatcher) Close() error { w.isClosed = true; return nil }

func TestAllYieldsEventsAndThenTheError(t *testing.T) {
	broken := errors.New("broken")
	for _, end := range []error{io.EOF, broken} {
		w := &fakeWatcher{events: make([]listwatch.Event, 40), err: end}
		n := 0
		var last error
		for _, err := range listwatch.All(t.Context(), w) {
			if last = err; err == nil {
				n++
			}
		}
		if n != 40 || end == io.EOF && last != nil || end == broken && !errors.Is(last, broken) {
			t.Errorf("end %v: got %d events, then %v", end, n, last)
		}
	}
	for range listwatch.All(t.Context(), &fakeWatcher{events: make([]listwatch.Event, 3)}) {
		break // All must not call the yield function again
	}
}

func TestAllClosesTheWatcherWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := &fakeWatcher{err: ctx.Err()}
	for _, err := range listwatch.All(ctx, w) {
		if err != context.Canceled {
			t.Errorf("got error %v, want %v", err, context.Canceled)
		}
	}
	if !w.isClosed {
		t.Error("All leaves the watcher open although its context has ended")
	}
}

func TestInitialEventsDependOnTheStart(t *testing.T) {
	for _, c := range []struct {
		q    listwatch.Query
		want bool
	}{
		{listwatch.Query{}, true},
		{listwatch.Query{Start: listwatch.StartAny}, true},
		{listwatch.Query{Start: listwatch.StartAt}, false},
		{listwatch.Query{Start: listwatch.StartAt, InitialEvents: listwatch.InitialEventsYes}, true},
		{listwatch.Query{InitialEvents: listwatch.InitialEventsNo}, false},
	} {
		if got := c.q.SendsInitialEvents(); got != c.want {
			t.Errorf("%+v: got %v, want %v", c.q, got, c.want)
		}
	}
}

func TestEventTypesHaveKubernetesNames(t *testing.T) {
	for want, types := range map[string][]listwatch.EventType{
		"ADDED": {listwatch.Added}, "MODIFIED": {listwatch.Modified}, "DELETED": {listwatch.Deleted},
		"BOOKMARK": {listwatch.Bookmark, listwatch.Synced}, "UNKNOWN": {0, 200},
	} {
		for _, e := range types {
			if e.String() != want {
				t.Errorf("got %v, want %v", e, want)
			}
		}
	}
}

func FuzzParseObject(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"a","resourceVersion":"7","labels":{"a":"b"}},"spec":[1e400,"\ud800",null]}`))
	f.Add([]byte(` {"metadata" : {"resourceVersion":null,"resourceVersion":"1"},"metadata":{}}`))
	f.Add([]byte(`{"metadata":{"":""},"":{}}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := listwatch.ParseObject(data)
		if err != nil {
			if !errors.Is(err, listwatch.Invalid) {
				t.Fatalf("got %v, want code Invalid", err)
			}
			return
		}
		if !json.Valid(o.Data) || strings.ContainsAny(string(o.Data), "\n\r\t") {
			t.Fatalf("%q is not JSON in one line", o.Data)
		}
		later := o.At(99)
		again, err := listwatch.ParseObject(later.Data)
		if err != nil || again.Key != o.Key || !cmp.Equal(again.Labels, o.Labels) {
			t.Fatalf("%s at 99 is %s, which parses as %+v, %v", o.Data, later.Data, again, err)
		}
		if len(later.Data) != len(o.Data) && again.Version != 99 {
			t.Fatalf("%s at 99 is %s, at %v", o.Data, later.Data, again.Version)
		}
	})
}

func BenchmarkParseObject(b *testing.B) {
	data := []byte(`{"metadata":{"name":"a","resourceVersion":"7","labels":{"a":"b"}},"spec":"` +
		strings.Repeat("x", 1024) + `"}`)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := listwatch.ParseObject(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkObjectAt(b *testing.B) {
	data := []byte(`{"metadata":{"name":"a","resourceVersion":"7","labels":{"a":"b"}},"spec":"` +
		strings.Repeat("x", 1024) + `"}`)
	o := &listwatch.Object{Data: data}
	b.ReportAllocs()
	for b.Loop() {
		o.At(8)
	}
}
