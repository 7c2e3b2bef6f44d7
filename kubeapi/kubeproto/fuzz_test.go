package kubeproto_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi/kubeproto"
	"github.com/listwatch/listwatch/kubeapi/protobody"
)

// twoMetadata is a legal object whose metadata a decoder merges. Reading the first one and changing
// the last one was a mistake that FuzzRead found.
const twoMetadata = "k8s\x00\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x0a\x0a\x03\x0a\x01a\x0a\x03\x32\x015\x1a\x00\x22\x00"

// FuzzRead checks that an object that is accepted can be changed, and stays the same otherwise.
func FuzzRead(f *testing.F) {
	f.Add(newPod(f, 7))
	f.Add([]byte(twoMetadata))
	f.Add([]byte("k8s\x00\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x05\x0a\x03\x0a\x01a"))
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := kubeproto.Encoding{}.Read(data)
		if err != nil {
			if code := listwatch.CodeOf(err); code != listwatch.Invalid && code != listwatch.Unsupported {
				t.Errorf("got %v, want Invalid or Unsupported", err)
			}
			return
		}
		changed, err := kubeproto.Encoding{}.Read(kubeproto.Encoding{}.WithVersion(data, 1<<63))
		if err != nil || changed.Version != 1<<63 || changed.Key != o.Key || !maps.Equal(changed.Labels, o.Labels) {
			t.Fatalf("got %+v, %v, want %+v at another version", changed, err, o)
		}
		again := kubeproto.Encoding{}.WithVersion(kubeproto.Encoding{}.WithVersion(changed.Data, o.Version), 1<<63)
		if !bytes.Equal(again, changed.Data) {
			t.Errorf("got %q, want %q", again, changed.Data)
		}
		for _, params := range []map[string]string{
			{"drop": "metadata.managedFields"}, {"as": "PartialObjectMetadata", "g": "meta.k8s.io", "v": "v1"},
		} {
			r, _ := kubeproto.Represent(params, false)
			shown, err := kubeproto.Encoding{}.Read(r.AppendItem(nil, o))
			if err != nil || shown.Key != o.Key || shown.Version != o.Version || !maps.Equal(shown.Labels, o.Labels) {
				t.Errorf("%v: got %+v, %v, want %+v", params, shown, err, o)
			}
		}
	})
}

// FuzzStream checks that the events that are accepted can be sent again, and arrive unchanged.
func FuzzStream(f *testing.F) {
	f.Add(slices.Concat(prefixed(message(f, "ADDED", newPod(f, 7))), prefixed(message(f, "DELETED", newPod(f, 8)))))
	d := listwatch.Description{APIVersion: "v1", Kind: "Pod"}
	bookmark := listwatch.NewSynced(d, listwatch.State{Version: 5}, 0)
	for _, e := range []framing.WatchEvent{
		framing.FromEvent(bookmark), framing.FromError(&listwatch.Error{Code: listwatch.Expired, Message: "x"}),
	} {
		stream, _ := kubeproto.Framing{}.AppendEvent(nil, e)
		f.Add(stream)
		f.Add(bytes.Replace(stream, []byte("io/"), []byte("\xff\xff/"), 1))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d := kubeproto.Framing{}.NewDecoder(bytes.NewReader(data), 1<<16)
		for {
			e, err := d.Decode()
			if err != nil {
				if err != io.EOF && !errors.Is(err, listwatch.Corrupt) {
					t.Errorf("got %v, want EOF or Corrupt", err)
				}
				return
			}
			if got, err := e.EventOf(kubeproto.Encoding{}); err == nil && got.Version == 0 {
				t.Errorf("%q has no version", e.Object)
			}
			again, err := kubeproto.Framing{}.AppendMessage(nil, e)
			if err != nil {
				continue // an object of another type
			}
			got, err := kubeproto.Framing{}.DecodeMessage(again)
			if e.Object[0] == '{' { // its JSON may change once, for example a null vanishes
				e.Object = got.Object
				got.Object, _ = kubeproto.Framing{}.AppendMessage(nil, e)
				e.Object = again
			}
			if err != nil || got.Type != e.Type || !bytes.Equal(got.Object, e.Object) {
				t.Errorf("got %s %q, %v, want %s %q", got.Type, got.Object, err, e.Type, e.Object)
			}
		}
	})
}

