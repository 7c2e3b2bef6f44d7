package benchcmd

import (
	"bytes"
	_ "embed"
	"html/template"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// A line is one curve of a plot.
type line struct {
	label string
	value func(Sample) float64
}

// htmlPage returns an HTML page with the table and the plots. The page refers to no other file.
func htmlPage(results []*Result, url string) ([]byte, error) {
	latency, err := svg("Latency", "ms", results, []line{
		{"p50", func(s Sample) float64 { return s.Latency.P50 }}, {"p99", func(s Sample) float64 { return s.Latency.P99 }},
	})
	if err != nil {
		return nil, err
	}
	throughput, err := svg("Throughput", "events per second", results, []line{{"", func(s Sample) float64 { return s.EventsPerSecond }}})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = pageTemplate.Execute(&b, map[string]any{"URL": url, "Rows": cells(results), "Plots": []template.HTML{latency, throughput}})
	return b.Bytes(), err
}

// svg returns a plot over the time of the run. It draws every line once for each result.
func svg(title, unit string, results []*Result, lines []line) (template.HTML, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, "seconds", unit
	p.Y.Min, p.Legend.Top = 0, true
	p.Add(plotter.NewGrid())
	color := 0
	for _, r := range results {
		for _, l := range lines {
			var points plotter.XYs
			for _, s := range r.Timeline {
				points = append(points, plotter.XY{X: s.Second, Y: l.value(s)})
			}
			if len(points) == 0 {
				continue
			}
			curve, err := plotter.NewLine(points)
			if err != nil {
				return "", err
			}
			curve.Color, curve.Width = plotutil.Color(color), vg.Points(1.5)
			color++
			p.Add(curve)
			p.Legend.Add(strings.TrimSpace(r.Transport+" "+l.label), curve)
		}
	}
	canvas := vgsvg.New(vg.Points(680), vg.Points(260))
	p.Draw(draw.New(canvas))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return "", err
	}
	_, image, _ := strings.Cut(b.String(), "<svg") // without the XML declaration
	return template.HTML("<svg" + image), nil
}
