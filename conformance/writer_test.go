package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
)

const (
	objectSize = 1 << 10
	namesEach  = 24
	// metadataSize is the approximate number of bytes around a spec.
	metadataSize = 250
)

// A writer writes objects that no other writer writes. It therefore knows the expected
// content without reading the store.
type writer struct {
	name   string
	things *store.Collection
	log    *writeLog
	rand   *rand.Rand
	writes int
	// largeWrites is the number of large objects that the writer still has to write.
	largeWrites int
	owned       map[listwatch.Key]*ownedObject
}

// An ownedObject is an object as its writer last wrote it.
type ownedObject struct {
	version listwatch.Version
	labels  map[string]string
	data    []byte
}

// newWriter returns a writer whose object names start with the given name. actor selects its random
// source; see newRandom.
func newWriter(name string, actor uint64, things *store.Collection, l *writeLog) *writer {
	return &writer{
		name: name, things: things, log: l, rand: newRandom(actor), owned: make(map[listwatch.Key]*ownedObject),
	}
}

// write makes one random write. About a seventh of the writes to existing objects are
// deletes.
func (w *writer) write(ctx context.Context) error {
	key := listwatch.Key{Name: fmt.Sprintf("%s-%d", w.name, w.rand.IntN(namesEach))}
	if w.owned[key] != nil && w.rand.IntN(7) == 0 {
		return w.delete(ctx, key)
	}
	labels, size := w.labels(), objectSize
	if w.writes++; w.writes%largeWriteInterval == 0 && w.largeWrites > 0 {
		w.largeWrites--
		labels, size = map[string]string{"tier": "gold"}, largeSize // matches every selector
	}
	return w.put(ctx, key, labels, size)
}

// labels returns random labels. Each entry of selectors matches the labels of three objects
// out of five on average.
func (w *writer) labels() map[string]string {
	labels := map[string]string{"tier": [...]string{"gold", "gold", "gold", "silver", "bronze"}[w.rand.IntN(5)]}
	if w.rand.IntN(4) == 0 {
		labels["canary"] = "yes"
	}
	if w.rand.IntN(4) == 0 {
		labels["shade"] = "dark"
	}
	return labels
}

// put creates or replaces an object.
func (w *writer) put(ctx context.Context, key listwatch.Key, labels map[string]string, size int) error {
	spec := w.spec(size)
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"name": key.Name, "labels": labels}, "spec": json.RawMessage("0"),
	})
	if err != nil {
		return err
	}
	// Append spec here, because json.Marshal would re-encode it.
	data = append(bytes.TrimSuffix(data, []byte("0}")), spec...)
	data = append(data, '}')
	old := w.owned[key]
	var object *listwatch.Object
	if old == nil {
		object, err = w.things.Create(ctx, data)
	} else {
		object, err = w.things.Update(ctx, key, listwatch.Preconditions{Version: old.version},
			func(found *listwatch.Object) ([]byte, error) {
				if !bytes.Equal(found.Data, old.data) {
					return nil, fmt.Errorf("the store returned other bytes than were written: %s",
						firstDifference(found.Data, old.data))
				}
				return data, nil
			})
	}
	if err != nil {
		return err
	}
	if !bytes.Contains(object.Data, spec) {
		return fmt.Errorf("the store changed %s: %s", key, excerptAt(object.Data, 0))
	}
	w.owned[key] = &ownedObject{object.Version, labels, object.Data}
	return w.record(&recordedWrite{version: object.Version, key: key, after: labels}, old, object.Data)
}

func (w *writer) delete(ctx context.Context, key listwatch.Key) error {
	old := w.owned[key]
	object, err := w.things.Delete(ctx, key, listwatch.Preconditions{})
	if err != nil {
		return err
	}
	delete(w.owned, key)
	return w.record(&recordedWrite{version: object.Version, key: key}, old, nil)
}

// record adds an acknowledged write to the log. old is the previous state of the object, as the
// writer remembers it, or nil.
func (w *writer) record(change *recordedWrite, old *ownedObject, now []byte) (err error) {
	if now != nil {
		if change.now, err = newObjectContent(now); err != nil {
			return err
		}
	}
	if old != nil {
		change.before = old.labels
		before, after := versionMember(old.version), versionMember(change.version)
		if n := bytes.Count(old.data, before); n != 1 {
			return fmt.Errorf("%s contains its version %d times, want once", change.key, n)
		}
		if change.last, err = newObjectContent(bytes.Replace(old.data, before, after, 1)); err != nil {
			return err
		}
	}
	w.log.add(change)
	return nil
}

