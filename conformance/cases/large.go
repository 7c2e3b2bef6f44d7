package cases

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
)

// framings are all that a transport can carry.
func (e *env) framings() []framing.Framer {
	if e.on == "ws" {
		return []framing.Framer{framing.JSON{}, framing.CBORSeq{}}
	}
	return framing.Default().Framers()
}

// noise is text of about n bytes that says nothing twice.
func noise(n int, seed uint64) string {
	var from [32]byte
	binary.LittleEndian.PutUint64(from[:], seed)
	random := make([]byte, (n+1)/2)
	_, _ = rand.NewChaCha8(from).Read(random) // it never fails
	return hex.EncodeToString(random)
}

// putLarge writes an object with text. A server that is not ours may refuse it.
func (e *env) putLarge(name, text string) listwatch.Version {
	e.Helper()
	v, err := e.tryPutText(name, `{"text":"`+text+`"}`)
	switch {
	case err != nil && e.can(InProcess):
		e.Fatalf("put %s: %v", name, err)
	case err != nil:
		e.Skipf("the server does not store %d bytes: %v", len(text), err)
	}
	return v
}

func large1MiB(e *env) { e.carries(1 << 20) }
func large3MiB(e *env) { e.carries(3 << 20) }

// carries watches an object of a size live and behind, in all framings, and by hand: there the windows of HTTP/2 are the least there are.
func (e *env) carries(size int) {
	before := e.put("before")
	live, text := e.dial(from(before)), noise(size, 1)
	e.putLarge("a", text)
	e.put("b")
	watches, framings := map[string]*stream{"live": live}, e.framings()
	if raced {
		framings = framings[:1]
	}
	for _, f := range framings {
		s, err := e.tryDialIn(f, from(before))
		if err == nil {
			watches[f.MediaType()] = s
		} else if e.can(InProcess) {
			e.Errorf("%s: %v", f.MediaType(), err)
		}
	}
	for what, s := range watches {
		if got := s.want("ADDED a", "ADDED b")[0].Object.Data; !bytes.Contains(got, []byte(text)) {
			e.Errorf("%s: got %d bytes that begin %.100s, want the text as it was written", what, len(got), got)
		}
		s.Close()
	}
	a := e.watch(from(before))
	a.accepted()
	for _, want := range []string{"ADDED a", "ADDED b"} {
		event := a.event()
		if got := lineOf(event); got != want || want == "ADDED a" && !bytes.Contains(event, []byte(text)) {
			e.Fatalf("by hand: got %.100s, %d bytes of %.100s; want %s", got, len(event), event, want)
		}
	}
}

// event reads one event in JSON by hand.
func (a *answer) event() []byte {
	a.Helper()
	if a.on == "ws" {
		_, payload := a.message()
		return payload
	}
	event, err := a.body.ReadBytes('\n')
	if err != nil {
		a.Fatalf("got %d bytes, %.100s, %v; want an event", len(event), event, err)
	}
	return event
}

func largeBurst(e *env) {
	const size = 100 << 10
	count := 200
	if raced {
		count = 40
	}
	texts := make([]string, 10) // that many suffice to tell one from the next
	for i := range texts {
		texts[i] = noise(size, uint64(i))
	}
	before := e.put("before")
	s := e.dial(from(before))
	var want []listwatch.Version
	for i := range count {
		want = append(want, e.putLarge(fmt.Sprintf("a-%d", i), texts[i%len(texts)]))
	}
	for i, v := range want {
		got := s.next()
		if got.Version != v || !bytes.Contains(got.Object.Data, []byte(texts[i%len(texts)])) {
			e.Fatalf("event %d is %s at %d with %d bytes; want a-%d at %d, as it was written", i, line(got), got.Version, len(got.Object.Data), i, v)
		}
	}
}

// largeInitial50k tests all transports on one collection, which takes a while to write.
func largeInitial50k(e *env) {
	objects := 50_000
	if raced {
		objects = 10_000
	}
	e.use(InProcess)
	for i := range objects {
		e.putText(fmt.Sprintf("a-%d", i), `{"text":"`+strings.Repeat("x", 50)+`"}`)
	}
	tested := map[string]bool{}
	for _, w := range append(e.others(), e.way) {
		if !tested[w.on] {
			e.over(w).initialIsCheap(objects)
			tested[w.on] = true
		}
	}
}

func (e *env) initialIsCheap(objects int) {
	e.Helper()
	const watches, most = 5, 512 << 10
	before := heap()
	var open []*answer
	for range watches {
		a := e.watch(streamingList[1:])
		a.accepted()
		a.event() // and no more: the rest waits at the server
		open = append(open, a)
	}
	if each := (heap() - before) / watches; each > most {
		e.Errorf("%s: %d watches of the initial events of %d objects took %d KiB of memory each, want at most %d", e.way.name, watches, objects, each>>10, most>>10)
	}
	runtime.KeepAlive(open)
}

// heap returns how many bytes are in use.
func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
