package checker

import (
	"bytes"
	"testing"
)

// benchSteps is the number of steps of a simulation with about ten thousand events.
const benchSteps = 6000

// BenchmarkCheck measures the events checked per second, including the time to sort the writes and
// to compute the expected events of each selection.
func BenchmarkCheck(b *testing.B) {
	h := simulate(1, benchSteps)
	events := 0
	for b.Loop() {
		r, err := Check(h, nil)
		if err != nil {
			b.Fatal(err)
		}
		events += r.Summary.Events
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}

func BenchmarkReadHistory(b *testing.B) {
	h := simulate(1, benchSteps)
	frames := 0
	for _, s := range h.Sessions {
		frames += len(s.Events)
	}
	var file bytes.Buffer
	if _, err := h.WriteTo(&file); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(file.Len()))
	for b.Loop() {
		if _, err := ReadHistory(bytes.NewReader(file.Bytes())); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(frames*b.N)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(file.Len())/float64(frames), "bytes/event")
}
