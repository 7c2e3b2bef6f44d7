package report

import (
	"bytes"
	"image/color"
	"os"
	"path/filepath"

	"github.com/listwatch/listwatch/benchmarks/rivals/internal/runner"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// A series is a set of bars, one for each rival.
type series struct {
	label  string
	metric runner.Metric
	color  color.Color
}

var (
	blue   = color.RGBA{0x2a, 0x6f, 0xb0, 0xff}
	orange = color.RGBA{0xe0, 0x8a, 0x1e, 0xff}
)

// charts are the plots by file name.
var charts = map[string]struct {
	title  string
	series []series
}{
	"rivals-fanout.svg": {"CPU time of the server for each delivery of 1 KiB, in µs", []series{
		{"one event at a time", runner.SingleCPU, blue}, {"bursts of 16", runner.BurstCPU, orange},
	}},
	"rivals-idle.svg": {
		"Resident memory of the server for each idle watcher, in KiB", []series{{"", runner.IdleMemory, blue}},
	},
	"rivals-state.svg": {
		"CPU time of the server for each object of the initial state, in µs", []series{{"", runner.StateCPU, blue}},
	},
}

// plots writes the charts to dir.
func (r Report) plots(dir string) error {
	for name, c := range charts {
		p := plot.New()
		p.Title.Text = c.title
		p.X.Min = 0
		p.Legend.Top, p.Legend.XOffs = true, vg.Points(-8)
		for i, s := range c.series {
			if err := r.addBars(p, s, i, len(c.series)); err != nil {
				return err
			}
		}
		var labels []string
		for _, rival := range r.backwards() {
			labels = append(labels, rival.Label)
		}
		p.NominalY(labels...)
		height := vg.Length(len(r.Rivals)+2) * vg.Points(26)
		if err := save(p, vg.Points(760), height, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// save writes a plot. The positions of the labels fit the widths of Liberation Serif, so save adds
// a fallback font with the same widths for browsers without that font.
func save(p *plot.Plot, width, height vg.Length, file string) error {
	if err := p.Save(width, height, file); err != nil {
		return err
	}
	svg, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	svg = bytes.ReplaceAll(svg, []byte("Liberation Serif;"), []byte("Liberation Serif,Times New Roman,serif;"))
	return os.WriteFile(file, svg, 0o644)
}

// addBars adds the bars of s to p. s is the series with index i of n series. A metric that was not
// measured has an empty bar.
func (r Report) addBars(p *plot.Plot, s series, i, n int) error {
	var values plotter.Values
	for _, rival := range r.backwards() {
		values = append(values, max(0, r.Results[rival.Name][s.metric]))
	}
	width := vg.Points(18) / vg.Length(n)
	bars, err := plotter.NewBarChart(values, width)
	if err != nil {
		return err
	}
	bars.Horizontal, bars.Color, bars.LineStyle.Width = true, s.color, 0
	// The first series is at the top.
	bars.Offset = width * (vg.Length(n-1)/2 - vg.Length(i))
	p.Add(bars)
	if s.label != "" {
		p.Legend.Add(s.label, bars)
	}
	return nil
}

// backwards returns the rivals from the bottom of a chart to its top.
func (r Report) backwards() []runner.Rival {
	var all []runner.Rival
	for _, rival := range r.Rivals {
		all = append([]runner.Rival{rival}, all...)
	}
	return all
}
