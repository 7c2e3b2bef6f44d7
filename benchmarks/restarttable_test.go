package benchmarks

import (
	"fmt"
	"strings"
)

// A restartTable holds the results of BenchmarkRestart.
type restartTable struct{ rows []restartRow }

type restartRow struct {
	name    string
	clients int
	results []stormResult
}

// add adds a result of the benchmark with the given name.
func (t *restartTable) add(name string, clients int, r stormResult) {
	_, name, _ = strings.Cut(name, "/")
	if n := len(t.rows); n == 0 || t.rows[n-1].name != name {
		t.rows = append(t.rows, restartRow{name: name, clients: clients})
	}
	row := &t.rows[len(t.rows)-1]
	row.results = append(row.results, r)
}

// String returns the medians as a table in Markdown. A difference is compared with the whole state
// above it.
func (t *restartTable) String() string {
	var b strings.Builder
	fmt.Fprintln(&b,
		"| store, clients, state | clients | bytes | CPU of the server | median client | last client | watch p99 | times less: bytes, CPU, time |")
	fmt.Fprintln(&b, "|---|---|---|---|---|---|---|---|")
	var whole restartRow
	for _, row := range t.rows {
		ratios := ""
		if !strings.HasSuffix(row.name, "/difference") {
			whole = row
		} else {
			ratio := func(of func(stormResult) float64) float64 { return whole.median(of) / row.median(of) }
			ratios = fmt.Sprintf("%.0f, %.1f, %.1f", ratio(megabytes), ratio(cpuSeconds), ratio(lastSeconds))
		}
		fmt.Fprintf(&b, "| %s | %d | %.4g MB | %.2f s | %.2f s | %.2f s | %.0f ms | %s |\n", row.name, row.clients,
			row.median(megabytes), row.median(cpuSeconds),
			row.median(func(r stormResult) float64 { return r.median.Seconds() }), row.median(lastSeconds),
			row.median(func(r stormResult) float64 { return ms(r.seen.WatchP99) }), ratios)
	}
	return b.String()
}

func megabytes(r stormResult) float64   { return float64(r.bytes) / 1e6 }
func cpuSeconds(r stormResult) float64  { return r.cpu.Seconds() }
func lastSeconds(r stormResult) float64 { return r.last.Seconds() }

func (r restartRow) median(of func(stormResult) float64) float64 {
	var all []float64
	for _, result := range r.results {
		all = append(all, of(result))
	}
	return median(all)
}
