package fault

import (
	"math/rand/v2"
	"time"
)

// A Kind is something that happens to a connection.
type Kind uint8

// The kinds.
const (
	// None leaves the connection alone.
	None Kind = iota
	// Reset ends it with a TCP reset to both ends, who lose what is on its way.
	Reset
	// Cut ends it without a reset, in the middle of whatever is on its way.
	Cut
	// Stall holds everything back, in both directions, and then lets it go.
	Stall
	// HalfOpen makes everything vanish that either end sends from then on, its end too: to each the other just falls silent.
	HalfOpen
	// Drip lets a few bytes pass at a time.
	Drip
	// Latency holds every piece back for a while.
	Latency
)

var kindNames = [...]string{None: "none", Reset: "reset", Cut: "cut", Stall: "stall", HalfOpen: "half-open", Drip: "drip", Latency: "latency"}

// String returns the name of k, such as "half-open".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Kinds returns all kinds but None.
func Kinds() []Kind { return []Kind{Reset, Cut, Stall, HalfOpen, Drip, Latency} }

// A Fault is what happens to one connection, and when: as soon as After has passed and Bytes have come from the server.
type Fault struct {
	Kind Kind
	// After is since the connection was accepted.
	Wait time.Duration
	// Bytes is how many bytes of the server pass before; none more do in front of a Reset, Cut, Stall or HalfOpen.
	ServerBytes int64
	// For is how long Stall, Drip and Latency last. Zero: until [Proxy.Heal].
	Duration time.Duration
	// Size is how many bytes pass at a time, for Drip; zero: 1.
	ChunkSize int
	// Delay is how long Drip waits between pieces, and Latency before each. Zero: it doesn't.
	ChunkDelay time.Duration
}

// A Plan says what happens to the connection of a number; they count from zero.
type Plan func(conn int) Fault

// A Mix bounds random faults. Zero bounds: at once, for ever.
type RandomOptions struct {
	// Kinds are those that occur, all of them equally often; [None] may be one. Empty: none.
	Kinds []Kind
	// Faults bite after up to Bytes and up to After, and last for up to For.
	MaxBytes    int64
	MaxWait     time.Duration
	MaxDuration time.Duration
	// Size and Delay are those of every Fault.
	ChunkSize  int
	ChunkDelay time.Duration
}

// Random returns a Plan that follows from the seed alone. Each of m.Kinds comes once in as many connections, in an order that changes, so that
// none is left out in a short run.
func Random(seed uint64, m RandomOptions) Plan {
	return func(conn int) Fault {
		if len(m.Kinds) == 0 {
			return Fault{}
		}
		round, place := conn/len(m.Kinds), conn%len(m.Kinds)
		order := rand.New(rand.NewPCG(seed, uint64(round)<<1)).Perm(len(m.Kinds))
		r := rand.New(rand.NewPCG(seed, uint64(conn)<<1|1))
		return Fault{
			Kind: m.Kinds[order[place]], ServerBytes: r.Int64N(m.MaxBytes + 1), Wait: time.Duration(r.Int64N(int64(m.MaxWait) + 1)),
			Duration: upTo(r, m.MaxDuration), ChunkSize: m.ChunkSize, ChunkDelay: m.ChunkDelay,
		}
	}
}

// upTo returns a random duration of half to all of d: zero would be for ever.
func upTo(r *rand.Rand, d time.Duration) time.Duration {
	return d/2 + time.Duration(r.Int64N(int64(d)/2+1))
}
