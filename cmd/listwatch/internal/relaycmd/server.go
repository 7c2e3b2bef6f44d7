package relaycmd

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/listen"
	"github.com/listwatch/listwatch/relay"
)

// relayOptions contains the flags of relay.
type relayOptions struct {
	listen.Options
	upstream         upstreamOptions
	resources        []string
	historyAge       time.Duration
	historyBytes     cli.ByteSize
	backfillVersions int
	maxBehind        time.Duration
	cluster          clusterOptions
}

// A relayServer holds the listeners and the relays of the relay command.
type relayServer struct {
	listen.Listeners
	options  *relayOptions
	upstream *upstream
	relays   relaySet
	paths    []string // paths for the quickstart
	// background runs while the server serves. If nil, there is nothing to run.
	background func(context.Context)
}

// A namedRelay is the relay of one collection.
type namedRelay struct {
	name string
	*relay.Relay
	close func()
}

// A relaySet holds the open relays.
type relaySet struct {
	mu   sync.Mutex
	open []*namedRelay // guarded by mu
}

func (s *relaySet) add(r *namedRelay) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = append(s.open, r)
}

// all returns the open relays in the order in which they were added.
func (s *relaySet) all() []*namedRelay {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.open)
}

// close closes r and removes it. If r is nil, close closes all relays.
func (s *relaySet) close(r *namedRelay) {
	s.mu.Lock()
	var closing []*namedRelay
	s.open = slices.DeleteFunc(s.open, func(o *namedRelay) bool {
		if r != nil && o != r {
			return false
		}
		closing = append(closing, o)
		return true
	})
	s.mu.Unlock()
	for _, r := range closing {
		r.close()
	}
}
