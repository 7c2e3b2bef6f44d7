// Package selector has the cases about label and field selectors.
package selector

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases are those of selectors.
var Cases = []harness.Case{
	{
		ID: "select/label-ops", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "label selectors know =, ==, !=, in, notin, exists and !exists",
		Needs: harness.Writes | harness.SoleWriter, Run: labelOps,
	},
	{
		ID: "select/leaves-selector", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "an object that stops matching is DELETED, one that begins to is ADDED",
		Needs: harness.Writes | harness.SoleWriter, Run: leavesSelector,
	},
	{
		ID: "select/leaves-carries-new-rv", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "that DELETED has the version of the update and the content that matched",
		Needs: harness.Writes | harness.SoleWriter, Run: leavesCarriesNewRV,
	},
	{
		ID: "select/non-matching-silent", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "changes outside of the selector send nothing",
		Needs: harness.Writes | harness.SoleWriter, Run: nonMatchingSilent,
	},
	{
		ID: "select/field-name", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "metadata.name=x selects the objects of that name",
		Needs: harness.Writes | harness.SoleWriter, Run: fieldName,
	},
	{
		ID: "select/field-unknown", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule: "a field that is not known is answered 400",
		Run:  fieldUnknown,
	},
	{
		ID: "select/bad-syntax", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule: "a selector that can't be read is answered 400",
		Run:  badSyntax,
	},
	{
		ID: "select/combined-resume", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Mode: "r",
		Rule:  "a watch is resumed exactly with its selector, and with another one as if that had been there before",
		Needs: harness.Writes | harness.SoleWriter, Run: combinedResume,
	},
	{
		ID: "select/empty-result", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "a selector that nothing matches gives an open stream, on which bookmarks come",
		Setup: harness.FrequentBookmarks,
		Needs: harness.Writes | harness.Configurable | harness.SoleWriter, Run: emptyResult,
	},
	{
		ID: "select/property", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Mode: "f",
		Rule:  "a random history is seen through a selector as a model says",
		Needs: harness.Writes | harness.SoleWriter, Run: selectProperty,
	},
}
