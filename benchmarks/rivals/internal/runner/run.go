package runner

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// Options configure Run.
type Options struct {
	Work
	Rounds int
	// Kubernetes is the test binary of interop/rivals. It is needed only for the rivals that
	// are Kubernetes API servers.
	Kubernetes string
	// Progress receives a line before and after each rival.
	Progress io.Writer
}

// Run measures the rivals in turn, Rounds times, and returns the median of each metric by the name
// of the rival. Interleaved rounds spread a disturbance of the machine over all rivals.
func Run(rivals []Rival, o Options) (map[string]Result, error) {
	all := map[string][]Result{}
	begin := time.Now()
	for round := range o.Rounds {
		for i, rival := range rivals {
			fmt.Fprintf(o.Progress, "round %d/%d, rival %d/%d, %4.0f s: %s ", round+1, o.Rounds, i+1, len(rivals),
				time.Since(begin).Seconds(), rival.Label)
			r := &run{Work: o.Work, rival: rival, kubernetes: o.Kubernetes, result: Result{}}
			if err := r.measure(); err != nil {
				return nil, fmt.Errorf("%s: %w", rival.Name, err)
			}
			fmt.Fprintf(o.Progress, "%.1f µs, %.1f in bursts\n", r.result[SingleCPU], r.result[BurstCPU])
			all[rival.Name] = append(all[rival.Name], r.result)
		}
	}
	medians := map[string]Result{}
	for name, results := range all {
		medians[name] = medianOf(results)
	}
	return medians, nil
}

// measure runs all the work. On an error, the result holds the measurements before the error.
func (r *run) measure() error {
	for _, phase := range []struct {
		name string
		run  func() error
	}{
		{"fan-out", r.fanOut},
		{"stalled reader", r.stalledReader},
		{"initial state", r.initialState},
		{"storm", r.storm},
	} {
		if err := phase.run(); err != nil {
			return fmt.Errorf("%s: %w", phase.name, err)
		}
	}
	return nil
}

// medianOf returns the medians of the metrics that more than half of the results have.
func medianOf(results []Result) Result {
	values := map[Metric][]float64{}
	for _, r := range results {
		for m, v := range r {
			values[m] = append(values[m], v)
		}
	}
	median := Result{}
	for m, v := range values {
		if len(v) > len(results)/2 {
			median[m] = Median(v)
		}
	}
	return median
}

// Median returns the median of values, which must not be empty.
func Median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}
