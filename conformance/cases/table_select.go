package cases

// selectCases are those of selectors.
var selectCases = []Case{
	{
		ID: "select/label-ops", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "label selectors know =, ==, !=, in, notin, exists and !exists",
		needs: Writes | SoleWriter, run: labelOps,
	},
	{
		ID: "select/leaves-selector", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "an object that stops matching is DELETED, one that begins to is ADDED",
		needs: Writes | SoleWriter, run: leavesSelector,
	},
	{
		ID: "select/leaves-carries-new-rv", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "that DELETED has the version of the update and the content that matched",
		needs: Writes | SoleWriter, run: leavesCarriesNewRV,
	},
	{
		ID: "select/non-matching-silent", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "changes outside of the selector send nothing",
		needs: Writes | SoleWriter, run: nonMatchingSilent,
	},
	{
		ID: "select/field-name", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "metadata.name=x selects the objects of that name",
		needs: Writes | SoleWriter, run: fieldName,
	},
	{
		ID: "select/field-unknown", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule: "a field that is not known is answered 400",
		run:  fieldUnknown,
	},
	{
		ID: "select/bad-syntax", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule: "a selector that can't be read is answered 400",
		run:  badSyntax,
	},
	{
		ID: "select/combined-resume", Level: Must, Subject: Both, Transports: all, Mode: "r",
		Rule:  "a watch is resumed exactly with its selector, and with another one as if that had been there before",
		needs: Writes | SoleWriter, run: combinedResume,
	},
	{
		ID: "select/empty-result", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "a selector that nothing matches gives an open stream, on which bookmarks come",
		setup: eagerBookmarks,
		needs: Writes | Configurable | SoleWriter, run: emptyResult,
	},
	{
		ID: "select/property", Level: Promise, Subject: Server, Transports: all, Mode: "f",
		Rule:  "a random history is seen through a selector as a model says",
		needs: Writes | SoleWriter, run: selectProperty,
	},
}
