package leaktest

import (
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) { Main(m) }

func TestALeakedGoroutineIsReported(t *testing.T) {
	release, started := make(chan struct{}), make(chan struct{})
	defer close(release)
	go blockUntil(release, started)
	<-started // the stack of a goroutine that has not run does not name its function
	var out strings.Builder
	code := report(&out, 20*time.Millisecond)
	if code != 1 || !strings.Contains(out.String(), "1 leaked goroutines") ||
		!strings.Contains(out.String(), "leaktest.blockUntil") {
		t.Errorf("got status %d and %q, want 1 and only the stack of blockUntil", code, out.String())
	}
}

func TestAGoroutineThatEndsInTimeIsNotReported(t *testing.T) {
	release := make(chan struct{})
	go blockUntil(release, make(chan struct{}))
	time.AfterFunc(30*time.Millisecond, func() { close(release) })
	var out strings.Builder
	if code := report(&out, timeout); code != 0 || out.Len() > 0 {
		t.Errorf("got status %d and %q, want 0 and nothing", code, out.String())
	}
}

func blockUntil(release, started chan struct{}) {
	close(started)
	<-release
}
