package history

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/racetest"
	"github.com/listwatch/listwatch/internal/testkit"
)

// feedsOf returns the number and the memory of the feeds of l.
func feedsOf(l *Log) (feeds int, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.feeds.bySelection), l.feeds.bytes()
}

// Before nodes were limited, 500 selections kept 500 nodes of 64 bytes for each record.
func TestFeedsTakeBoundedAndCountedMemory(t *testing.T) {
	racetest.SkipMemory(t)
	for name, selector := range map[string]string{"unequal": "a%d!=b", "shared": "app=x,a%d!=b"} {
		t.Run(name, func(t *testing.T) {
			const selections, writes = 500, 2000
			l := New(Options{})
			before := testkit.HeapBytes()
			var cursors []*Cursor
			for i := range selections {
				cursors = append(cursors, watch(t, l, listwatch.Query{
					Selection: listwatch.Selection{Labels: testkit.Labels(t, fmt.Sprintf(selector, i))},
				}))
			}
			for i := range writes {
				put(l, listwatch.Key{Name: fmt.Sprint(i)}, map[string]string{"app": "x"})
			}
			for _, c := range cursors {
				feedOf(c).catchUp() // the matcher must not allocate any more
			}
			grown, s := testkit.HeapBytes()-before, l.Stats()
			counted := s.HistoryBytes + s.ObjectBytes + int64(s.Objects)*512
			// The objects, with a map of labels and fields each, the records and the nodes take 9
			// MiB.
			const limit = 16 << 20
			if grown > limit || counted < grown/2 {
				t.Errorf("%d selections and %d writes take %d bytes, of which %d are counted; want at most %d",
					selections, writes, grown, counted, limit)
			}
			runtime.KeepAlive(l)
		})
	}
}

func TestFeedsOfDepartedWatchersGoByThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{})
		for i := range 10 {
			watch(t, l, listwatch.Query{
				Selection: listwatch.Selection{Labels: testkit.Labels(t, fmt.Sprintf("a=%d", i))},
			}).Close()
			watch(t, l, listwatch.Query{
				Selection: listwatch.Selection{Labels: testkit.Labels(t, fmt.Sprintf("a!=%d", i))},
			}).Close()
		}
		time.Sleep(feedIdleTimeout + time.Second)
		if n, bytes := feedsOf(l); n != 0 || bytes != 0 {
			t.Errorf("%d feeds of %d bytes are left without a write, want none", n, bytes)
		}
	})
}

func TestShortWatchesLeaveFewFeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{})
		for i := range 3 * defaultFeedLimits.idle {
			watch(t, l, listwatch.Query{Selection: listwatch.Selection{Name: fmt.Sprint(i)}}).Close()
		}
		if n, _ := feedsOf(l); n > defaultFeedLimits.idle {
			t.Errorf("%d feeds without watchers, want at most %d", n, defaultFeedLimits.idle)
		}
		time.Sleep(time.Minute) // until the timer has stopped
	})
}

func TestLongSelectorsLeaveWithTheirWatch(t *testing.T) {
	l := New(Options{})
	values := make([]string, maxIdleText)
	for i := range values {
		values[i] = fmt.Sprint(i)
	}
	q := listwatch.Query{Selection: listwatch.Selection{Labels: testkit.Labels(t,
		"a in (x,"+strings.Join(values, ",")+")")}}
	watch(t, l, q).Close()
	if n, _ := feedsOf(l); n != 0 {
		t.Errorf("%d feeds are left, want none", n)
	}
	w := watch(t, l, q)
	put(l, listwatch.Key{Name: "a"}, map[string]string{"a": "x"})
	if n, err := w.Poll(make([]listwatch.Event, 2)); n != 1 || err != nil {
		t.Errorf("the next watch: got %d events, %v; want one", n, err)
	}
}

