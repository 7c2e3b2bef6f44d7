package kubeproto_test

import (
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/kubeapi/kubeproto"
)

// An endless reader repeats a stream.
type endless struct {
	stream []byte
	at     int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.stream[e.at:])
	e.at = (e.at + n) % len(e.stream)
	return n, nil
}

// BenchmarkEvent measures the work of a relay for one event of a pod.
func BenchmarkEvent(b *testing.B) {
	pod := newPod(b, 7)
	d := listwatch.Description{Encoding: kubeproto.Encoding{}, Fields: []string{
		"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
		"status.phase", "status.podIP", "status.nominatedNodeName",
	}}
	o, err := kubeproto.Encoding{}.Read(pod)
	if err != nil {
		b.Fatal(err)
	}
	event := framing.WatchEvent{Type: "MODIFIED", Object: pod}
	stream, err := kubeproto.Framing{}.AppendEvent(nil, event)
	if err != nil {
		b.Fatal(err)
	}
	partial, err := kubeproto.Represent(map[string]string{
		"as": "PartialObjectMetadata", "g": "meta.k8s.io", "v": "v1",
	}, false)
	if err != nil {
		b.Fatal(err)
	}
	var dst []byte
	decoder := kubeproto.Framing{}.NewDecoder(&endless{stream: stream}, 0)
	for name, work := range map[string]func() error{
		"decode": func() error {
			e, err := decoder.Decode()
			if err == nil {
				_, err = e.EventOf(kubeproto.Encoding{})
			}
			return err
		},
		"fields":   func() error { d.ReadFields(pod); return nil },
		"version":  func() error { d.At(o, 1234567); return nil },
		"encode":   func() (err error) { dst, err = kubeproto.Framing{}.AppendEvent(dst[:0], event); return err },
		"metadata": func() error { dst = partial.AppendItem(dst[:0], o); return nil },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(pod)))
			b.ReportAllocs()
			for b.Loop() {
				if err := work(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
