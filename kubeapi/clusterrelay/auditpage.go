package clusterrelay

import (
	"fmt"
	"html/template"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/meter"
)

// serveReport responds with JSON if the query has format=json, with a page if the client is a
// browser, and otherwise with tables of text.
func (a *audit) serveReport(w http.ResponseWriter, r *http.Request) {
	report := a.report()
	if r.URL.Query().Get("format") == "json" {
		apihttp.WriteJSON(w, r, http.StatusOK, report)
		return
	}
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		h.Set("Content-Type", "text/plain; charset=utf-8")
		report.writeText(w)
		return
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	shown := map[string]any{"Since": report.started(), "Tables": report.tables()}
	_ = page.Execute(w, shown) // an error means that the client has disconnected
}

func (r *report) started() string { return r.Since.UTC().Format(time.RFC3339) }

// A reportTable is a part of a report for people.
type reportTable struct {
	Title   string
	Columns []string
	Rows    [][]any
}

// tables returns r for people.
func (r *report) tables() []reportTable {
	reads := reportTable{
		Title: "Reads", Columns: []string{"client", "verb", "resource", "requests", "events", "bytes"},
	}
	for _, c := range r.Reads {
		reads.Rows = append(reads.Rows, []any{c.Client, c.Verb, c.Resource, c.Requests, c.Events, c.Bytes})
	}
	changes := reportTable{Title: "Changes", Columns: []string{"resource", "changes", "bytes"}}
	savings := reportTable{
		Title:   "What a watch with a parameter would not have received",
		Columns: append([]string{"resource"}, meter.Columns[:]...),
	}
	selectors := reportTable{
		Title:   "Bytes of the changes for one value of a field, on average",
		Columns: []string{"resource", "field", "values", "bytes of each"},
	}
	for _, c := range r.Changes {
		changes.Rows = append(changes.Rows, []any{c.Resource, c.Changes.Events, c.Changes.Bytes})
		for _, row := range c.Rows() {
			savings.Rows = append(savings.Rows, []any{c.Resource, row[0], row[1], row[2], row[3]})
		}
		for _, s := range c.Selectors {
			selectors.Rows = append(selectors.Rows, []any{c.Resource, s.Field, s.Values, c.Changes.Bytes / s.Values})
		}
	}
	return []reportTable{reads, changes, savings, selectors}
}

// writeText writes r as text. Errors mean that the client has disconnected.
func (r *report) writeText(w io.Writer) {
	fmt.Fprintln(w, "Since", r.started())
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, table := range r.tables() {
		fmt.Fprintf(w, "\n%s\n\n", table.Title)
		fmt.Fprintln(t, strings.ToUpper(strings.Join(table.Columns, "\t")))
		for _, row := range table.Rows {
			cells := make([]string, 0, len(row))
			for _, cell := range row {
				cells = append(cells, fmt.Sprint(cell))
			}
			fmt.Fprintln(t, strings.Join(cells, "\t"))
		}
		_ = t.Flush()
	}
}

// page shows the tables of a report. It has no scripts, and the template escapes the names that
// clients have chosen.
var page = template.Must(template.New("audit").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>listwatch audit</title>
<link rel="icon" href="data:,">
<style>
body { font: 14px sans-serif; margin: 2em; }
table { border-collapse: collapse; }
th, td { border-bottom: 1px solid #ddd; padding: 2px 12px 2px 0; text-align: left; }
</style>
<h1>Who reads what</h1>
<p>Since {{.Since}}. <a href="?format=json">JSON</a></p>
{{range .Tables}}<h2>{{.Title}}</h2>
<table>
<tr>{{range .Columns}}<th>{{.}}</th>{{end}}</tr>
{{range .Rows}}<tr>{{range .}}<td>{{.}}</td>{{end}}</tr>
{{end}}</table>
{{end}}`))
