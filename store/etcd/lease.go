package etcd

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
)

// An object with a TTL has a lease of etcd of its own. Its end is a delete like any other, at a
// revision of its own. etcd's leader counts the time, so servers need no state and no agreement.

// maxLeaseSeconds is the longest TTL that etcd accepts.
const maxLeaseSeconds = 9_000_000_000

// leaseSeconds returns the TTL of a lease for an object with the given TTL.
func leaseSeconds(ttl time.Duration) int64 {
	return min(int64((ttl-1)/time.Second)+1, maxLeaseSeconds)
}

// leaseID returns the ID of the lease of an object. It is a hash, so a request that is sent twice
// grants one lease, and an update keeps the lease unless the TTL changes. The lease that the object
// had before then ends without a key.
func leaseID(path, uid string, seconds int64) int64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d", path, uid, seconds))
	return int64(binary.BigEndian.Uint64(sum[:])>>1 | 1) // positive
}

// leases holds the lease of each object that has one, as the log has received it. A lease can only
// change together with the version.
type leases struct {
	mu    sync.Mutex
	byKey map[listwatch.Key]leased // guarded by mu
}

type leased struct {
	version listwatch.Version
	lease   int64
}

func (l *leases) reset(all map[listwatch.Key]leased) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byKey = all
}

// set records the lease of key at a version. It is 0 if key has no lease or was deleted.
func (l *leases) set(key listwatch.Key, v listwatch.Version, lease int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lease == 0 {
		delete(l.byKey, key)
		return
	}
	l.byKey[key] = leased{v, lease}
}

// of returns the lease of o, if it has one that is known.
func (l *leases) of(o *listwatch.Object) (lease int64, isKnown bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := l.byKey[o.Key]
	return found.lease, found.version == o.Version
}

func (l *leases) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.byKey)
}
