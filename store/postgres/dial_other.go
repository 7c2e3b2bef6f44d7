//go:build !linux

package postgres

import (
	"net"
	"time"
)

// setUserTimeout does nothing, because the system has no such option.
func setUserTimeout(*net.TCPConn, time.Duration) error { return nil }
