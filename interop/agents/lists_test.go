//go:build !race

package agents

import (
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	listedMaps = flag.Int("maps", 800, "the number of config maps of BenchmarkNewestList")
	mapBytes   = flag.Int("map-bytes", 100<<10, "the size of each of them")
	lists      = flag.Int("lists", 8, "the number of lists of each lane")
)

// BenchmarkNewestList measures lists of the newest state of many objects, directly at a
// kube-apiserver and behind a relay, while another resource changes all the time: the median of the
// time, and the processor time of the kube-apiserver for each list. The relay waits for a bookmark
// if a list would take long.
func BenchmarkNewestList(b *testing.B) {
	m, a := startRelayed(b, (*admin).createMaps)
	defer a.startWriter()()
	for i, url := range []string{m.server.URL, m.urls[0]} {
		b.Run([]string{"direct", "relayed"}[i], func(b *testing.B) {
			reader := newAdmin(b, url, m.server.Token)
			for _, version := range []string{"?resourceVersion=0", ""} { // starts the cache
				reader.list(version)
			}
			var took []time.Duration
			cpu := m.cpuPerSecond(b, func() { <-time.After(5 * time.Second) })
			begin, used := time.Now(), m.api.cpu(b)
			for range *lists {
				took = append(took, reader.list(""))
			}
			other := cpu * time.Since(begin).Seconds()
			slices.Sort(took)
			b.ReportMetric(0, "ns/op") // not reported, because it has no meaning here
			b.ReportMetric(took[len(took)/2].Seconds()*1000, "ms")
			b.ReportMetric(((m.api.cpu(b)-used).Seconds()-other)/float64(*lists)*1000, "api-ms")
		})
	}
}

// createMaps creates the config maps.
func (a *admin) createMaps() {
	a.Helper()
	data := strings.Repeat("x", *mapBytes)
	if err := a.send(a.Context(), http.MethodPost, "/api/v1/namespaces", "application/json",
		`{"metadata":{"name":"agents"}}`); err != nil {
		a.Fatal(err)
	}
	each(*listedMaps, func(n int) {
		if err := a.send(a.Context(), http.MethodPost, namespacePath+"/configmaps", "application/json",
			fmt.Sprintf(`{"metadata":{"name":"map-%d"},"data":{"x":%q}}`, n, data)); err != nil {
			a.Error(err)
		}
	})
	if a.Failed() {
		a.FailNow()
	}
}

// list lists all config maps.
func (a *admin) list(query string) (took time.Duration) {
	a.Helper()
	begin := time.Now()
	if err := a.send(a.Context(), http.MethodGet, "/api/v1/configmaps"+query, "application/json", ""); err != nil {
		a.Fatal(err)
	}
	return time.Since(begin)
}
