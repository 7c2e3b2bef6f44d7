package table

import (
	"fmt"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/internal/wire"
	"github.com/listwatch/listwatch/internal/wire/frames"
	"github.com/listwatch/listwatch/transport"
)

// benchPod returns a pod of about 2 KiB, with a status as a kubelet writes it.
func benchPod(b *testing.B) *listwatch.Object {
	b.Helper()
	o,
		err := listwatch.ParseObject(
		[]byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-7d4b9c6f5-x2x7k","namespace":"default",` +
			`"uid":"1c86b48c-e17f-4e29-9400-6ac4590429bd","resourceVersion":"1795217863977940","creationTimestamp":"2026-05-01T11:54:30Z",` +
			`"labels":{"app":"web","pod-template-hash":"7d4b9c6f5"},"annotations":{"note":"` +
			strings.Repeat("n", 300) +
			`"}},` +
			`"spec":{"nodeName":"node-1","containers":[{"name":"web","image":"registry.example/web:1.2.3","env":[` +
			strings.Repeat(`{"name":"A","value":"b"},`, 30) + `{"name":"Z","value":"z"}]}]},` +
			`"status":{"phase":"Running","podIP":"10.0.0.7","conditions":[{"type":"Initialized","status":"True"},{"type":"Ready","status":"True"},` +
			`{"type":"ContainersReady","status":"True"},{"type":"PodScheduled","status":"True"}],"containerStatuses":[{"name":"web","ready":true,` +
			`"restartCount":1,"state":{"running":{"startedAt":"2026-05-01T11:55:00Z"}},"lastState":{"terminated":{"finishedAt":"2026-05-01T11:54:59Z"}}}]}}`))
	if err != nil {
		b.Fatal(err)
	}
	return o
}

// BenchmarkFrame measures the cost of building the frame of one event, by representation
// and by the number of watchers that share the frame.
func BenchmarkFrame(b *testing.B) {
	pod := benchPod(b)
	columns, err := New(PodColumns())
	if err != nil {
		b.Fatal(err)
	}
	plain, err := transport.EncoderFor(framing.JSON{}, &transport.Envelope{})
	if err != nil {
		b.Fatal(err)
	}
	partial := metadataForm{"meta.k8s.io/v1"}
	for _, shape := range []struct {
		name string
		apihttp.ListRepresentation
	}{{"JSON", nil}, {"Table", tableForm{Table: columns, partial: partial}}, {"PartialObjectMetadata", partial}} {
		encoder := wire.NewStreamEncoder(&transport.Stream{Encoder: plain}, shape.ListRepresentation, nil)
		for _, watchers := range []int{1, 100, 10_000} {
			b.Run(fmt.Sprintf("%s/watchers=%d", shape.name, watchers), func(b *testing.B) {
				b.ReportAllocs()
				n := 0
				e := listwatch.Event{Type: listwatch.Modified, Object: pod, Version: pod.Version}
				var cache frames.Ref
				for b.Loop() {
					if n%watchers == 0 {
						cache.Frames = new(frames.Frames)
					}
					n++
					frame, err := encoder.Encode(e, cache)
					if err != nil {
						b.Fatal(err)
					}
					b.SetBytes(int64(len(frame)))
				}
			})
		}
	}
}