// FuzzReadList checks that a list that is accepted can be written, and is read again as it was.
func FuzzReadList(f *testing.F) {
	var page listwatch.Page
	page.Version, page.Continue = 9, "more"
	for v := 1; v <= 2; v++ {
		o, err := kubeproto.Encoding{}.Read(newPod(f, v))
		if err != nil {
			f.Fatal(err)
		}
		page.Items = append(page.Items, o)
		var list bytes.Buffer
		_ = kubeproto.Encoding{}.WriteList(&list, framing.List{APIVersion: "v1", Kind: "PodList", Page: page}, nil)
		f.Add(list.Bytes())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 1 << 16
		l, err := kubeproto.Encoding{}.ReadList(bytes.NewReader(data), limit)
		if err != nil {
			return
		}
		if l.Remaining < 0 || l.Continue == "" {
			l.Remaining = 0
		}
		var out bytes.Buffer
		if err := (kubeproto.Encoding{}).WriteList(&out, l, nil); err != nil {
			t.Fatal(err)
		}
		again, err := kubeproto.Encoding{}.ReadList(&out, limit)
		if err != nil || again.Version != l.Version || again.Continue != l.Continue ||
			len(again.Items) != len(l.Items) {
			t.Fatalf("got %+v, %v, want %+v", again, err, l)
		}
		for i, o := range again.Items {
			if !bytes.Equal(o.Data, l.Items[i].Data) {
				t.Errorf("item %d: got %q, want %q", i, o.Data, l.Items[i].Data)
			}
		}
	})
}

// FuzzFields checks that the values of fields are those of the JSON, if the object can be
// converted.
func FuzzFields(f *testing.F) {
	paths := []string{
		"spec.nodeName", "spec.hostNetwork", "status.phase", "metadata.name", "metadata.generation",
		"spec.terminationGracePeriodSeconds", "spec.containers", "spec.absent", "type", "involvedObject.name",
		"source.component", "spec.replicas", "status.replicas", "immutable",
	}
	f.Add(newPod(f, 7))
	f.Add([]byte("k8s\x00\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x08\x0a\x04\x0a\x00\x1a\x00\x20\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got := kubeproto.Encoding{}.Fields(data, paths)
		if len(got) != len(paths) {
			t.Fatalf("got %d values, want %d", len(got), len(paths))
		}
		if _, err := (kubeproto.Encoding{}).Read(data); err != nil {
			return
		}
		object, err := protobody.ToJSON(data, 1<<20)
		if err != nil {
			return
		}
		// A decoder merges messages that occur several times, which Fields does not.
		for i, want := range rawjson.Fields(object, paths) {
			if got[i] != want && want == "" {
				t.Errorf("%s: got %q, want %q of %s", paths[i], got[i], want, object)
			}
		}
	})
}

// FuzzOwn checks that JSON that a server made itself survives the round trip.
func FuzzOwn(f *testing.F) {
	d := listwatch.Description{APIVersion: "v1", Kind: "Pod"}
	f.Add("BOOKMARK", []byte(listwatch.NewSynced(d, listwatch.State{Version: 5, ID: "s"}, 3).Object.Data))
	f.Add("ERROR", framing.FromError(&listwatch.Error{Code: listwatch.NotYet, Message: "x"}).Object)
	f.Add("ERROR", []byte(`{"kind":"Status","apiVersion":"a/b/c","code":500}`))
	f.Add("DELETED", []byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"7"}}`))
	f.Fuzz(func(t *testing.T, eventType string, object []byte) {
		if eventType == "" || !json.Valid(object) {
			return
		}
		message, err := kubeproto.Framing{}.AppendMessage(nil, framing.WatchEvent{Type: eventType, Object: object})
		if err != nil {
			return
		}
		e, err := kubeproto.Framing{}.DecodeMessage(message)
		if err != nil || e.Type != eventType {
			t.Fatalf("got %s, %v, want %s", e.Type, err, eventType)
		}
		if e.Object[0] == '{' && !rawjson.IsCompact(e.Object) {
			t.Errorf("%s is not compact", e.Object)
		}
		again, err := kubeproto.Framing{}.AppendMessage(nil, e)
		if err != nil || !bytes.Equal(again, message) {
			t.Errorf("got %q, %v, want %q", again, err, message)
		}
	})
}
