package sources

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/reference"
	"github.com/listwatch/listwatch/conformance/runner"
	"github.com/listwatch/listwatch/watchcache"
)

// An owner feeds a cache with its writes.
type owner struct {
	*watchcache.Cache

	mu sync.Mutex
	// Guarded by mu.
	version listwatch.Version // the version of the newest write
	uids    map[listwatch.Key]listwatch.Version
}

// newOwner returns the owner of an empty cache at version start.
func newOwner(t conformance.T, historyBytes int64, start listwatch.Version) *owner {
	t.Helper()
	d := listwatch.Description{
		APIVersion: "conformance.example.com/v1", Kind: "Thing", Fields: []string{"spec.phase"}, Epoch: rand.Text(),
	}
	o := &owner{
		Cache:   watchcache.New(d, watchcache.Options{History: listwatch.Retention{Bytes: historyBytes}}),
		version: start, uids: make(map[listwatch.Key]listwatch.Version),
	}
	if err := o.Replace(nil, o.version); err != nil {
		t.Fatal(err)
	}
	return o
}

// write writes an object, or deletes it if data is nil.
func (o *owner) write(_ context.Context, key listwatch.Key, data []byte) (listwatch.Version, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.version++
	change := watchcache.Change{Version: o.version, Key: key}
	if data == nil {
		delete(o.uids, key)
	} else {
		if o.uids[key] == 0 {
			o.uids[key] = o.version
		}
		const start = `{"metadata":{`
		head := fmt.Appendf(nil,
			`{"kind":"Thing","apiVersion":"conformance.example.com/v1","metadata":{"uid":"%d","resourceVersion":"%d",`,
			o.uids[key], o.version)
		var err error
		if change.Object, err = listwatch.ParseObject(bytes.Replace(data, []byte(start), head, 1)); err != nil {
			return 0, err
		}
	}
	return o.version, o.Apply(change)
}

func TestCacheIsASource(t *testing.T) {
	if testing.Short() {
		t.Skip("slow; make test runs it")
	}
	conformance.TestReadOnlySource(t, func(t conformance.T, historyBytes int64) conformance.ReadOnlySource {
		o := newOwner(t, historyBytes, listwatch.Version(time.Now().UnixMicro()))
		return conformance.ReadOnlySource{Source: o, Write: o.write, Compact: o.Compact}
	}, withoutWireCases())
}

// Versions may start at 1. For example, a database table that counts its changes may be empty at
// version 1, so that its first write has version 2.
func TestCasesAcceptTheFirstVersions(t *testing.T) {
	target := reference.NewReadOnly("first-versions", func(t harness.T, s harness.Setup) reference.ReadOnly {
		o := newOwner(t, s.HistoryBytes, 1)
		return reference.ReadOnly{Source: o, Write: o.write, Compact: o.Compact}
	}, reference.Interceptors{})
	target.Abilities |= harness.ConsecutiveVersions // each write increments the version by one
	target.Variants, target.SupportsFakeTime = []string{"h1"}, false
	for _, c := range conformance.List() {
		if strings.HasPrefix(c.ID, "resume/expired-never-skips") {
			t.Run(c.ID, func(t *testing.T) { runner.Test(t, c, target) })
		}
	}
}
