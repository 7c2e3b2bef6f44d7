package harness

import (
	"context"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/transport"
)

// A Target describes a server or client under test.
type Target struct {
	// Name is part of the test names. It must be short and must not contain spaces.
	Name string
	// Variants are the names of the variants to test; [ProbeVariants] finds the variants that a
	// server supports. If Variants is nil, all variants are tested, except that the variants that
	// need this module's server are tested only if the target has the ability [InProcess].
	Variants []string
	// Abilities are the capabilities of the target. Cases that need other abilities are skipped.
	Abilities Ability
	// Open starts an instance for one case, or fails t. It registers cleanup with
	// t.Cleanup.
	Open func(t T, s Setup) *Instance
	// Ping returns an error if the target cannot be reached. A run calls it after a failure, and
	// ends if the target stays unreachable for Patience, or at once if the error is
	// os.ErrProcessDone. If Ping is nil, no failure ends the run.
	Ping func(ctx context.Context) error
	// AdapterError, if not nil, returns the errors of the adapter itself since the last call, such
	// as a line that is not JSON. A run during which an error occurs fails.
	AdapterError func() error
	// OwnClock is true if the target is a client, which then has a clock of its own. Cases of mode
	// EitherTime then run in real time, with shorter delays. Errors of such a client have only the
	// codes of the control hook.
	OwnClock bool
	// Notes are shown in the report, for example the reason why a variant is not tested.
	Notes []string
	// TransportClient, if not nil, replaces this module's client of a transport. Client, if not
	// nil, replaces the client that resumes watches. It returns nil if the target has no such
	// client.
	TransportClient func(transport.Client) transport.Client
	Client          func(*client.Remote) listwatch.Source
	// Informer, if not nil, returns an informer for a source. The cases use it instead of this
	// module's informer.
	Informer func(listwatch.Source) Cache
	// Patience is the time that a case waits for an expected event. If zero, DefaultPatience is
	// used.
	Patience time.Duration
	// Seed is the seed of random cases. If zero, each case chooses a random seed.
	Seed uint64
	// SupportsFakeTime means that Open works in a synctest bubble if Setup.FakeTime is set.
	SupportsFakeTime bool
}
