//go:build !unix

package benchmarks

import (
	"errors"
	"time"
)

// processorTime returns an error, because this system has no getrusage.
func processorTime() (time.Duration, error) { return 0, errors.ErrUnsupported }
