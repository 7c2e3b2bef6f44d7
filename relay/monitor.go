package relay

import (
	"sync"
	"time"

	"github.com/listwatch/listwatch"
)

// A monitor records when the upstream last sent something, and measures the lag. It is safe
// for concurrent use.
type monitor struct {
	mu sync.Mutex
	// Guarded by mu.
	lastHeard time.Time
	failure   error
	received  int // the events since the relay requested the newest state
	// The relay has every write that was acknowledged before caughtUp. caughtUp is zero if not
	// known.
	caughtUp time.Time
	oldest   reading // the oldest reading not reached yet; its epoch is nil if there is none
	last     reading // the newest reading; its epoch is nil if there is none
}

// A reading is a version of the upstream at some time.
type reading struct {
	// at is the time at which the request was sent. version covers all writes acknowledged before
	// that time.
	at      time.Time
	version listwatch.Version
	epoch   *epochCache // the epoch of version; nil if the relay had no state at that time
}

// heard records that the upstream has sent something.
func (m *monitor) heard() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failure, m.lastHeard = nil, time.Now()
}

// began records that the relay has requested a state of the upstream.
func (m *monitor) began() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.received = 0
}

// took records that the upstream has sent n events.
func (m *monitor) took(n int) {
	m.heard()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.received += n
}

// failed records that a watch of the upstream or a request to it has failed.
func (m *monitor) failed(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failure = err
}

func (m *monitor) err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failure
}

// add records a reading. It ignores a reading without an epoch.
func (m *monitor) add(r reading) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.epoch == nil {
		return
	}
	m.settle()
	m.last = r
	if m.oldest.epoch == nil {
		m.oldest = m.last
	}
	m.settle()
}

// settle checks whether the relay has reached the versions of oldest and last. It sets caughtUp
// to the time of the newest reading that the relay has reached. If the relay has reached oldest,
// settle replaces oldest with last, or with the zero reading if the relay has reached last as
// well. The caller must hold m.mu.
func (m *monitor) settle() {
	for _, r := range [...]reading{m.oldest, m.last} {
		if r.epoch != nil && r.epoch.Version() >= r.version {
			m.reached(r.at)
			m.oldest = m.last
		}
	}
	if !m.caughtUp.Before(m.last.at) {
		m.oldest = reading{}
	}
}

// reached records that the relay has every write that was acknowledged before at. The caller must
// hold m.mu.
func (m *monitor) reached(at time.Time) {
	if at.After(m.caughtUp) {
		m.caughtUp = at
	}
}

// settled records that the relay has the state of a reading, although it may not have reached its
// version.
func (m *monitor) settled(r reading) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last.epoch != nil && m.last.epoch != r.epoch {
		return
	}
	m.reached(r.at)
	if !m.caughtUp.Before(m.oldest.at) {
		m.oldest = m.last
	}
	m.settle()
}

// lagsAtMost reports whether the relay has every write that was acknowledged longer than d ago.
func (m *monitor) lagsAtMost(d time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.settle()
	return !m.caughtUp.IsZero() && time.Since(m.caughtUp) <= d
}

// forget drops the readings, whose versions are meaningless in a new epoch.
func (m *monitor) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.caughtUp, m.oldest, m.last = time.Time{}, reading{}, reading{}
}
