package connio

import "sync"

// A Done records that a stream is done. The zero value is ready to use. It is safe for concurrent
// use.
type Done struct {
	mu sync.Mutex
	// Guarded by mu.
	isSet bool
	f     func()
}

// Set marks the stream as done, and calls the function passed to OnSet. Further calls have no
// effect.
func (d *Done) Set() {
	d.mu.Lock()
	f := d.f
	d.isSet, d.f = true, nil
	d.mu.Unlock()
	if f != nil {
		f()
	}
}

// IsSet reports whether Set was called.
func (d *Done) IsSet() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.isSet
}

// OnSet makes Set call f, or calls f if Set was already called.
func (d *Done) OnSet(f func()) {
	d.mu.Lock()
	isSet := d.isSet
	if !isSet {
		d.f = f
	}
	d.mu.Unlock()
	if isSet {
		f()
	}
}
