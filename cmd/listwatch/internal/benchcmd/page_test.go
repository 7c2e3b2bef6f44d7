package benchcmd

import (
	"strings"
	"testing"
)

func TestAxesEndAtARoundValue(t *testing.T) {
	for _, c := range []struct {
		limit float64
		want  string
	}{
		{0, "0 0.2 0.4 0.6 0.8 1"},
		{0.03, "0 0.01 0.02 0.03"},
		{2, "0 0.5 1 1.5 2"},
		{61, "0 20 40 60 80"},
		{12345, "0 5000 10000 15000"},
	} {
		ticks, scale := axis(c.limit, 100)
		var labels []string
		for _, tick := range ticks {
			labels = append(labels, tick.Label)
		}
		if got := strings.Join(labels, " "); got != c.want || scale*c.limit > 100 || ticks[len(ticks)-1].At != 100 {
			t.Errorf("%g: got ticks %s, scale %g; want %s within 100 pixels", c.limit, got, scale, c.want)
		}
	}
}

func TestPlotsHaveALinePerResultAndQuantile(t *testing.T) {
	results := []*Result{
		{Transport: "h2", Timeline: []Sample{
			{Second: 1, Latency: Quantiles{P50: 1, P99: 4}},
			{Second: 2, Latency: Quantiles{P50: 2, P99: 2}},
		}},
		{Transport: "chunked"},
	}
	page, err := htmlPage(results, "http://a")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`<polyline stroke="#1f77b4" stroke-width="2" points="280.0,150.0 560.0,100.0 "/>`,
		`<polyline stroke="#d62728" stroke-width="2" points="280.0,0.0 560.0,100.0 "/>`,
	}
	for _, line := range want {
		if !strings.Contains(string(page), line) {
			t.Errorf("the page has no %s:\n%s", line, page)
		}
	}
	if n := strings.Count(string(page), "<polyline"); n != 3 {
		t.Errorf("got %d lines, want two of the latency and one of the throughput", n)
	}
}
