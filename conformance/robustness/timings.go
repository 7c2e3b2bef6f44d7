package robustness

import (
	"time"
)

// timings contains the durations and intervals of a cluster.
type timings struct {
	// duration is the time during which faults are injected. A run that hangs is canceled
	// maxOvertime later.
	duration          time.Duration
	maxOvertime       time.Duration
	pause             time.Duration // typical length of the pauses of writers and watchers
	faultInterval     time.Duration // mean time between two faults of the server
	bookmarkInterval  time.Duration
	watchTimeout      time.Duration // minimum duration of a watch
	heartbeatInterval time.Duration
	writeTimeout      time.Duration
	idleTimeout       time.Duration // time without bytes after which clients close a connection
	// connectionFault is the upper bound for the start and the duration of a connection's
	// fault.
	connectionFault time.Duration
}
