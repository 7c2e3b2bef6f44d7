package memory_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store/memory"
)

// podOf returns an object of about 1 KiB.
func podOf(name string, n int) []byte {
	return fmt.Appendf(nil,
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":"n","labels":{"app":"web","tier":"front"}},`+
			`"spec":{"nodeName":"n1","n":%d,"text":%q}}`, name, n, strings.Repeat("x", 850))
}

// BenchmarkCreate measures a create of 1 KiB: the rules, the commit and the append to the log.
func BenchmarkCreate(b *testing.B) {
	_, pods := open(b, memory.Options{History: listwatch.Retention{Bytes: 1 << 20}})
	data := podOf("NAME-0000000", 0)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		at := []byte(strings.Replace(string(data), "NAME-0000000", fmt.Sprintf("p%011d", n), 1))
		if _, err := pods.Create(b.Context(), at); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkUpdate measures an update of 1 KiB, with and without a change.
func BenchmarkUpdate(b *testing.B) {
	for _, name := range []string{"change", "nothing"} {
		b.Run(name, func(b *testing.B) {
			_, pods := open(b, memory.Options{History: listwatch.Retention{Bytes: 1 << 20}})
			data := [2][]byte{podOf("a", 1), podOf("a", 2)}
			key := create(b, pods, string(data[0])).Key
			b.SetBytes(int64(len(data[0])))
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if name == "change" {
					n++
				}
				if _, err := pods.Replace(b.Context(), key, data[n%2]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkTypedUpdate measures an update through a Go type, which adds a decode and an encode.
func BenchmarkTypedUpdate(b *testing.B) {
	flags := memory.New[flag]()
	f, err := flags.Create(b.Context(), flag{Metadata: listwatch.Metadata{Name: "a"}})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := flags.Update(b.Context(), f.Key(), func(f *flag) error { f.Count++; return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
