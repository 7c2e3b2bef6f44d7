package mutants

import (
	"net/url"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/cases"
)

// selectMutants break the cases of selectors.
var selectMutants = []Mutant{
	{"selects-every-label", []string{
		"select/label-ops", "select/leaves-selector", "select/non-matching-silent", "select/combined-resume", "select/property", "select/empty-result",
	}, cases.Interceptors{Source: onWatches(func(q *listwatch.Query) { q.Labels = listwatch.LabelSelector{} })}},
	{"selects-every-field", []string{"select/field-name", "select/non-matching-silent"}, cases.Interceptors{
		Source: onWatches(func(q *listwatch.Query) { q.Fields = listwatch.FieldSelector{} }),
	}},
	{"leaves-at-the-version-before", []string{"select/leaves-carries-new-rv"}, cases.Interceptors{
		Source: onEvents(func(e listwatch.Event, _ int) []listwatch.Event {
			if e.Type == listwatch.Deleted {
				e.Object = e.Object.At(e.Version - 1)
				e.Version--
			}
			return []listwatch.Event{e}
		}),
	}},
	{"takes-any-selector", []string{"select/field-unknown", "select/bad-syntax"}, cases.Interceptors{Handler: onQuery(func(q url.Values) {
		q.Del("labelSelector")
		q.Del("fieldSelector")
	})}},
}