func versionMember(v listwatch.Version) []byte { return fmt.Appendf(nil, `"resourceVersion":"%d"`, v) }

// unusualNumbers are numbers that a float64, a 64-bit integer or JavaScript would change or
// encode differently.
var unusualNumbers = []string{
	"9007199254740993", "18446744073709551615", "18446744073709551617", "-18446744073709551617", "1e400", "-1e400",
	"1e-400", "-0", "-0.0", "0.1",
	"0.10000000000000001", "9007199254740993.0", "1.0", "1E+2", "5e-324", "1.7976931348623157e308",
	"123456789012345678901234567890.5", "3.141592653589793238462643383279",
}

// unusualTexts are fragments of JSON strings: characters outside the Basic Multilingual Plane,
// combining and joined characters, right-to-left text, line separators, control characters, a lone
// surrogate and all escapes.
var unusualTexts = []string{
	"plain ", "caf\u00e9 ", "e\u0301a\u030a\u0323 ", "\U00010348\U0002070e ",
	"\U0001F469\u200d\U0001F4BB\U0001F3F3\ufe0f ", `\ud83d\ude00`, `\uD834\udd1e`,
	"\u05e9\u05dc\u05d5\u05dd \u202eabc\u202c \u0639\u0631\u0628\u0649 ", "\u2028\u2029\u0085", `\u2028\u2029`,
	`\u0000`, `\u001f`, "\u007f",
	`\"\\\/\b\f\n\r\t`, "<b>&amp;'</b>", "\ufeff", "\ufffd", `\ud800 `, "data: x", "}{][",
	"\u0e01\u0e33\u0e49 ", "\u65e5\u672c\u8a9e ",
}

// spec returns a random spec for an object of about size bytes.
func (w *writer) spec(size int) []byte {
	spec := fmt.Appendf(nil, `{"writer":"%s","n":%d,"none":null,"deep":[[[{"a":[]},{}]]],"yes":true,"odd":[0`, w.name,
		w.writes)
	for range 6 {
		spec = append(append(spec, ','), unusualNumbers[w.rand.IntN(len(unusualNumbers))]...)
	}
	spec = append(spec, `],"text":"`...)
	text := w.text(min(size, 16<<10) - len(spec) - metadataSize)
	for ok := true; ok; ok = size > objectSize && len(spec) < size {
		spec = append(spec, text...)
	}
	return append(spec, `"}`...)
}

// text returns about size bytes of text for a JSON string, already escaped. The text starts with
// unusual fragments.
func (w *writer) text(size int) []byte {
	var text []byte
	for len(text) < min(size, 1<<10)/8 {
		text = append(text, unusualTexts[w.rand.IntN(len(unusualTexts))]...)
	}
	for len(text) < size {
		text = strconv.AppendUint(text, w.rand.Uint64(), 36)
	}
	return text
}

// A throttle limits the lag of the slowest watcher by delaying the writers, so that most
// events are delivered live.
type throttle struct {
	mu        sync.Mutex
	moved     *sync.Cond
	positions []listwatch.Version // the position of each watcher; guarded by mu
}

func newThrottle(watchers int) *throttle {
	p := &throttle{positions: make([]listwatch.Version, watchers)}
	p.moved = sync.NewCond(&p.mu)
	return p
}

func (t *throttle) advance(watcher int, v listwatch.Version) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.positions[watcher] = v
	t.moved.Broadcast()
}

// finished removes a watcher from the throttle.
func (t *throttle) finished(watcher int) { t.advance(watcher, math.MaxUint64) }

// wait waits until no watcher is more than maxLag behind v.
func (t *throttle) wait(ctx context.Context, v listwatch.Version) error {
	defer context.AfterFunc(ctx, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.moved.Broadcast()
	})()
	t.mu.Lock()
	defer t.mu.Unlock()
	for ctx.Err() == nil && t.slowest()+maxLag < v {
		t.moved.Wait()
	}
	return ctx.Err()
}

func (t *throttle) slowest() listwatch.Version {
	slowest := listwatch.Version(math.MaxUint64 - maxLag)
	for _, v := range t.positions {
		slowest = min(slowest, v)
	}
	return slowest
}
