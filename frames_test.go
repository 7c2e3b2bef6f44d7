package listwatch

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
)

// frameOf keeps a frame of size bytes in f, under budget.
func frameOf(t testing.TB, f *Frames, budget *FrameBudget, form Form, size int) []byte {
	t.Helper()
	data, err := Event{Type: Added}.Cached(f, budget).Frame(form, func(dst []byte, _ Event) ([]byte, error) {
		return append(dst, make([]byte, size)...), nil
	})
	if err != nil || len(data) != size {
		t.Fatalf("got %d bytes and error %v, want %d bytes", len(data), err, size)
	}
	return data
}

func isEmpty(f *Frames) bool { return f.head.Load() == nil }

func TestFrameIsBuiltOnceForEachForm(t *testing.T) {
	var builds atomic.Int32
	one, two := NewForm(), NewForm()
	e := Event{Type: Added}.Cached(new(Frames), NewFrameBudget(1<<20))
	var readers sync.WaitGroup
	for i := range 16 {
		form := one
		if i%2 == 1 {
			form = two
		}
		readers.Go(func() {
			for range 100 {
				data, err := e.Frame(form, func(dst []byte, _ Event) ([]byte, error) {
					builds.Add(1)
					return append(dst, byte(form)), nil
				})
				if err != nil || len(data) != 1 || data[0] != byte(form) {
					t.Errorf("got %v, %v, want the frame of form %d", data, err, form)
				}
			}
		})
	}
	readers.Wait()
	if n := builds.Load(); n != 2 {
		t.Errorf("built %d frames, want 2", n)
	}
}

func TestFrameOfAnEventThatIsNotCachedIsBuiltEachTime(t *testing.T) {
	builds := 0
	e := Event{Type: Added}
	for range 3 {
		if _, err := e.Frame(NewForm(), func(dst []byte, _ Event) ([]byte, error) { builds++; return dst, nil }); err != nil {
			t.Fatal(err)
		}
	}
	if builds != 3 {
		t.Errorf("built %d frames, want 3", builds)
	}
}

func TestFrameThatCannotBeBuiltIsNotKept(t *testing.T) {
	budget := NewFrameBudget(-1)
	f := new(Frames)
	broken := errors.New("broken")
	_, err := Event{}.Cached(f, budget).Frame(NewForm(), func([]byte, Event) ([]byte, error) { return nil, broken })
	if !errors.Is(err, broken) || !isEmpty(f) || budget.Used() != 0 {
		t.Errorf("got error %v, kept %d bytes, want the builder's error and nothing kept", err, budget.Used())
	}
}

func TestFrameBudgetEmptiesTheOldestFirst(t *testing.T) {
	budget := NewFrameBudget(250)
	form := NewForm()
	var f [4]Frames
	for i := range f {
		frameOf(t, &f[i], budget, form, 100)
	}
	for i, want := range []bool{true, true, false, false} {
		if isEmpty(&f[i]) != want {
			t.Errorf("frames %d: empty is %v, want %v", i, !want, want)
		}
	}
	if got := budget.Used(); got != 200 {
		t.Errorf("used is %d, want 200", got)
	}
}

func TestFrameBudgetOfZeroKeepsNothing(t *testing.T) {
	budget := NewFrameBudget(0)
	f := new(Frames)
	frameOf(t, f, budget, NewForm(), 10)
	if !isEmpty(f) || budget.Used() != 0 {
		t.Errorf("kept %d bytes, want none", budget.Used())
	}
}

func TestFrameBudgetCountsWhatIsDropped(t *testing.T) {
	for _, most := range []int64{-1, 1 << 20, 500} {
		budget := NewFrameBudget(most)
		form := NewForm()
		// Far more than the budget's own housekeeping waits for.
		for range 1000 {
			f := new(Frames)
			frameOf(t, f, budget, form, 10)
			budget.Drop(f)
			budget.Drop(f)
		}
		if got := budget.Used(); got != 0 {
			t.Errorf("budget %d: used is %d after everything was dropped, want 0", most, got)
		}
	}
}

func TestFrameBudgetForgetsFramesThatWereDroppedBehindOneThatStays(t *testing.T) {
	budget := NewFrameBudget(1 << 20)
	form := NewForm()
	stays := new(Frames)
	frameOf(t, stays, budget, form, 10)
	for range 10_000 {
		f := new(Frames)
		frameOf(t, f, budget, form, 10)
		budget.Drop(f)
	}
	if n := len(budget.queue); n > 200 {
		t.Errorf("the queue names %d frames, want hardly more than the one that is kept", n)
	}
	if isEmpty(stays) {
		t.Error("the frame that stays was dropped")
	}
}

func TestFrameBudgetSurvivesDropsAndEvictionsInTurn(t *testing.T) {
	budget := NewFrameBudget(100 * 10)
	form := NewForm()
	for range 50 {
		// Drops that the queue learns of only when it evicts, and then more of them than it is long.
		var f [60]Frames
		for i := range f {
			frameOf(t, &f[i], budget, form, 10)
		}
		for i := range f {
			budget.Drop(&f[i])
		}
		frameOf(t, new(Frames), budget, form, 100*10+1)
		var few [10]Frames
		for i := range few {
			frameOf(t, &few[i], budget, form, 10)
			budget.Drop(&few[i])
		}
	}
	if got := budget.Used(); got != 0 {
		t.Errorf("used is %d, want 0", got)
	}
}

func TestFrameBudgetIsExactUnderConcurrentUse(t *testing.T) {
	budget := NewFrameBudget(1000)
	one, two := NewForm(), NewForm()
	var f [64]Frames
	var users sync.WaitGroup
	for worker := range 4 {
		users.Go(func() {
			for i := range 2000 {
				at := &f[(i*7+worker)%len(f)]
				switch i % 3 {
				case 0:
					frameOf(t, at, budget, one, 10)
				case 1:
					frameOf(t, at, budget, two, 20)
				default:
					budget.Drop(at)
				}
			}
		})
	}
	users.Wait()
	for i := range f {
		budget.Drop(&f[i])
	}
	if got := budget.Used(); got != 0 {
		t.Errorf("used is %d after everything was dropped, want 0", got)
	}
}

func BenchmarkFrameThatIsThere(b *testing.B) {
	e := Event{Type: Added}.Cached(new(Frames), NewFrameBudget(-1))
	form := NewForm()
	build := func(dst []byte, _ Event) ([]byte, error) { return append(dst, 'x'), nil }
	for b.Loop() {
		if _, err := e.Frame(form, build); err != nil {
			b.Fatal(err)
		}
	}
}
