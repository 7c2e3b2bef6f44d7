package hooks

import "testing"

func TestFillReplacesOnlyNilFunctions(t *testing.T) {
	type trace struct {
		Lost  func(err error)
		Saved func(n int, why string)
	}
	Fill[trace](nil).Saved(1, "")
	calls := 0
	own := &trace{Lost: func(error) { calls++ }}
	full := Fill(own)
	full.Lost(nil)
	full.Saved(1, "")
	if calls != 1 {
		t.Errorf("Lost was called %d times, want 1", calls)
	}
	if own.Saved != nil {
		t.Error("Fill has changed its argument")
	}
}
