package cases

import "time"

// bookmarkCases are those of bookmarks.
var bookmarkCases = []Case{
	{
		ID: "bookmark/opt-in", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "a watch that did not ask by allowWatchBookmarks=true gets no bookmark, not even to end its initial events or itself (KEP-956)",
		needs: Writes | SoleWriter | Configurable | Drains, setup: eagerBookmarks, run: bookmarkOptIn,
	},
	{
		ID: "bookmark/shape", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "a bookmark's object has kind, apiVersion and metadata.resourceVersion, and nothing else but annotations (KEP-956)",
		needs: Writes | SoleWriter | Configurable, setup: eagerBookmarks, run: bookmarkShape,
	},
	{
		ID: "bookmark/sound", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "all events up to a bookmark's version came before it, and none after it",
		needs: Writes | SoleWriter | Configurable, setup: eagerBookmarks, run: bookmarkSound,
	},
	{
		ID: "bookmark/monotone", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "bookmarks never go back, nor behind an event that was sent",
		needs: Writes | SoleWriter | Configurable, setup: eagerBookmarks, run: bookmarkMonotone,
	},
	{
		ID: "bookmark/idle-progress", Level: Should, Subject: Server, Transports: all, Mode: "f",
		Rule:  "where others write, the bookmarks of a watch that sees nothing of it advance in about the configured time (KEP-1904)",
		needs: Writes | SoleWriter, run: bookmarkIdleProgress,
	},
	{
		ID: "bookmark/resume", Level: Must, Subject: Both, Transports: all, Mode: "r",
		Rule:  "a watch from the version of a bookmark goes on exactly (KEP-956)",
		needs: Writes | SoleWriter | Configurable, setup: eagerBookmarks, run: bookmarkResume,
	},
	{
		ID: "bookmark/before-timeout", Level: Should, Subject: Server, Transports: all, Mode: "f",
		Rule:  "shortly before timeoutSeconds ends a watch, it gets a bookmark at the newest version",
		needs: Writes | SoleWriter, run: bookmarkBeforeTimeout,
	},
	{
		ID: "bookmark/never-from-future", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "a bookmark's version is not above that of any write that was begun when it came",
		needs: Writes | SoleWriter | Configurable, setup: eagerBookmarks, run: bookmarkNeverFromFuture,
	},
	{
		ID: "bookmark/not-to-handlers", Level: Must, Subject: Client, Transports: all, Mode: "f",
		Rule:  "a client that resumes never shows a bookmark as a change of an object",
		needs: InProcess, run: bookmarkNotToHandlers,
	},
}

// mostBookmarkPeriod is the most time between two bookmarks: about a minute, with some room.
const mostBookmarkPeriod = 2 * time.Minute
