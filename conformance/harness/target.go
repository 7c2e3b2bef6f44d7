package harness

import (
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/transport"
)

// A Target is a server under test.
type Target struct {
	// Name is short, without spaces: it is part of the names of runs.
	Name string
	// Ways are the names of the ways to reach it that are to be tested; see [Ways]. Nil: all.
	Variants []string
	// Offers is what it can do.
	Abilities Ability
	// Open returns a site for one case, or fails t. It is closed by t.Cleanup.
	Open func(t T, s Setup) *Instance
	// Notes are what a reader of the report must know, such as why a way is not among Ways.
	Notes []string
	// Dialler and Client, where they are not nil, put another client in the place of ours: Dialler that of one transport,
	// Client the one that resumes; it returns nil where there is none.
	TransportClient func(transport.Client) transport.Client
	Client          func(*client.Remote) listwatch.Source
	// Informer, where it is not nil, puts another in the place of our informer.
	Informer func(*informer.Informer[*listwatch.Object]) Cache
	// Patience is how long a case waits for what must come. Zero: 10 s.
	Patience time.Duration
	// Seed is what random cases begin from. Zero: another one each time.
	Seed uint64
	// Bubbles: Open works within a bubble of testing/synctest, where Setup.Fake is set.
	SupportsFakeTime bool
}

// A Cannot is the error of a client under test that has no means to do what a case asks of it. The case is skipped, and this is why.
type MissingAbility string

// Error returns the reason.
func (c MissingAbility) Error() string { return string(c) }
