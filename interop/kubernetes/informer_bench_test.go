package kubernetes

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// BenchmarkInformer measures a program that follows 100,000 objects of 1 KiB. The first
// measurement ends when the handler has been called for each object, and the second one when
// the handler has been called for a change of each object. The server writes all changes
// before the second measurement starts.
func BenchmarkInformer(b *testing.B) {
	for _, data := range []string{"configmaps", "pods"} {
		b.Run(data, func(b *testing.B) {
			server, stop := startChild(b, "server "+data)
			defer stop()
			url := server.must(server.receive())
			for _, kind := range slices.Sorted(maps.Keys(datasets[data].clients)) {
				b.Run(kind, func(b *testing.B) { benchmarkClient(b, server, data+" "+kind+" "+url) })
			}
		})
	}
}

func benchmarkClient(b *testing.B, server childProcess, client string) {
	var syncs, events []usage
	for b.Loop() {
		c, stop := startChild(b, "client "+client)
		syncs = append(syncs, c.receiveUsage())
		if !strings.Contains(client, "objects-only") {
			server.must(server.request("change"))
			c.send("continue")
			events = append(events, c.receiveUsage())
		}
		stop()
	}
	reportMedians(b, syncs, "sync")
	reportMedians(b, events, "event")
}

// reportMedians reports the medians of usages, divided by the number of objects.
func reportMedians(b *testing.B, usages []usage, what string) {
	if len(usages) == 0 {
		return
	}
	for unit, value := range map[string]func(usage) float64{
		"µs/":           func(c usage) float64 { return float64(c.Wall.Nanoseconds()) / 1e3 / benchObjectCount },
		"cpu-µs/":       func(c usage) float64 { return float64(c.CPU.Nanoseconds()) / 1e3 / benchObjectCount },
		"allocs/":       func(c usage) float64 { return float64(c.Mallocs) / benchObjectCount },
		"B-allocated/":  func(c usage) float64 { return float64(c.Allocated) / benchObjectCount },
		"B-kept/":       func(c usage) float64 { return float64(c.Final) / benchObjectCount },
		"B-above-kept/": func(c usage) float64 { return (float64(c.Peak) - float64(c.Final)) / benchObjectCount },
	} {
		all := make([]float64, len(usages))
		for i, u := range usages {
			all[i] = value(u)
		}
		slices.Sort(all)
		b.ReportMetric(all[len(all)/2], unit+what)
	}
}
