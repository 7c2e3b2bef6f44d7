// Package selector has the cases for label and field selectors.
package selector

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases check label and field selectors.
var Cases = []harness.Case{
	harness.Rule("select/label-ops", "label selectors support =, ==, !=, in, notin, exists and !exists",
		harness.Case{Needs: harness.OwnCollection, Run: labelOps}),
	harness.Rule("select/leaves-selector",
		"an object that stops matching is DELETED, and one that starts to match is ADDED",
		harness.Case{Needs: harness.OwnCollection, Run: leavesSelector}),
	harness.Rule("select/leaves-carries-new-rv",
		"the DELETED event of an object that stops matching has the version of the update and the last content that "+
			"matched",
		harness.Case{Needs: harness.OwnCollection, Run: leavesCarriesNewRV}),
	harness.Rule("select/non-matching-silent", "changes outside the selector send nothing",
		harness.Case{Needs: harness.OwnCollection, Run: nonMatchingSilent}),
	harness.Rule("select/field-name", "metadata.name=x selects the objects with that name",
		harness.Case{Needs: harness.OwnCollection, Run: fieldName}),
	harness.Rule("select/field-unknown", "an unknown field gets 400", harness.Case{Run: fieldUnknown}),
	harness.Rule("select/bad-syntax", "a malformed selector gets 400", harness.Case{Run: badSyntax}),
	harness.Rule("select/combined-resume",
		"a watch resumes exactly with its selector, and with another selector as if it had always had that one",
		harness.Case{Subject: harness.Both, Needs: harness.OwnCollection, Run: combinedResume}),
	harness.Rule("select/empty-result", "a selector without matches gives an open stream that receives bookmarks",
		harness.Case{
			Needs: harness.OwnCollection | harness.FrequentBookmarks, Setup: harness.BookmarksOften, Run: emptyResult,
		}),
	harness.Rule("select/property",
		"a watch with a selector receives the events of a random history that a model predicts", harness.Case{
			Strength: harness.Promise, Mode: harness.FakeTime, Needs: harness.OwnCollection, Run: selectProperty,
		}),
}
