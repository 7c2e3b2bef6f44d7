package informer_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/informer"
)

func TestHandlerMayCallItsInformer(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w := newFixture(t, "a", "b")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var r *informer.Registration[Thing]
		var late *callLog
		done := make(chan struct{})
		r = w.Handle(informer.Handler[Thing]{OnAdd: func(x Thing, _ bool) {
			if x.Name != "a" {
				return
			}
			defer close(done)
			if err := w.WaitForVersion(ctx, w.put("c", 1)); err != nil {
				t.Error(err)
			}
			late = &callLog{}
			if err := w.Handle(late.handler(), nil).WaitForSync(ctx); err != nil {
				t.Error(err)
			}
			for range w.Changes(ctx, nil) {
				break
			}
			if err := w.AddIndex("all", func(*informer.Item[Thing]) []string { return []string{""} }); err != nil {
				t.Error(err)
			}
			if all, err := w.ByIndex("all", ""); len(all) != 3 || err != nil {
				t.Error(all, err)
			}
			if w.HasSynced() {
				t.Error("HasSynced() during the initial state")
			}
			r.Remove()
		}}, nil)
		w.run()
		synctest.Wait()
		select {
		case <-done:
		case <-time.After(time.Hour):
			t.Fatal("the handler is deadlocked")
		}
		if !w.HasSynced() {
			t.Error("HasSynced() is false although the only unsynced handler was removed")
		}
		w.expect("calls of the nested handler", "+a1! +b1! +c1!", late.text())
	})
}

func TestRunReturnsWhileHandlerBlocks(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w, d := newFixture(t, "n0"), &callLog{block: make(chan struct{})}
		w.Handle(d.handler(), &informer.HandlerOptions{MaxPending: 1})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		for n := 1; n < 10; n++ {
			synctest.Wait()
			w.put(fmt.Sprint("n", n), 1)
		}
		cancel()
		synctest.Wait()
		if err := w.WaitForSync(t.Context()); err != nil && listwatch.CodeOf(err) != listwatch.Unavailable {
			t.Errorf("WaitForSync during a blocked call: got %v, want nil or Unavailable", err)
		}
		close(d.block)
		if err := <-ended; err != context.Canceled {
			t.Errorf("Run returned %v, want context.Canceled", err)
		}
		w.expect("calls", "+n01!", d.text())
	})
}
