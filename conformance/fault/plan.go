package fault

import (
	"math/rand/v2"
	"time"
)

// A Kind is a kind of network fault.
type Kind uint8

// The kinds of faults.
const (
	// None forwards everything unchanged.
	None Kind = iota
	// Reset closes the connection with a TCP reset to both ends. Data in flight is lost.
	Reset
	// Cut closes the connection without a reset, possibly in the middle of a message.
	Cut
	// Stall holds back all data in both directions until the fault ends.
	Stall
	// HalfOpen drops everything that either end sends, and hides when an end closes the
	// connection: each end sees only silence. This fault never ends.
	HalfOpen
	// Drip forwards ChunkSize bytes at a time, with a pause before each chunk.
	Drip
	// Latency delays each chunk of data.
	Latency
)

var kindNames = [...]string{
	None: "none", Reset: "reset", Cut: "cut", Stall: "stall", HalfOpen: "half-open", Drip: "drip", Latency: "latency",
}

// String returns the name of k, such as "half-open".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Kinds returns all kinds but None.
func Kinds() []Kind { return []Kind{Reset, Cut, Stall, HalfOpen, Drip, Latency} }

// A Fault describes a fault of one connection. It starts when Wait has passed and the proxy has
// forwarded the first ServerBytes bytes from the server.
type Fault struct {
	Kind Kind
	// Wait is the minimum time since the connection was accepted.
	Wait time.Duration
	// ServerBytes is the number of bytes from the server that are forwarded before the
	// fault. Reset, Cut, Stall and HalfOpen start exactly after that many bytes.
	ServerBytes int64
	// Duration is the time after which Stall, Drip and Latency end. If zero, they last until
	// [Proxy.Heal].
	Duration time.Duration
	// ChunkSize is the number of bytes that Drip forwards at a time. If zero, it is 1.
	ChunkSize int
	// ChunkDelay is the pause of Drip and Latency before each chunk. If zero, they do not pause.
	ChunkDelay time.Duration
}

// A Plan returns the fault for a connection. Connections are numbered from zero in the
// order in which they are accepted.
type Plan func(conn int) Fault

// RandomOptions bounds the faults that [Random] chooses. With zero bounds a fault starts
// immediately and ends after a nanosecond; only Reset, Cut and HalfOpen have an effect then.
type RandomOptions struct {
	// Kinds lists the kinds that occur, each equally often. It may contain [None]. If
	// empty, no faults occur.
	Kinds []Kind
	// MaxBytes, MaxWait and MaxDuration are the upper bounds of a fault's ServerBytes, Wait
	// and Duration.
	MaxBytes    int64
	MaxWait     time.Duration
	MaxDuration time.Duration
	// ChunkSize and ChunkDelay are copied to every fault.
	ChunkSize  int
	ChunkDelay time.Duration
}

// Random returns a plan that depends only on seed and o. It divides the connections into rounds of
// len(o.Kinds). In each round every kind occurs once, in random order, so that short runs include
// all kinds.
func Random(seed uint64, o RandomOptions) Plan {
	return func(conn int) Fault {
		if len(o.Kinds) == 0 {
			return Fault{}
		}
		round, position := conn/len(o.Kinds), conn%len(o.Kinds)
		order := rand.New(rand.NewPCG(seed, uint64(round)<<1)).Perm(len(o.Kinds))
		r := rand.New(rand.NewPCG(seed, uint64(conn)<<1|1))
		return Fault{
			Kind: o.Kinds[order[position]], ServerBytes: r.Int64N(o.MaxBytes + 1),
			Wait:     time.Duration(r.Int64N(int64(o.MaxWait) + 1)),
			Duration: randomDuration(r, o.MaxDuration), ChunkSize: o.ChunkSize, ChunkDelay: o.ChunkDelay,
		}
	}
}

// randomDuration returns a duration between d/2 and d, and at least 1 ns, because a fault with
// a Duration of zero never ends.
func randomDuration(r *rand.Rand, d time.Duration) time.Duration {
	return max(1, d/2+time.Duration(r.Int64N(int64(d)/2+1)))
}
