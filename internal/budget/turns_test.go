package budget

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func TestWaitingClientsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns Turns
		begin := func(client string) {
			if err := turns.begin(t.Context(), client, 2); err != nil {
				t.Error(err)
			}
		}
		begin("a")
		begin("a") // both turns are taken
		var order []string
		for _, client := range []string{"a", "a", "a", "b", "c", "b"} {
			go func() { // ends after its turn
				begin(client)
				order = append(order, client)
			}()
			synctest.Wait()
		}
		for range 6 {
			turns.End()
			synctest.Wait()
		}
		if want := []string{"a", "b", "c", "a", "b", "a"}; !slices.Equal(order, want) {
			t.Errorf("got the order %v, want %v", order, want)
		}
		turns.End()
		turns.End()
		if turns.taken != 0 || len(turns.waiting) != 0 || len(turns.next) != 0 {
			t.Errorf("%+v is left, want nothing", &turns)
		}
	})
}

func TestEndedWaitTakesNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns Turns
		if err := turns.begin(t.Context(), "a", 1); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		for _, client := range []string{"a", "b"} {
			go func() { ended <- turns.begin(ctx, client, 1) }() // ends with ctx
		}
		synctest.Wait()
		cancel()
		for range 2 {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want that the context ended", err)
			}
		}
		turns.End()
		if turns.taken != 0 || len(turns.waiting) != 0 || len(turns.next) != 0 {
			t.Errorf("%+v is left, want nothing", &turns)
		}
		if err := turns.begin(t.Context(), "b", 1); err != nil {
			t.Errorf("got %v, want a turn", err)
		}
	})
}

// The context of a waiting caller can end at the moment when it gets its turn.
func TestTurnOfEndedWaitIsPassedOn(t *testing.T) {
	for range 1000 {
		var turns Turns
		if err := turns.begin(t.Context(), "a", 1); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- turns.begin(ctx, "b", 1) }() // ends with ctx or its turn
		go cancel()
		turns.End()
		if err := <-ended; err == nil {
			turns.End()
		}
		if turns.taken != 0 {
			t.Fatal("a turn is left, want none")
		}
	}
}

func TestFunctionsWaitForTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns Turns
		var running, ended atomic.Int64
		finish := make(chan struct{})
		n := int64(2 * runtime.GOMAXPROCS(0))
		for range n {
			turns.Go("a", func() {
				running.Add(1)
				<-finish
				ended.Add(1)
				turns.End()
			})
		}
		synctest.Wait()
		if want := int64(max(1, runtime.GOMAXPROCS(0)-1)); running.Load() != want {
			t.Errorf("%d functions run at once, want %d", running.Load(), want)
		}
		close(finish)
		synctest.Wait()
		if ended.Load() != n || turns.taken != 0 {
			t.Errorf("%d functions ended, and %d turns are taken; want %d and 0", ended.Load(), turns.taken, n)
		}
	})
}
