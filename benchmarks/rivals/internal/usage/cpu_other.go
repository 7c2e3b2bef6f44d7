//go:build !unix

package usage

import (
	"errors"
	"time"
)

// CPU returns an error, because this system has no getrusage.
func CPU() (time.Duration, error) { return 0, errors.ErrUnsupported }
