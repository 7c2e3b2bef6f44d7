// Package bookmark has the cases about bookmarks.
package bookmark

import (
	"time"

	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases lists the cases about bookmarks.
var Cases = []harness.Case{
	{
		ID: "bookmark/opt-in", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "a watch without allowWatchBookmarks=true receives no bookmark, not even after " +
			"its initial events or before it ends (KEP-956)",
		Needs: harness.Writes | harness.SoleWriter | harness.Configurable | harness.Drains, Setup: harness.FrequentBookmarks, Run: bookmarkOptIn,
	},
	{
		ID: "bookmark/shape", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "a bookmark's object has kind, apiVersion, metadata.resourceVersion and " +
			"annotations only (KEP-956)",
		Needs: harness.Writes | harness.SoleWriter | harness.Configurable, Setup: harness.FrequentBookmarks, Run: bookmarkShape,
	},
	{
		ID: "bookmark/sound", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule:  "every event up to a bookmark's version precedes the bookmark",
		Needs: harness.Writes | harness.SoleWriter | harness.Configurable, Setup: harness.FrequentBookmarks, Run: bookmarkSound,
	},
	{
		ID: "bookmark/monotone", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "the versions of bookmarks never decrease, and are never below the version of " +
			"an earlier event",
		Needs: harness.Writes | harness.SoleWriter | harness.Configurable, Setup: harness.FrequentBookmarks, Run: bookmarkMonotone,
	},
	{
		ID: "bookmark/idle-progress", Level: harness.Should, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule: "bookmarks of a quiet watch advance at the configured interval while other " +
			"objects are written (KEP-1904)",
		Needs: harness.Writes | harness.SoleWriter, Run: bookmarkIdleProgress,
	},
	{
		ID: "bookmark/resume", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule:  "a watch resumes exactly from the version of a bookmark (KEP-956)",
		Needs: harness.Writes | harness.SoleWriter | harness.Configurable, Setup: harness.FrequentBookmarks, Run: bookmarkResume,
	},
	{
		ID: "bookmark/before-timeout", Level: harness.Should, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule: "shortly before timeoutSeconds ends a watch, it receives a bookmark at the " +
			"newest version",
		Needs: harness.Writes | harness.SoleWriter, Run: bookmarkBeforeTimeout,
	},
	{
		ID: "bookmark/never-from-future", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "the version of a bookmark is not higher than the version of the newest write " +
			"that had started when the bookmark was sent",
		Needs: harness.Writes | harness.SoleWriter | harness.Configurable, Setup: harness.FrequentBookmarks, Run: bookmarkNeverFromFuture,
	},
	{
		ID: "bookmark/not-to-handlers", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule:  "a client that resumes never presents a bookmark as a change of an object",
		Needs: harness.InProcess, Run: bookmarkNotToHandlers,
	},
}

// maxBookmarkPeriod is the longest allowed time between two bookmarks. A server should send one
// about every minute.
const maxBookmarkPeriod = 2 * time.Minute
