// Package budget limits what the requests of a process use at the same time.
package budget

import "sync"

// An Amount is what requests use, or the limit of it. A limit that is not positive is no limit.
type Amount struct {
	Requests int64 // seats: a large request takes more than one
	Writes   int64 // writes being executed
	Bytes    int64 // memory
}

func (a Amount) plus(b Amount) Amount {
	return Amount{a.Requests + b.Requests, a.Writes + b.Writes, a.Bytes + b.Bytes}
}

func (a Amount) minus(b Amount) Amount {
	return Amount{a.Requests - b.Requests, a.Writes - b.Writes, a.Bytes - b.Bytes}
}

// exceeded returns the name of the first limit that a exceeds, or "". It ignores the members that
// are zero in more.
func (a Amount) exceeded(limit, more Amount) string {
	switch {
	case limit.Requests > 0 && more.Requests > 0 && a.Requests > limit.Requests:
		return "requests"
	case limit.Writes > 0 && more.Writes > 0 && a.Writes > limit.Writes:
		return "writes"
	case limit.Bytes > 0 && more.Bytes > 0 && a.Bytes > limit.Bytes:
		return "memory"
	}
	return ""
}

// A Budget is what all requests use, and each client. The zero value is ready to use. It is safe
// for concurrent use.
type Budget struct {
	mu sync.Mutex
	// Guarded by mu.
	used    Amount
	clients map[string]Amount
}

// Take adds a to what client uses. If that exceeds limit, or the half of it that one client may
// use, Take changes nothing and returns the name of the limit.
func (b *Budget) Take(client string, a, limit Amount) (exceeded string) {
	if a == (Amount{}) {
		return ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	used, own := b.used.plus(a), b.clients[client].plus(a)
	if exceeded = used.exceeded(limit, a); exceeded == "" {
		exceeded = own.exceeded(Amount{half(limit.Requests), half(limit.Writes), half(limit.Bytes)}, a)
	}
	if exceeded != "" {
		return exceeded
	}
	if b.clients == nil {
		b.clients = make(map[string]Amount)
	}
	b.used, b.clients[client] = used, own
	return ""
}

// Used returns what all requests use.
func (b *Budget) Used() Amount {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// half returns half of a limit, at least 1. The result limits one client.
func half(n int64) int64 {
	if n <= 0 {
		return 0
	}
	return (n + 1) / 2
}

// Return undoes Take.
func (b *Budget) Return(client string, a Amount) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used = b.used.minus(a)
	if own := b.clients[client].minus(a); own != (Amount{}) {
		b.clients[client] = own
	} else {
		delete(b.clients, client)
	}
}
