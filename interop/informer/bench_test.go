package informer

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// BenchmarkInformer measures a program that follows 100,000 objects of 1 KiB from nothing until its handler has been called for each, and then
// until it has been called for a change of each, all of which wait at the server.
func BenchmarkInformer(b *testing.B) {
	for _, data := range []string{"configmaps", "pods"} {
		b.Run(data, func(b *testing.B) {
			server, end := start(b, "server "+data)
			defer end()
			url := server.must(server.hear())
			for _, kind := range slices.Sorted(maps.Keys(datasets[data].contestants)) {
				b.Run(kind, func(b *testing.B) { benchmark(b, server, data+" "+kind+" "+url) })
			}
		})
	}
}

func benchmark(b *testing.B, server child, client string) {
	var syncs, events []cost
	for b.Loop() {
		c, end := start(b, "client "+client)
		syncs = append(syncs, c.cost())
		if !strings.Contains(client, "alone") {
			server.must(server.ask("change"))
			c.say("go on")
			events = append(events, c.cost())
		}
		end()
	}
	report(b, syncs, "sync")
	report(b, events, "event")
}

// report tells the medians, for each object.
func report(b *testing.B, costs []cost, what string) {
	if len(costs) == 0 {
		return
	}
	for unit, value := range map[string]func(cost) float64{
		"µs/":           func(c cost) float64 { return float64(c.Wall.Nanoseconds()) / 1e3 / benchObjects },
		"cpu-µs/":       func(c cost) float64 { return float64(c.CPU.Nanoseconds()) / 1e3 / benchObjects },
		"allocs/":       func(c cost) float64 { return float64(c.Mallocs) / benchObjects },
		"B-allocated/":  func(c cost) float64 { return float64(c.Allocated) / benchObjects },
		"B-kept/":       func(c cost) float64 { return float64(c.Final) / benchObjects },
		"B-above-kept/": func(c cost) float64 { return (float64(c.Peak) - float64(c.Final)) / benchObjects },
	} {
		all := make([]float64, len(costs))
		for i, c := range costs {
			all[i] = value(c)
		}
		slices.Sort(all)
		b.ReportMetric(all[len(all)/2], unit+what)
	}
}
