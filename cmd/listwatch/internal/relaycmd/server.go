package relaycmd

import (
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
}

// A relayServer holds the listeners and the relays of the relay command.
type relayServer struct {
	listen.Listeners
	options  *relayOptions
	upstream *upstream
	relays   []namedRelay
	paths    []string // paths for the quickstart
	closers  []func()
}

// A namedRelay is the relay of one collection.
type namedRelay struct {
	name string
	*relay.Relay
}
