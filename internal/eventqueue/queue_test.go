package eventqueue

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch"
)

func event(version, size int) listwatch.Event {
	o := &listwatch.Object{Version: listwatch.Version(version), Data: make([]byte, size)}
	return listwatch.Event{Type: listwatch.Added, Object: o, Version: o.Version}
}

func bookmark(version int) listwatch.Event {
	return listwatch.NewBookmark(listwatch.Description{}, listwatch.State{Version: listwatch.Version(version)})
}

func TestWriterWaitsWhileTheQueueIsFull(t *testing.T) {
	for name, size := range map[string]int{"many events": 1, "large events": MaxBytes / 4} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, pushed := New(true), 0
				go func() {
					for q.WaitForRoom() {
						pushed++
						q.Push([]listwatch.Event{event(pushed, size)})
					}
				}()
				synctest.Wait()
				if want := min(MaxEvents, MaxBytes/size); pushed != want {
					t.Errorf("got %d events in a full queue, want %d", pushed, want)
				}
				n, err := q.Next(t.Context(), make([]listwatch.Event, 3))
				if synctest.Wait(); n != 3 || err != nil || pushed != min(MaxEvents, MaxBytes/size)+3 {
					t.Errorf("got %d events in total after a read of %d, %v", pushed, n, err)
				}
				q.Close()
			})
		})
	}
}

func TestReaderGetsEventsBeforeTheEnd(t *testing.T) {
	q, failure := New(true), errors.New("failed")
	q.Push([]listwatch.Event{event(1, 1), event(2, 1)})
	q.End(failure)
	q.End(io.EOF)
	q.Push([]listwatch.Event{event(3, 1)})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	dst := make([]listwatch.Event, 3)
	if n, err := q.Next(ended, dst); n != 2 || err != nil {
		t.Errorf("got %d events, error %v, want 2", n, err)
	}
	if n, err := q.Next(t.Context(), dst); n != 0 || err != failure {
		t.Errorf("got %d events, error %v, want %v", n, err, failure)
	}
	if q.WaitForRoom() {
		t.Error("got room in a queue that has ended")
	}
}

func TestWakeCallsTheFunctionOnce(t *testing.T) {
	for name, change := range map[string]func(*Queue){
		"event": func(q *Queue) { q.Push([]listwatch.Event{event(1, 1)}) }, "end": func(q *Queue) { q.End(io.EOF) },
		"close": (*Queue).Close,
	} {
		q, calls := New(true), 0
		q.Wake(func() { t.Errorf("%s: called a function that was replaced", name) })
		q.Wake(func() { calls++ })
		if calls != 0 {
			t.Errorf("%s: got a call for an empty queue", name)
		}
		change(q)
		change(q)
		if calls != 1 {
			t.Errorf("%s: got %d calls, want 1", name, calls)
		}
		if q.Wake(func() { calls++ }); calls != 2 {
			t.Errorf("%s: got no call at once, although something is pending", name)
		}
	}
}

func TestPositionFollowsTheReader(t *testing.T) {
	q := New(true)
	initial := event(9, 1)
	initial.Initial = true
	synced := listwatch.NewSynced(listwatch.Description{}, listwatch.State{Version: 5}, 0)
	q.Push([]listwatch.Event{initial, synced, event(7, 1), event(7, 1), bookmark(7)})
	dst := make([]listwatch.Event, 1)
	for _, want := range []listwatch.Version{0, 5, 6, 6, 7} {
		if _, err := q.Poll(dst); err != nil || q.Progress().Version != want {
			t.Errorf("after %v: got position %d, %v, want %d", dst[0].Type, q.Progress().Version, err, want)
		}
	}
}

func TestResetKeepsWhatTheReaderHasSeen(t *testing.T) {
	q := New(false)
	q.Push([]listwatch.Event{event(1, MaxBytes), bookmark(1)})
	if !q.Reset() {
		t.Fatal("could not reset a queue before the first read")
	}
	if !q.WaitForRoom() {
		t.Fatal("a queue has no room after its reset")
	}
	q.Push([]listwatch.Event{bookmark(2), event(3, 1), bookmark(3), event(4, 1)})
	dst := make([]listwatch.Event, 4)
	n, err := q.Poll(dst)
	if err != nil || n != 2 || dst[0].Version != 3 || dst[1].Version != 4 {
		t.Errorf("got events %v, %v, want 3 and 4 without bookmarks", dst[:n], err)
	}
	if q.Reset() {
		t.Error("reset a queue after the first read")
	}
}
