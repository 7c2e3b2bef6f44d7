// Package selector has the cases for label and field selectors.
package selector

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases check label and field selectors.
var Cases = []harness.Case{
	{
		ID: "select/label-ops", Needs: harness.OwnCollection, Run: labelOps,
		Rule: "label selectors support =, ==, !=, in, notin, exists and !exists",
	},
	{
		ID: "select/leaves-selector", Needs: harness.OwnCollection, Run: leavesSelector,
		Rule: "an object that stops matching is DELETED, and one that starts to match is ADDED",
	},
	{
		ID: "select/leaves-carries-new-rv", Needs: harness.OwnCollection, Run: leavesCarriesNewRV,
		Rule: "the DELETED event of an object that stops matching has the version of the update and the last content " +
			"that matched",
	},
	{
		ID: "select/non-matching-silent", Needs: harness.OwnCollection, Run: nonMatchingSilent,
		Rule: "changes outside the selector send nothing",
	},
	{
		ID: "select/field-name", Needs: harness.OwnCollection, Run: fieldName,
		Rule: "metadata.name=x selects the objects with that name",
	},
	{
		ID: "select/field-unknown", Run: fieldUnknown,
		Rule: "an unknown field gets 400",
	},
	{
		ID: "select/bad-syntax", Run: badSyntax,
		Rule: "a malformed selector gets 400",
	},
	{
		ID: "select/combined-resume", Subject: harness.Both, Needs: harness.OwnCollection, Run: combinedResume,
		Rule: "a watch resumes exactly with its selector, and with another selector as if it had always had that one",
	},
	{
		ID: "select/empty-result", Needs: harness.OwnCollection | harness.Configurable,
		Setup: harness.FrequentBookmarks, Run: emptyResult,
		Rule: "a selector without matches gives an open stream that receives bookmarks",
	},
	{
		ID: "select/property", Level: harness.Promise, Mode: harness.FakeTime, Needs: harness.OwnCollection,
		Run:  selectProperty,
		Rule: "a watch with a selector receives the events of a random history that a model predicts",
	},
}
