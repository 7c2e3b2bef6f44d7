// Package bookmark has the cases about bookmarks.
package bookmark

import (
	"time"

	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases are those of bookmarks.
var Cases = []harness.Case{
	{
		ID: "bookmark/opt-in", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "a watch that did not ask by allowWatchBookmarks=true gets no bookmark, not even to end its initial events or itself (KEP-956)",
		Needs: harness.Writes | harness.SoleWriter | harness.Configurable | harness.Drains, Setup: harness.FrequentBookmarks, Run: bookmarkOptIn,
	},
	{
		ID: "bookmark/shape", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "a bookmark's object has kind, apiVersion and metadata.resourceVersion, and nothing else but annotations (KEP-956)",
		Needs: harness.Writes | harness.SoleWriter | harness.Configurable, Setup: harness.FrequentBookmarks, Run: bookmarkShape,
	},
	{
		ID: "bookmark/sound", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "all events up to a bookmark's version came before it, and none after it",
		Needs: harness.Writes | harness.SoleWriter | harness.Configurable, Setup: harness.FrequentBookmarks, Run: bookmarkSound,
	},
	{
		ID: "bookmark/monotone", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "bookmarks never go back, nor behind an event that was sent",
		Needs: harness.Writes | harness.SoleWriter | harness.Configurable, Setup: harness.FrequentBookmarks, Run: bookmarkMonotone,
	},
	{
		ID: "bookmark/idle-progress", Level: harness.Should, Subject: harness.Server, Transports: harness.AllTransports, Mode: "f",
		Rule:  "where others write, the bookmarks of a watch that sees nothing of it advance in about the configured time (KEP-1904)",
		Needs: harness.Writes | harness.SoleWriter, Run: bookmarkIdleProgress,
	},
	{
		ID: "bookmark/resume", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Mode: "r",
		Rule:  "a watch from the version of a bookmark goes on exactly (KEP-956)",
		Needs: harness.Writes | harness.SoleWriter | harness.Configurable, Setup: harness.FrequentBookmarks, Run: bookmarkResume,
	},
	{
		ID: "bookmark/before-timeout", Level: harness.Should, Subject: harness.Server, Transports: harness.AllTransports, Mode: "f",
		Rule:  "shortly before timeoutSeconds ends a watch, it gets a bookmark at the newest version",
		Needs: harness.Writes | harness.SoleWriter, Run: bookmarkBeforeTimeout,
	},
	{
		ID: "bookmark/never-from-future", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "a bookmark's version is not above that of any write that was begun when it came",
		Needs: harness.Writes | harness.SoleWriter | harness.Configurable, Setup: harness.FrequentBookmarks, Run: bookmarkNeverFromFuture,
	},
	{
		ID: "bookmark/not-to-handlers", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Mode: "f",
		Rule:  "a client that resumes never shows a bookmark as a change of an object",
		Needs: harness.InProcess, Run: bookmarkNotToHandlers,
	},
}

// mostBookmarkPeriod is the most time between two bookmarks: about a minute, with some room.
const mostBookmarkPeriod = 2 * time.Minute
