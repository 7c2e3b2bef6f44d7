package frames

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"unique"
)

var forms atomic.Uint32

// newForm returns a form that no other call returns.
func newForm() Form { return unique.Make[any](forms.Add(1)) }

// addFrame makes f keep a frame of size bytes.
func addFrame(t testing.TB, f *Frames, form Form, size int) {
	t.Helper()
	data, err := f.GetOrBuild(form, func() ([]byte, error) { return make([]byte, size), nil })
	if err != nil || len(data) != size {
		t.Fatalf("got %d bytes and error %v, want %d bytes", len(data), err, size)
	}
}

func framesOf(b *Budget, n int) []*Frames {
	f := make([]*Frames, n)
	for i := range f {
		f[i] = newFrames(b)
	}
	return f
}

func newFrames(b *Budget) *Frames { return &Frames{budget: b} }

func TestFrameIsBuiltOncePerForm(t *testing.T) {
	var builds atomic.Int32
	one, two := newForm(), newForm()
	f := newFrames(NewBudget(1 << 20))
	var readers sync.WaitGroup
	for i := range 16 {
		form := one
		if i%2 == 1 {
			form = two
		}
		readers.Go(func() {
			for range 100 {
				data, err := f.GetOrBuild(form, func() ([]byte, error) {
					builds.Add(1)
					return []byte(fmt.Sprint(form.Value())), nil
				})
				if err != nil || string(data) != fmt.Sprint(form.Value()) {
					t.Errorf("got %v, %v, want the frame of form %v", data, err, form.Value())
				}
			}
		})
	}
	readers.Wait()
	if n := builds.Load(); n != 2 {
		t.Errorf("built %d frames, want 2", n)
	}
	if data, ok := f.Get(one); !ok || string(data) != fmt.Sprint(one.Value()) {
		t.Errorf("got %v, %v, want the frame of form %v", data, ok, one.Value())
	}
}

func TestNilFramesCacheNothing(t *testing.T) {
	builds := 0
	var f *Frames
	form := newForm()
	for range 3 {
		if _, err := f.GetOrBuild(form, func() ([]byte, error) { builds++; return nil, nil }); err != nil {
			t.Fatal(err)
		}
		if _, ok := f.Get(form); ok {
			t.Error("got a cached frame")
		}
	}
	if builds != 3 {
		t.Errorf("built %d frames, want 3", builds)
	}
}

func wantEmpty(t *testing.T, f *Frames) {
	t.Helper()
	if !f.isEmpty() {
		t.Error("frames were kept, want none")
	}
	if used := f.budget.Used(); used != 0 {
		t.Errorf("the budget counts %d bytes, want none", used)
	}
}

func TestFailedBuildIsNotKept(t *testing.T) {
	budget := NewBudget(-1)
	f := newFrames(budget)
	broken := errors.New("broken")
	_, err := f.GetOrBuild(newForm(), func() ([]byte, error) { return nil, broken })
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want the builder's error", err)
	}
	wantEmpty(t, f)
}

func TestDroppedFramesStayEmpty(t *testing.T) {
	budget := NewBudget(-1)
	f := newFrames(budget)
	form := newForm()
	f.Drop()
	addFrame(t, f, form, 10)
	if frame, ok := f.Get(form); ok {
		t.Errorf("got the frame %q, want none", frame)
	}
	wantEmpty(t, f)
}

func TestBudgetEmptiesTheOldestFirst(t *testing.T) {
	budget := NewBudget(250)
	form := newForm()
	f := framesOf(budget, 4)
	for i := range f {
		addFrame(t, f[i], form, 100)
	}
	for i, want := range []bool{true, true, false, false} {
		if f[i].isEmpty() != want {
			t.Errorf("frames %d: empty is %v, want %v", i, !want, want)
		}
	}
	if got := budget.Used(); got != 200 {
		t.Errorf("used is %d, want 200", got)
	}
}

func TestBudgetOfZeroKeepsNothing(t *testing.T) {
	budget := NewBudget(0)
	f := newFrames(budget)
	addFrame(t, f, newForm(), 10)
	wantEmpty(t, f)
}

func TestBudgetCountsDrops(t *testing.T) {
	for _, limit := range []int64{-1, 1 << 20, 500} {
		budget := NewBudget(limit)
		form := newForm()
		// The budget compacts its queue long before 1000 frames were dropped.
		for range 1000 {
			f := newFrames(budget)
			addFrame(t, f, form, 10)
			f.Drop()
			f.Drop()
		}
		if got := budget.Used(); got != 0 {
			t.Errorf("budget %d: used is %d after everything was dropped, want 0", limit, got)
		}
	}
}

func TestBudgetForgetsDroppedFrames(t *testing.T) {
	budget := NewBudget(1 << 20)
	form := newForm()
	stays := newFrames(budget)
	addFrame(t, stays, form, 10)
	for range 10_000 {
		f := newFrames(budget)
		addFrame(t, f, form, 10)
		f.Drop()
	}
	if n := len(budget.queue); n > 200 {
		t.Errorf("the queue has %d entries, want little more than the one that is kept", n)
	}
	if stays.isEmpty() {
		t.Error("the kept frame was dropped")
	}
}

func TestBudgetCountsDropsAfterEvictions(t *testing.T) {
	budget := NewBudget(100 * 10)
	form := newForm()
	for range 50 {
		// First drop frames that are still in the queue and evict all others. Then drop
		// more frames than the queue has entries.
		f := framesOf(budget, 60)
		for i := range f {
			addFrame(t, f[i], form, 10)
		}
		for i := range f {
			f[i].Drop()
		}
		addFrame(t, newFrames(budget), form, 100*10+1)
		few := framesOf(budget, 10)
		for i := range few {
			addFrame(t, few[i], form, 10)
			few[i].Drop()
		}
	}
	if got := budget.Used(); got != 0 {
		t.Errorf("used is %d, want 0", got)
	}
}

func TestBudgetIsExactUnderConcurrency(t *testing.T) {
	budget := NewBudget(1000)
	one, two := newForm(), newForm()
	f := framesOf(budget, 64)
	var users sync.WaitGroup
	for worker := range 4 {
		users.Go(func() {
			for i := range 2000 {
				at := f[(i*7+worker)%len(f)]
				switch i % 3 {
				case 0:
					addFrame(t, at, one, 10)
				case 1:
					addFrame(t, at, two, 20)
				default:
					at.Drop()
				}
			}
		})
	}
	users.Wait()
	for i := range f {
		f[i].Drop()
	}
	if got := budget.Used(); got != 0 {
		t.Errorf("used is %d after everything was dropped, want 0", got)
	}
}

func BenchmarkCachedFrame(b *testing.B) {
	f := newFrames(NewBudget(-1))
	form := newForm()
	addFrame(b, f, form, 1)
	for b.Loop() {
		if _, ok := f.Get(form); !ok {
			b.Fatal("not cached")
		}
	}
}
