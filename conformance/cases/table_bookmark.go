package cases

import "time"

// bookmarkCases are those of bookmarks.
var bookmarkCases = []Case{
	{
		ID: "bookmark/opt-in", Level: Must, Subject: Server, On: all, Lane: "r",
		Says:  "a watch that did not ask by allowWatchBookmarks=true gets no bookmark, not even to end its initial events or itself (KEP-956)",
		needs: Writes | Alone | Setups | Drains, setup: eagerBookmarks, run: bookmarkOptIn,
	},
	{
		ID: "bookmark/shape", Level: Must, Subject: Server, On: all, Lane: "r",
		Says:  "a bookmark's object has kind, apiVersion and metadata.resourceVersion, and nothing else but annotations (KEP-956)",
		needs: Writes | Alone | Setups, setup: eagerBookmarks, run: bookmarkShape,
	},
	{
		ID: "bookmark/sound", Level: Must, Subject: Server, On: all, Lane: "r",
		Says:  "all events up to a bookmark's version came before it, and none after it",
		needs: Writes | Alone | Setups, setup: eagerBookmarks, run: bookmarkSound,
	},
	{
		ID: "bookmark/monotone", Level: Must, Subject: Server, On: all, Lane: "r",
		Says:  "bookmarks never go back, nor behind an event that was sent",
		needs: Writes | Alone | Setups, setup: eagerBookmarks, run: bookmarkMonotone,
	},
	{
		ID: "bookmark/idle-progress", Level: Should, Subject: Server, On: all, Lane: "f",
		Says:  "where others write, the bookmarks of a watch that sees nothing of it advance in about the configured time (KEP-1904)",
		needs: Writes | Alone, run: bookmarkIdleProgress,
	},
	{
		ID: "bookmark/resume", Level: Must, Subject: Both, On: all, Lane: "r",
		Says:  "a watch from the version of a bookmark goes on exactly (KEP-956)",
		needs: Writes | Alone | Setups, setup: eagerBookmarks, run: bookmarkResume,
	},
	{
		ID: "bookmark/before-timeout", Level: Should, Subject: Server, On: all, Lane: "f",
		Says:  "shortly before timeoutSeconds ends a watch, it gets a bookmark at the newest version",
		needs: Writes | Alone, run: bookmarkBeforeTimeout,
	},
	{
		ID: "bookmark/never-from-future", Level: Must, Subject: Server, On: all, Lane: "r",
		Says:  "a bookmark's version is not above that of any write that was begun when it came",
		needs: Writes | Alone | Setups, setup: eagerBookmarks, run: bookmarkNeverFromFuture,
	},
	{
		ID: "bookmark/not-to-handlers", Level: Must, Subject: Client, On: all, Lane: "f",
		Says:  "a client that resumes never shows a bookmark as a change of an object",
		needs: Inside, run: bookmarkNotToHandlers,
	},
}

// mostBookmarkPeriod is the most time between two bookmarks: about a minute, with some room.
const mostBookmarkPeriod = 2 * time.Minute
