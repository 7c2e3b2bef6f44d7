// Package selector has the cases for label and field selectors.
package selector

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases check label and field selectors.
var Cases = []harness.Case{
	{
		ID: "select/label-ops", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule:  "label selectors support =, ==, !=, in, notin, exists and !exists",
		Needs: harness.Writes | harness.SoleWriter, Run: labelOps,
	},
	{
		ID: "select/leaves-selector", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "an object that stops matching is DELETED, and one that starts to match is " +
			"ADDED",
		Needs: harness.Writes | harness.SoleWriter, Run: leavesSelector,
	},
	{
		ID: "select/leaves-carries-new-rv", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule:  "the DELETED event of an object that stops matching has the version of the update and the last content that matched",
		Needs: harness.Writes | harness.SoleWriter, Run: leavesCarriesNewRV,
	},
	{
		ID: "select/non-matching-silent", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule:  "changes outside the selector send nothing",
		Needs: harness.Writes | harness.SoleWriter, Run: nonMatchingSilent,
	},
	{
		ID: "select/field-name", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule:  "metadata.name=x selects the objects with that name",
		Needs: harness.Writes | harness.SoleWriter, Run: fieldName,
	},
	{
		ID: "select/field-unknown", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "an unknown field gets 400",
		Run:  fieldUnknown,
	},
	{
		ID: "select/bad-syntax", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "a malformed selector gets 400",
		Run:  badSyntax,
	},
	{
		ID: "select/combined-resume", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "a watch resumes exactly with its selector, and with another selector as if it " +
			"had always had that one",
		Needs: harness.Writes | harness.SoleWriter, Run: combinedResume,
	},
	{
		ID: "select/empty-result", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule:  "a selector without matches gives an open stream that receives bookmarks",
		Setup: harness.FrequentBookmarks,
		Needs: harness.Writes | harness.Configurable | harness.SoleWriter, Run: emptyResult,
	},
	{
		ID: "select/property", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule:  "a watch with a selector receives the events of a random history that a model predicts",
		Needs: harness.Writes | harness.SoleWriter, Run: selectProperty,
	},
}
