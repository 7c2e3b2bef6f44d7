package history

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/racetest"
	"github.com/listwatch/listwatch/internal/sharedmaps"
	"github.com/listwatch/listwatch/internal/testkit"
)

var isAlone = flag.Bool("alone", false, "measure the heap in this process")

// A map of labels for each object was a third of the memory of small objects, and was not counted.
// The test measures the heap of a process of its own, because the timers of idle feeds keep the
// logs of other tests in memory for 30 s.
func TestObjectMemoryIsCountedAsItIs(t *testing.T) {
	racetest.SkipMemory(t)
	if !*isAlone {
		out, err := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v",
			"-alone").CombinedOutput()
		if t.Logf("%s", out); err != nil {
			t.Error(err)
		}
		return
	}
	const objects = 5_000
	for _, tt := range []struct {
		name           string
		labels         int
		distinct       bool    // each object has labels of its own
		perByte        float64 // the greatest memory for each byte of JSON; zero means any
		bytesOfTheRest int
	}{
		{"equal labels", 6, false, 1.4, 500},
		{"own labels", 6, true, 0, 500},
		{"40 own labels", 40, true, 0, 500},
		{"100 own labels", 100, true, 0, 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := New(Options{Retention: listwatch.Retention{Bytes: 1}})
			before := testkit.HeapBytes()
			for i := range objects {
				values := make(map[string]string)
				for n := range tt.labels {
					owner := i % 100
					if tt.distinct {
						owner = i
					}
					values[fmt.Sprint("example.com/label-", n)] = fmt.Sprint("value-", owner)
				}
				v := listwatch.Version(i + 1)
				o := thing(listwatch.Key{Namespace: "default", Name: fmt.Sprint("object-", i)}, v, values,
					fmt.Sprint("node-", i%10))
				data := strings.TrimSuffix(string(o.Data), "}") + `,"x":"` + strings.Repeat("x", tt.bytesOfTheRest)
				for k, v := range values {
					data += k + v + `:"",`
				}
				o.Data = []byte(data + `"}`)
				l.Append(Record{Version: v, New: o})
			}
			l.Compact()
			heap, s := testkit.HeapBytes()-before, l.Stats()
			perByte := float64(heap) / float64(s.ObjectBytes)
			t.Logf("%d bytes of JSON take %d bytes, %.2f for each, and count as %d", s.ObjectBytes, heap, perByte,
				s.ObjectMemory)
			if ratio := float64(s.ObjectMemory) / float64(heap); ratio < 0.8 || ratio > 1.3 {
				t.Errorf("%d bytes count as %d", heap, s.ObjectMemory)
			}
			if tt.perByte > 0 && perByte > tt.perByte {
				t.Errorf("a byte of JSON takes %.2f bytes, want at most %.2f", perByte, tt.perByte)
			}
			runtime.KeepAlive(l)
		})
	}
}

func TestObjectsShareEqualMaps(t *testing.T) {
	l := New(Options{})
	key := func(i int) listwatch.Key { return listwatch.Key{Name: fmt.Sprint(i)} }
	for i := range 3 {
		put(l, key(i), map[string]string{"app": "x", "tier": fmt.Sprint(i / 2)})
	}
	if a, b, c := l.Get(key(0)), l.Get(key(1)), l.Get(key(2)); !sharedmaps.IsSameMap(a.Labels, b.Labels) ||
		sharedmaps.IsSameMap(a.Labels, c.Labels) || !sharedmaps.IsSameMap(a.Fields, c.Fields) {
		t.Errorf("got %v, %v and %v, want equal labels and fields shared", a, b, c)
	}
	for i := range 3 {
		l.Append(Record{Version: l.Stats().Newest + 1, Old: l.Get(key(i))})
	}
	if s := l.state.shared; s.Bytes != 0 || s.Len() != 0 {
		t.Errorf("%d maps of %d bytes are left, want none", s.Len(), s.Bytes)
	}
}
