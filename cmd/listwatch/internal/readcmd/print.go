package readcmd

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/listwatch/listwatch"
)

// writeEvent writes an event as one line. As JSON, it writes the bytes of the object
// unchanged.
func writeEvent(w io.Writer, e listwatch.Event, output string, now time.Time) {
	switch output {
	case "json":
		fmt.Fprintf(w, `{"type":"%s","object":%s}`+"\n", e.Type, e.Object.Data)
	case "name":
		fmt.Fprintln(w, e.Object.Key)
	case "wide":
		fmt.Fprintf(w, "%s  %s\n", eventLine(e, now), labels(e.Object))
	default:
		fmt.Fprintln(w, eventLine(e, now))
	}
}

func eventLine(e listwatch.Event, now time.Time) string {
	key := e.Object.Key.String()
	if key == "" {
		key = "-"
	}
	return fmt.Sprintf("%-8s  %-32s  %-20s  %4s", e.Type, key, e.Version, age(e.Object, now))
}

// writeTable writes objects as a table.
func writeTable(w io.Writer, items []*listwatch.Object, namespaces, wide bool, now time.Time) {
	if len(items) == 0 {
		return
	}
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	row := func(namespace, name, version, age, labels string) {
		cells := []string{name, version, age}
		if namespaces {
			cells = slices.Insert(cells, 0, namespace)
		}
		if wide {
			cells = append(cells, labels)
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	row("NAMESPACE", "NAME", "VERSION", "AGE", "LABELS")
	for _, o := range items {
		row(o.Key.Namespace, o.Key.Name, o.Version.String(), age(o, now), labels(o))
	}
	table.Flush() // the next write to w returns the error
}

func labels(o *listwatch.Object) string {
	if len(o.Labels) == 0 {
		return "-"
	}
	parts := make([]string, 0, len(o.Labels))
	for _, k := range slices.Sorted(maps.Keys(o.Labels)) {
		parts = append(parts, k+"="+o.Labels[k])
	}
	return strings.Join(parts, ",")
}

// age returns the time since the creation of o in the largest unit that gives at least 2,
// such as 119s or 2m.
func age(o *listwatch.Object, now time.Time) string {
	meta, err := listwatch.Decode[struct{ Metadata listwatch.Metadata }](o)
	if err != nil || meta.Metadata.CreationTimestamp == nil {
		return "-"
	}
	d := max(now.Sub(*meta.Metadata.CreationTimestamp), 0)
	const day = 24 * time.Hour
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 2*day:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/day)
}
