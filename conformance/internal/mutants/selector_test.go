package mutants

import (
	"net/url"

	"github.com/listwatch/listwatch"
)

// selectorMutants are servers with one defect each, which the cases about selectors must detect.
var selectorMutants = []mutant{
	{
		Name: "ignores-label-selectors",
		Breaks: []string{
			"select/label-ops", "select/leaves-selector", "select/non-matching-silent", "select/combined-resume",
			"select/property", "select/empty-result",
		},
		Defect: defect{Source: onWatches(func(q *listwatch.Query) { q.Labels = listwatch.LabelSelector{} })},
	},
	{
		Name: "ignores-field-selectors", Breaks: []string{"select/field-name", "select/non-matching-silent"},
		Defect: defect{
			Source: onWatches(func(q *listwatch.Query) { q.Fields = listwatch.FieldSelector{} }),
		},
	},
	{
		Name: "deletes-at-the-previous-version", Breaks: []string{"select/leaves-carries-new-rv"},
		Defect: defect{
			Source: onEvents(func(e listwatch.Event, _ int) []listwatch.Event {
				if e.Type == listwatch.Deleted {
					e.Object = e.Object.At(e.Version - 1)
					e.Version--
				}
				return []listwatch.Event{e}
			}),
		},
	},
	{
		Name: "accepts-invalid-selectors", Breaks: []string{"select/field-unknown", "select/bad-syntax"},
		Defect: defect{Handler: onQuery(func(q url.Values) {
			q.Del("labelSelector")
			q.Del("fieldSelector")
		})},
	},
}
