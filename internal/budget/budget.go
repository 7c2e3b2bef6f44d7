// Package budget limits what the requests of a process use at the same time.
package budget

import "sync"

// An Amount holds the resources that requests use, or their limits. In a limit, zero or a negative
// number means no limit.
type Amount struct {
	Requests int64 // concurrent requests; a large request counts more than once
	Writes   int64 // writes being executed
	Bytes    int64 // memory
}

func (a Amount) plus(b Amount) Amount {
	return Amount{a.Requests + b.Requests, a.Writes + b.Writes, a.Bytes + b.Bytes}
}

func (a Amount) minus(b Amount) Amount {
	return Amount{a.Requests - b.Requests, a.Writes - b.Writes, a.Bytes - b.Bytes}
}

// exceeded returns the name of the first limit that a exceeds, or "" if it exceeds none. more is
// the part of a that a new request wants to take. exceeded ignores the limits of resources that the
// new request does not use.
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

// A Budget counts the resources in use, in total and for each client. The zero value is ready to
// use. It is safe for concurrent use.
type Budget struct {
	mu sync.Mutex
	// Guarded by mu.
	used    Amount
	clients map[string]Amount
}

// Take adds an amount to the resources that the client uses. If the total would exceed the limit,
// or the resources of the client would exceed half of the limit, Take changes nothing and returns
// the name of that limit.
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

// Used returns the resources that all requests use.
func (b *Budget) Used() Amount {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// half returns the half of a limit that one client may use, rounded up, or zero if there is no
// limit.
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
