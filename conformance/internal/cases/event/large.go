package event

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/racetest"
)

// framings returns the framings that e's transport supports.
func framings(e *harness.Env) []framing.Framer {
	if e.Transport == "ws" {
		return []framing.Framer{framing.JSON{}, framing.CBORSeq{}}
	}
	return framing.Default().Framers()
}

// supports reports whether the target supports the framing f. err is the error of a watch in f; if
// the target lacks f, err is a MissingAbility. supports skips the case if the target lacks JSON.
func supports(e *harness.Env, f framing.Framer, err error) bool {
	e.Helper()
	missing, ok := errors.AsType[harness.MissingAbility](err)
	if ok && f == framing.Framer(framing.JSON{}) {
		e.Skipf("%s", missing)
	}
	return !ok
}

// putLarge writes an object that contains text. It skips the case if a server other than this
// module's rejects the object.
func putLarge(e *harness.Env, name, text string) listwatch.Version {
	e.Helper()
	v, err := e.TryPutJSON(name, `{"text":"`+text+`"}`)
	switch {
	case err != nil && e.Supports(harness.InProcess):
		e.Fatalf("put %s: %v", name, err)
	case err != nil:
		e.Skipf("the server does not store %d bytes: %v", len(text), err)
	}
	return v
}

func large1MiB(e *harness.Env) { checkLargeObject(e, 1<<20) }

func large3MiB(e *harness.Env) { checkLargeObject(e, 3<<20) }

// checkLargeObject writes an object of the given size and checks that it arrives intact in a watch
// opened before the write, in watches opened after it in each framing, and in a raw watch, which
// keeps the default flow-control windows of HTTP/2.
func checkLargeObject(e *harness.Env, size int) {
	before := e.Put("before")
	live, text := e.Dial(harness.From(before)), harness.RandomText(size, 1)
	putLarge(e, "a", text)
	e.Put("b")
	watches, framings := map[string]*harness.Watch{"live": live}, framings(e)
	if racetest.Enabled {
		framings = framings[:1]
	}
	for _, f := range framings {
		s, err := e.TryDialIn(f, harness.From(before))
		if !supports(e, f, err) {
			continue
		}
		if err == nil {
			watches[f.MediaType()] = s
		} else if e.Supports(harness.InProcess) {
			e.Errorf("%s: %v", f.MediaType(), err)
		}
	}
	for name, s := range watches {
		if got := s.Want("ADDED a", "ADDED b")[0].Object.Data; !bytes.Contains(got, []byte(text)) {
			e.Errorf("%s: got an object of %d bytes that starts with %.100s, want the text as written", name, len(got),
				got)
		}
		s.Close()
	}
	a := e.WatchRaw(harness.From(before))
	a.WantAccepted()
	for _, want := range []string{"ADDED a", "ADDED b"} {
		event := a.ReadEvent()
		if got := harness.EventLineFromJSON(event); got != want ||
			want == "ADDED a" && !bytes.Contains(event, []byte(text)) {
			e.Fatalf("raw watch: got %.100s, an event of %d bytes that starts with %.100s; want %s with the text as "+
				"written", got, len(event), event, want)
		}
	}
}

func largeBurst(e *harness.Env) {
	const size = 100 << 10
	count := 200
	if racetest.Enabled {
		count = 40
	}
	texts := make([]string, 10) // so that neighboring events have different texts
	for i := range texts {
		texts[i] = harness.RandomText(size, uint64(i))
	}
	before := e.Put("before")
	s := e.Dial(harness.From(before))
	var want []listwatch.Version
	for i := range count {
		want = append(want, putLarge(e, fmt.Sprintf("a-%d", i), texts[i%len(texts)]))
	}
	for i, v := range want {
		got := s.Next()
		if got.Version != v || !bytes.Contains(got.Object.Data, []byte(texts[i%len(texts)])) {
			e.Fatalf("event %d is %s at version %d with %d bytes; want a-%d at version %d, with the text as written",
				i, harness.EventLine(got), got.Version, len(got.Object.Data), i, v)
		}
	}
}

// largeInitial50k tests every transport with the same collection, because writing 50,000
// objects is slow.
func largeInitial50k(e *harness.Env) {
	objects := 50_000
	if racetest.Enabled {
		objects = 5000
	}
	e.Use(harness.InProcess)
	for i := range objects {
		e.PutJSON(fmt.Sprintf("a-%d", i), `{"text":"`+strings.Repeat("x", 200)+`"}`)
	}
	tested := map[string]bool{}
	for _, w := range append(e.OtherVariants(), e.Variant) {
		if !tested[w.Transport] {
			checkInitialEventsMemory(e.WithVariant(w), objects)
			tested[w.Transport] = true
		}
	}
}

func checkInitialEventsMemory(e *harness.Env, objects int) {
	e.Helper()
	const watches, maxBytes = 5, 512 << 10
	before := harness.HeapBytes()
	var open []*harness.Response
	for range watches {
		a := e.WatchRaw(harness.InitialEvents[1:])
		a.WantAccepted()
		a.ReadEvent() // the server still has to send the remaining events
		open = append(open, a)
	}
	if each := (harness.HeapBytes() - before) / watches; each > maxBytes {
		e.Errorf("%s: %d watches of the initial events of %d objects used %d KiB of memory each, want at most %d",
			e.Variant.Name, watches, objects, each>>10, maxBytes>>10)
	}
	runtime.KeepAlive(open)
}
