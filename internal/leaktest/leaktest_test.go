package leaktest

import (
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) { Main(m) }

func TestAGoroutineThatStaysIsReported(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	go stay(release)
	var out strings.Builder
	code := report(&out, 20*time.Millisecond)
	if code != 1 || !strings.Contains(out.String(), "1 goroutines") || !strings.Contains(out.String(), "leaktest.stay") {
		t.Errorf("got status %d and %q, want 1 and the stack of stay alone", code, out.String())
	}
}

func TestAGoroutineThatEndsInTimeIsNoLeak(t *testing.T) {
	release := make(chan struct{})
	go stay(release)
	time.AfterFunc(30*time.Millisecond, func() { close(release) })
	var out strings.Builder
	if code := report(&out, patience); code != 0 || out.Len() > 0 {
		t.Errorf("got status %d and %q, want 0 and nothing", code, out.String())
	}
}

func stay(release chan struct{}) { <-release }
