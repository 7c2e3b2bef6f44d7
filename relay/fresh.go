package relay

import (
	"context"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
)

// patience is how long a read waits: for the first state, for the upstream's answer, for a version.
const patience = 3 * time.Second

// An asker finds out how far the upstream is. All who ask while a question is under way share the next one: an answer counts for those
// alone who came before its question. Safe for concurrent use.
type asker struct {
	// Immutable after construction.
	ctx   context.Context
	tasks *tasks
	ask   func(context.Context) (answer, error)

	mu sync.Mutex
	// Guarded by mu.
	next    *question // the one to be asked; nil: nobody wants one
	running bool
}

// A question is asked once.
type question struct {
	answered chan struct{}
	answer   answer
	err      error
}

// An answer is how far the upstream is.
type answer struct {
	version    listwatch.Version
	generation *generation // what the version is of; nil: there was none yet
}

// newest returns a version that is not older than any write acknowledged before the call.
func (a *asker) newest(ctx context.Context) (answer, error) {
	q, err := a.join()
	if err != nil {
		return answer{}, err
	}
	select {
	case <-q.answered:
		return q.answer, q.err
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
}

func (a *asker) join() (*question, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.next == nil {
		a.next = &question{answered: make(chan struct{})}
	}
	q := a.next
	if !a.running {
		if a.running = a.tasks.start(a.run); !a.running {
			return nil, errClosed
		}
	}
	return q, nil
}

// run asks until nobody wants to know any more.
func (a *asker) run() {
	for {
		a.mu.Lock()
		q := a.next
		a.next = nil
		a.running = q != nil
		a.mu.Unlock()
		if q == nil {
			return
		}
		ctx, cancel := context.WithTimeout(a.ctx, patience)
		q.answer, q.err = a.ask(ctx)
		cancel()
		close(q.answered)
	}
}

// askUpstream is the question: a page of one object costs the upstream next to nothing, and its version is not older than any write that
// was acknowledged.
func (r *Relay) askUpstream(ctx context.Context) (answer, error) {
	asked := time.Now()
	page, err := r.upstream.List(ctx, listwatch.Query{Limit: 1})
	if err == nil {
		err = r.upstream.checkEpoch()
	}
	if err != nil {
		r.progress.failed(err)
		return answer{}, err
	}
	// The epoch was found to be that of the state after the answer, and the state is in place before its epoch is known: see sink.begin.
	a := answer{page.Version, r.latest.filled()}
	r.progress.heard()
	r.progress.sampled(asked, a.version, a.generation)
	r.upstream.nudge()
	return a, nil
}
