package benchmarks

import (
	"context"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/transport/chunked"
)

// BenchmarkInformerMemory measures the memory that an informer of 2,000 objects holds for each of
// them: as JSON, and decoded without a Go type, as dynamic clients do. Run it with -benchtime 1x.
func BenchmarkInformerMemory(b *testing.B) {
	for _, f := range fleets() {
		for _, p := range f.projections() {
			b.Run(f.kind+"/"+p.name+"/JSON",
				func(b *testing.B) { benchmarkInformerMemory[*listwatch.Object](b, f, p.fields) })
			b.Run(f.kind+"/"+p.name+"/maps",
				func(b *testing.B) { benchmarkInformerMemory[map[string]any](b, f, p.fields) })
		}
	}
}

func benchmarkInformerMemory[T any](b *testing.B, f *fleet, fields string) {
	const objects = 2000
	f.objects = objects
	s := startServer(b, listen(b, false), chunked.Server{}, false)
	f.start(&s.writer)
	for b.Loop() {
		source := &client.Remote{URL: "http://" + s.addr + "/"}
		i := &informer.Informer[T]{Source: source, Selection: listwatch.Selection{
			Projection: testkit.Projection(b, fields),
		}}
		ctx, cancel := context.WithCancel(b.Context())
		done := make(chan error, 1)
		go func() { done <- i.Run(ctx) }() // ends with cancel
		if err := i.WaitForSync(ctx); err != nil {
			b.Fatal(err)
		}
		cancel()
		<-done
		_ = source.Close() // returns nil
		for len(s.watch.Watches()) > 0 {
			time.Sleep(time.Millisecond)
		}
		with := testkit.HeapBytes()
		if i.Len() != objects {
			b.Fatalf("the informer has %d objects", i.Len())
		}
		i = nil
		b.ReportMetric(float64(with-testkit.HeapBytes())/objects, "B/object")
	}
}
