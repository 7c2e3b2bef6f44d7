// Package bookmark has the cases about bookmarks.
package bookmark

import (
	"time"

	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases lists the cases about bookmarks.
var Cases = []harness.Case{
	harness.Rule("bookmark/opt-in",
		"a watch without allowWatchBookmarks=true receives no bookmark, not even after its initial events or before "+
			"it ends (KEP-956)", harness.Case{
			Needs: harness.OwnCollection | harness.FrequentBookmarks | harness.Drains, Setup: harness.BookmarksOften,
			Run: bookmarkOptIn,
		}),
	harness.Rule("bookmark/shape",
		"a bookmark's object has kind, apiVersion, metadata.resourceVersion and annotations only (KEP-956)",
		harness.Case{
			Needs: harness.OwnCollection | harness.FrequentBookmarks, Setup: harness.BookmarksOften, Run: bookmarkShape,
		}),
	harness.Rule("bookmark/sound", "every event up to a bookmark's version precedes the bookmark", harness.Case{
		Needs: harness.OwnCollection | harness.FrequentBookmarks, Setup: harness.BookmarksOften, Run: bookmarkSound,
	}),
	harness.Rule("bookmark/monotone",
		"the versions of bookmarks never decrease, and are never below the version of an earlier event", harness.Case{
			Needs: harness.OwnCollection | harness.FrequentBookmarks, Setup: harness.BookmarksOften,
			Run: bookmarkMonotone,
		}),
	harness.Rule("bookmark/idle-progress",
		"bookmarks of a quiet watch advance at the configured interval while other objects are written (KEP-1904)",
		harness.Case{
			Strength: harness.Should, Mode: harness.FakeTime, Needs: harness.OwnCollection, Run: bookmarkIdleProgress,
		}),
	harness.Rule("bookmark/resume", "a watch resumes exactly from the version of a bookmark (KEP-956)", harness.Case{
		Subject: harness.Both, Needs: harness.OwnCollection | harness.FrequentBookmarks, Setup: harness.BookmarksOften,
		Run: bookmarkResume,
	}),
	harness.Rule("bookmark/before-timeout",
		"shortly before timeoutSeconds ends a watch, it receives a bookmark at the newest version", harness.Case{
			Strength: harness.Should, Mode: harness.FakeTime, Needs: harness.OwnCollection, Run: bookmarkBeforeTimeout,
		}),
	harness.Rule("bookmark/never-from-future",
		"the version of a bookmark is lower than the version of each write that starts after the bookmark was received",
		harness.Case{
			Needs: harness.OwnCollection | harness.FrequentBookmarks, Setup: harness.BookmarksOften,
			Run: bookmarkNeverFromFuture,
		}),
	harness.Rule("bookmark/not-to-handlers", "a client that resumes never presents a bookmark as a change of an object",
		harness.Case{
			Subject: harness.Client, Mode: harness.EitherTime, Needs: harness.InProcess, Run: bookmarkNotToHandlers,
		}),
}

// maxBookmarkPeriod is the longest allowed time between two bookmarks. A server should send one
// about every minute.
const maxBookmarkPeriod = 2 * time.Minute