// The newest node of a quiet feed refers to a record that was dropped long ago.
func TestQuietFeedKeepsNoDroppedObject(t *testing.T) {
	for name, q := range map[string]listwatch.Query{
		"name":    {Selection: listwatch.Selection{Name: "a"}},
		"unequal": {Selection: listwatch.Selection{Labels: testkit.Labels(t, "app!=x")}},
	} {
		t.Run(name, func(t *testing.T) {
			l := New(Options{Retention: listwatch.Retention{Bytes: 1}})
			quiet := watch(t, l, q)
			old := thing(listwatch.Key{Name: "a"}, 1, nil, "")
			collected := make(chan struct{})
			runtime.AddCleanup(old, func(struct{}) { close(collected) }, struct{}{})
			events := make([]listwatch.Event, 2)
			for _, r := range []Record{{Version: 1, New: old}, {Version: 2, Old: old}} {
				l.Append(r)
				if n, err := quiet.Poll(events); n != 1 || err != nil {
					t.Fatalf("Poll = %d, %v; want one event", n, err)
				}
			}
			old = nil
			clear(events)
			for range 3 {
				put(l, listwatch.Key{Name: "b"}, map[string]string{"app": "x"})
			}
			for range 100 {
				runtime.GC()
				select {
				case <-collected:
					if n, err := quiet.Poll(events); n != 0 || err != nil {
						t.Errorf("Poll = %d, %v; want that the watch continues", n, err)
					}
					return
				default:
					runtime.Gosched()
				}
			}
			t.Error("the deleted object is still in memory")
		})
	}
}

func TestLaggingWatcherReadsTheLog(t *testing.T) {
	for name, q := range map[string]listwatch.Query{
		"indexed": {Selection: listwatch.Selection{Labels: testkit.Labels(t, "app=x")}},
		"unequal": {Selection: listwatch.Selection{Labels: testkit.Labels(t, "app!=y")}},
		"all":     {},
	} {
		t.Run(name, func(t *testing.T) {
			l := New(Options{})
			l.feeds.limits = feedLimits{nodesPerFeed: 4, nodesPerRecord: 0, feedsPerTerm: 9}
			lagging := watch(t, l, q)
			const writes = 100
			for i := range writes {
				put(l, listwatch.Key{Name: fmt.Sprint(i)}, map[string]string{"app": []string{"x", "y"}[i%2]})
			}
			feedOf(lagging).catchUp()
			if n := feedOf(lagging).chain.len; n > 4 {
				t.Errorf("the feed has %d nodes, want at most 4", n)
			}
			var got []listwatch.Version
			for batch := make([]listwatch.Event, 7); ; {
				before := lagging.Progress().Version
				n, err := lagging.Poll(batch)
				if err != nil {
					t.Fatal(err)
				}
				if n == 0 {
					break
				}
				for _, e := range batch[:n] {
					if e.Version <= before {
						t.Errorf("event of version %d after position %d", e.Version, before)
					}
					got = append(got, e.Version)
				}
			}
			step := listwatch.Version(2)
			if name == "all" {
				step = 1
			}
			for i, v := range got {
				if v != 1+step*listwatch.Version(i) {
					t.Fatalf("got versions %v, want every one of the selection", got)
				}
			}
			if want := writes / int(step); len(got) != want || lagging.Progress().Version != writes {
				t.Errorf("%d events up to %d, want %d up to %d", len(got), lagging.Progress().Version, want, writes)
			}
		})
	}
}

func TestCompactExpiresNoMatchedWatchThatIsRead(t *testing.T) {
	for range 100 {
		l := New(Options{})
		c := watch(t, l, listwatch.Query{Selection: listwatch.Selection{Labels: testkit.Labels(t, "app!=x")}})
		put(l, listwatch.Key{Name: "a"}, nil)
		if n, err := c.Poll(make([]listwatch.Event, 2)); n != 1 || err != nil {
			t.Fatalf("Poll = %d, %v; want the event", n, err)
		}
		put(l, listwatch.Key{Name: "b"}, map[string]string{"app": "x"})
		l.Compact() // possibly before the matcher has seen the last write
		put(l, listwatch.Key{Name: "c"}, nil)
		if n, err := c.Poll(make([]listwatch.Event, 2)); n != 1 || err != nil {
			t.Fatalf("Poll = %d, %v after a compaction, want the event", n, err)
		}
	}
}

func TestWriteWakesMatchedWatchers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{})
		l.feeds.limits.nodesPerFeed = 2
		woken := make(chan int, 100)
		cursors := make([]*Cursor, 100)
		for i := range cursors {
			cursors[i] = watch(t, l, listwatch.Query{
				Selection: listwatch.Selection{Labels: testkit.Labels(t, fmt.Sprintf("app!=%d", i%2))},
			})
		}
		for range 5 { // more often than a feed has nodes
			for i, c := range cursors {
				for n := 1; n > 0; {
					n, _ = c.Poll(make([]listwatch.Event, 1))
				}
				c.Wake(func() { woken <- i })
			}
			put(l, listwatch.Key{Name: "a"}, map[string]string{"app": "1"})
			synctest.Wait()
			if len(woken) != 50 {
				t.Errorf("%d watchers were woken, want the 50 whose selections match", len(woken))
			}
			for len(woken) > 0 {
				<-woken
			}
		}
	})
}
