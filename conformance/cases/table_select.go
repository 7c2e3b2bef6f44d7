package cases

// selectCases are those of selectors.
var selectCases = []Case{
	{
		ID: "select/label-ops", Level: Must, Subject: Server, On: all, Lane: "r",
		Says:  "label selectors know =, ==, !=, in, notin, exists and !exists",
		needs: Writes | Alone, run: labelOps,
	},
	{
		ID: "select/leaves-selector", Level: Must, Subject: Server, On: all, Lane: "r",
		Says:  "an object that stops matching is DELETED, one that begins to is ADDED",
		needs: Writes | Alone, run: leavesSelector,
	},
	{
		ID: "select/leaves-carries-new-rv", Level: Must, Subject: Server, On: all, Lane: "r",
		Says:  "that DELETED has the version of the update and the content that matched",
		needs: Writes | Alone, run: leavesCarriesNewRV,
	},
	{
		ID: "select/non-matching-silent", Level: Must, Subject: Server, On: all, Lane: "r",
		Says:  "changes outside of the selector send nothing",
		needs: Writes | Alone, run: nonMatchingSilent,
	},
	{
		ID: "select/field-name", Level: Must, Subject: Server, On: all, Lane: "r",
		Says:  "metadata.name=x selects the objects of that name",
		needs: Writes | Alone, run: fieldName,
	},
	{
		ID: "select/field-unknown", Level: Must, Subject: Server, On: all, Lane: "r",
		Says: "a field that is not known is answered 400",
		run:  fieldUnknown,
	},
	{
		ID: "select/bad-syntax", Level: Must, Subject: Server, On: all, Lane: "r",
		Says: "a selector that can't be read is answered 400",
		run:  badSyntax,
	},
	{
		ID: "select/combined-resume", Level: Must, Subject: Both, On: all, Lane: "r",
		Says:  "a watch is resumed exactly with its selector, and with another one as if that had been there before",
		needs: Writes | Alone, run: combinedResume,
	},
	{
		ID: "select/empty-result", Level: Must, Subject: Server, On: all, Lane: "r",
		Says:  "a selector that nothing matches gives an open stream, on which bookmarks come",
		setup: eagerBookmarks,
		needs: Writes | Setups | Alone, run: emptyResult,
	},
	{
		ID: "select/property", Level: Promise, Subject: Server, On: all, Lane: "f",
		Says:  "a random history is seen through a selector as a model says",
		needs: Writes | Alone, run: selectProperty,
	},
}
