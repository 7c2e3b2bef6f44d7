package listwatch_test

import (
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store/memory"
)

// A wrapper is a source that wraps another one.
type wrapper struct{ listwatch.Source }

func (w wrapper) Unwrap() listwatch.Source { return w.Source }

// An opaqueWrapper has no method Unwrap.
type opaqueWrapper struct{ listwatch.Source }

func TestDescribeFollowsUnwrap(t *testing.T) {
	flags := memory.New[Flag]()
	want := listwatch.Describe(flags)
	if got := listwatch.Describe(wrapper{wrapper{flags}}); got.Kind != want.Kind || got.Epoch != want.Epoch ||
		got.Epoch == "" {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, s := range []listwatch.Source{wrapper{}, wrapper{opaqueWrapper{flags}}, nil} {
		if got := listwatch.Describe(s); got.Kind != "Object" || got.APIVersion != "v1" || got.Epoch != "" {
			t.Errorf("%T: got %+v, want only the default kind", s, got)
		}
	}
}

func TestCheckVersionNamesTheWrappedSource(t *testing.T) {
	s := wrapper{opaqueWrapper{memory.New[Flag]()}}
	if err := listwatch.CheckVersion(s, 1); err != nil {
		t.Error(err)
	}
	want := "corrupt: the Source listwatch_test.opaqueWrapper has version 0: versions start at 1, also in an empty collection (see docs/own-source.md)"
	if err := listwatch.CheckVersion(s, 0); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
