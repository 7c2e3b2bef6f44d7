package benchcmd

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"strings"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// htmlPage returns an HTML page with the table and the plots. The page refers to no other file.
func htmlPage(results []*Result, url string) ([]byte, error) {
	latency := newPlot("Latency", "ms", results, []line{
		{"p50", func(s Sample) float64 { return s.Latency.P50 }},
		{"p99", func(s Sample) float64 { return s.Latency.P99 }},
	})
	throughput := newPlot("Throughput", "events per second", results, []line{
		{"", func(s Sample) float64 { return s.EventsPerSecond }},
	})
	var b bytes.Buffer
	err := pageTemplate.Execute(&b,
		map[string]any{"URL": url, "Rows": cells(results), "Plots": []*plot{latency, throughput}})
	return b.Bytes(), err
}

// A line is one curve of a plot.
type line struct {
	label string
	value func(Sample) float64
}

// A plot shows values over the time of the run. The template draws it as SVG, in the coordinates
// of its frame: plotWidth to the right, plotHeight down.
type plot struct {
	Title, Unit string
	X, Y        []tick
	Curves      []curve
}

// A tick is a labeled position on an axis.
type tick struct {
	At    float64
	Label string
}

// A curve is a line with its entry in the legend.
type curve struct {
	Label, Color string
	Points       string // in SVG's syntax
	Row          int    // in the legend
}

const plotWidth, plotHeight = 560, 200

var colors = []string{"#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd", "#17becf"}

// newPlot draws every line once for each result.
func newPlot(title, unit string, results []*Result, lines []line) *plot {
	var maxX, maxY float64
	for _, r := range results {
		for _, s := range r.Timeline {
			maxX = max(maxX, s.Second)
			for _, l := range lines {
				maxY = max(maxY, l.value(s))
			}
		}
	}
	p := &plot{Title: title, Unit: unit}
	var scaleX, scaleY float64
	p.X, scaleX = axis(maxX, plotWidth)
	p.Y, scaleY = axis(maxY, plotHeight)
	for i := range p.Y {
		p.Y[i].At = plotHeight - p.Y[i].At
	}
	for _, r := range results {
		if len(r.Timeline) == 0 {
			continue
		}
		for _, l := range lines {
			var points strings.Builder
			for _, s := range r.Timeline {
				fmt.Fprintf(&points, "%.1f,%.1f ", s.Second*scaleX, plotHeight-l.value(s)*scaleY)
			}
			n := len(p.Curves)
			label := strings.TrimSpace(r.Transport + " " + l.label)
			p.Curves = append(p.Curves, curve{label, colors[n%len(colors)], points.String(), 16 * n})
		}
	}
	return p
}

// axis returns about five round ticks from zero to limit, and the number of pixels of one unit on
// an axis that ends at the last tick.
func axis(limit, pixels float64) (ticks []tick, scale float64) {
	if limit <= 0 {
		limit = 1
	}
	step := math.Pow(10, math.Floor(math.Log10(limit/5)))
	for _, factor := range []float64{2, 2.5, 2} { // steps of 1, 2, 5 and 10
		if limit/step > 5 {
			step *= factor
		}
	}
	n := math.Ceil(limit / step)
	scale = pixels / (n * step)
	for i := range int(n) + 1 {
		value := float64(i) * step
		ticks = append(ticks, tick{value * scale, fmt.Sprintf("%.6g", value)})
	}
	return ticks, scale
}
