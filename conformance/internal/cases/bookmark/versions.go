package bookmark

import (
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
)

// maxWrites bounds the writes of writeContinuously, in case a reader is slow.
const maxWrites = 8000

// writeContinuously writes in the background until stop is called. stop returns the
// versions of all writes.
func writeContinuously(e *harness.Env) (stop func() []listwatch.Version) {
	var writer sync.WaitGroup
	stopped := make(chan struct{})
	var written []listwatch.Version
	writer.Go(func() {
		for i := range maxWrites {
			select {
			case <-stopped:
				return
			default:
			}
			v, err := e.TryPut([]string{"busy-a", "busy-b"}[i%2])
			if err != nil {
				e.Errorf("put: %v", err)
				return
			}
			written = append(written, v)
		}
	})
	return sync.OnceValue(func() []listwatch.Version {
		close(stopped)
		writer.Wait()
		return written
	})
}

// minBookmarks is the number of bookmarks that a case reads during writes. Bookmarks before
// the first write are not counted, because they prove nothing.
const minBookmarks = 8

// bookmarkSound compares the number of events before each bookmark with the number of
// writes up to the bookmark's version.
func bookmarkSound(e *harness.Env) {
	start := e.Put("a")
	s := e.Dial(harness.AllowBookmarks + harness.From(start))
	stop := writeContinuously(e)
	defer stop()
	type bookmark struct {
		at     listwatch.Version
		before int // number of events received before the bookmark
	}
	var bookmarks []bookmark
	var versions []listwatch.Version
	for len(bookmarks) < minBookmarks {
		before, b := s.ReadBookmark()
		if versions = append(versions, harness.Versions(before)...); len(versions) == 0 {
			continue
		}
		bookmarks = append(bookmarks, bookmark{b.Version, len(versions)})
	}
	written := stop()
	for _, m := range bookmarks {
		if want := countVersions(written, start, m.at); m.before != want {
			e.Errorf("before the bookmark at version %d: got %d events, want %d, one for each write", m.at, m.before,
				want)
		}
	}
}

// countVersions returns the number of versions v with after < v <= upTo.
func countVersions(versions []listwatch.Version, after, upTo listwatch.Version) (n int) {
	for _, v := range versions {
		if v > after && v <= upTo {
			n++
		}
	}
	return n
}

func bookmarkMonotone(e *harness.Env) {
	start := e.Put("a")
	s := e.Dial(harness.AllowBookmarks + harness.From(start))
	stop := writeContinuously(e)
	defer stop()
	last := start
	for bookmarks := 0; bookmarks < minBookmarks; {
		ev := s.Next()
		switch isBookmark := ev.Type == listwatch.Bookmark; {
		case ev.Version < last, !isBookmark && ev.Version == last:
			e.Fatalf("got %s at version %d after version %d", harness.EventLine(ev), ev.Version, last)
		case isBookmark && last > start:
			bookmarks++
		}
		last = ev.Version
	}
}

func bookmarkNeverFromFuture(e *harness.Env) {
	start := e.Put("a")
	s := e.Dial(harness.AllowBookmarks + harness.LabelSelector("nobody") + "&" + harness.From(start))
	for range 20 {
		_, b := s.ReadBookmark()
		// The newest write before the bookmark tells nothing: a store can count writes of others.
		if next := e.Put("a"); b.Version >= next {
			e.Fatalf("got a bookmark at version %d before a write with version %d", b.Version, next)
		}
	}
}
