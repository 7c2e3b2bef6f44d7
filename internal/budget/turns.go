package budget

import (
	"context"
	"runtime"
	"slices"
	"sync"
)

// Turns limits the number of callers that compute at the same time, so that other work finds a free
// processor. Waiting clients take turns, and the requests of each client keep their order, so that
// a client with many requests does not delay the others. The zero value is ready to use. It is safe
// for concurrent use.
type Turns struct {
	mu sync.Mutex
	// Guarded by mu.
	taken   int
	waiting map[string][]*waiter
	next    []string // the clients in waiting, in the order of their turns
}

// A waiter waits for a turn. begin is called when the turn has come. It must not block.
type waiter struct{ begin func() }

// ClaimKey is the key under which the context of a request has its [Claim]. A parameter would not
// suffice: a list may reach the log through Sources of other programs, and these pass on only the
// context.
type ClaimKey struct{}

// A Claim is the right of a request to wait for turns.
type Claim struct {
	Turns *Turns
	// Client is the name of the client that sent the request.
	Client string
}

// Large is the size from which work takes a turn. Smaller work takes about a millisecond.
const Large = 64 << 10

// BeginTurn waits for a turn if the work is [Large] and ctx has a [Claim]. size is the length of
// the data, such as a body to parse or an object to patch. There is a turn for each processor
// except one, but at least one turn. The caller must call end, which has an effect only once. If
// there is an error, which is always the error of ctx, end does nothing. During its turn, the
// caller must not wait for input, for output, or for another turn.
func BeginTurn(ctx context.Context, size int) (end func(), err error) {
	if size < Large {
		return func() {}, nil
	}
	c, ok := ctx.Value(ClaimKey{}).(Claim)
	if !ok {
		return func() {}, nil
	}
	if err := c.Turns.begin(ctx, c.Client, limit()); err != nil {
		return func() {}, err
	}
	return sync.OnceFunc(c.Turns.End), nil
}

func limit() int { return max(1, runtime.GOMAXPROCS(0)-1) }

// Go runs f on a goroutine of its own when the client gets a turn. f must call End, and until then
// it must not wait for input, for output, or for another turn.
func (t *Turns) Go(client string, f func()) {
	w := &waiter{func() {
		go func() {
			runtime.Gosched() // see begin
			f()
		}()
	}}
	if t.take(client, w, limit()) {
		w.begin()
	}
}

// Await returns when the client gets a turn, which Await ends at once, or when ctx ends. Callers
// thus continue one after another, and other goroutines run in between. The error is always the
// error of ctx.
func (t *Turns) Await(ctx context.Context, client string) error {
	err := t.begin(ctx, client, limit())
	if err == nil {
		t.End()
	}
	return err
}

// begin waits until the client gets a turn, or until ctx ends. limit is the number of turns that
// can be taken at the same time. The caller must call End unless there is an error, which is always
// the error of ctx.
func (t *Turns) begin(ctx context.Context, client string, limit int) error {
	turn := make(chan struct{})
	w := &waiter{func() { close(turn) }}
	if t.take(client, w, limit) {
		return nil
	}
	select {
	case <-turn:
		// The runtime runs a goroutine that was just woken before all others. So a chain of turns
		// would delay other work until the runtime preempts the chain, after 10 ms.
		runtime.Gosched()
		return nil
	case <-ctx.Done():
		t.leave(client, w)
		return ctx.Err()
	}
}

// take takes a turn for w if one is free. Otherwise it adds w to the queue of the client, and
// returns false.
func (t *Turns) take(client string, w *waiter, limit int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken < limit && len(t.next) == 0 {
		t.taken++
		return true
	}
	if t.waiting == nil {
		t.waiting = make(map[string][]*waiter)
	}
	if len(t.waiting[client]) == 0 {
		t.next = append(t.next, client)
	}
	t.waiting[client] = append(t.waiting[client], w)
	return false
}

// leave ends the wait of w. If its turn has already begun, leave ends the turn.
func (t *Turns) leave(client string, w *waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.waiting[client], w)
	if i < 0 {
		t.pass()
		return
	}
	if t.waiting[client] = slices.Delete(t.waiting[client], i, i+1); len(t.waiting[client]) == 0 {
		delete(t.waiting, client)
		t.next = slices.DeleteFunc(t.next, func(name string) bool { return name == client })
	}
}

// End ends the turn of the caller.
func (t *Turns) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pass()
}

// pass passes the turn to the next client. The caller holds mu.
func (t *Turns) pass() {
	if len(t.next) == 0 {
		t.taken--
		return
	}
	client := t.next[0]
	t.next = slices.Delete(t.next, 0, 1)
	queue := t.waiting[client]
	queue[0].begin()
	if len(queue) == 1 {
		delete(t.waiting, client)
		return
	}
	t.waiting[client] = slices.Delete(queue, 0, 1)
	t.next = append(t.next, client)
}
