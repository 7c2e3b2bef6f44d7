// Package bookmark has the cases about bookmarks.
package bookmark

import (
	"time"

	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases lists the cases about bookmarks.
var Cases = []harness.Case{
	{
		ID: "bookmark/opt-in", Needs: harness.OwnCollection | harness.Configurable | harness.Drains,
		Setup: harness.FrequentBookmarks, Run: bookmarkOptIn,
		Rule: "a watch without allowWatchBookmarks=true receives no bookmark, not even after its initial events or " +
			"before it ends (KEP-956)",
	},
	{
		ID: "bookmark/shape", Needs: harness.OwnCollection | harness.Configurable, Setup: harness.FrequentBookmarks,
		Run:  bookmarkShape,
		Rule: "a bookmark's object has kind, apiVersion, metadata.resourceVersion and annotations only (KEP-956)",
	},
	{
		ID: "bookmark/sound", Needs: harness.OwnCollection | harness.Configurable, Setup: harness.FrequentBookmarks,
		Run:  bookmarkSound,
		Rule: "every event up to a bookmark's version precedes the bookmark",
	},
	{
		ID: "bookmark/monotone", Needs: harness.OwnCollection | harness.Configurable, Setup: harness.FrequentBookmarks,
		Run:  bookmarkMonotone,
		Rule: "the versions of bookmarks never decrease, and are never below the version of an earlier event",
	},
	{
		ID: "bookmark/idle-progress", Level: harness.Should, Mode: harness.FakeTime, Needs: harness.OwnCollection,
		Run: bookmarkIdleProgress,
		Rule: "bookmarks of a quiet watch advance at the configured interval while other objects are written " +
			"(KEP-1904)",
	},
	{
		ID: "bookmark/resume", Subject: harness.Both, Needs: harness.OwnCollection | harness.Configurable,
		Setup: harness.FrequentBookmarks, Run: bookmarkResume,
		Rule: "a watch resumes exactly from the version of a bookmark (KEP-956)",
	},
	{
		ID: "bookmark/before-timeout", Level: harness.Should, Mode: harness.FakeTime, Needs: harness.OwnCollection,
		Run:  bookmarkBeforeTimeout,
		Rule: "shortly before timeoutSeconds ends a watch, it receives a bookmark at the newest version",
	},
	{
		ID: "bookmark/never-from-future", Needs: harness.OwnCollection | harness.Configurable,
		Setup: harness.FrequentBookmarks, Run: bookmarkNeverFromFuture,
		Rule: "the version of a bookmark is not higher than the version of the newest write that had started when " +
			"the bookmark was sent",
	},
	{
		ID: "bookmark/not-to-handlers", Subject: harness.Client, Mode: harness.FakeTime, Needs: harness.InProcess,
		Run:  bookmarkNotToHandlers,
		Rule: "a client that resumes never presents a bookmark as a change of an object",
	},
}

// maxBookmarkPeriod is the longest allowed time between two bookmarks. A server should send one
// about every minute.
const maxBookmarkPeriod = 2 * time.Minute
