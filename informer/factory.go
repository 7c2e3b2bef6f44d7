package informer

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	"github.com/listwatch/listwatch"
)

// A Factory shares informers. Callers that request the same type, selection and source get
// the same informer, so that a program with many parts watches a collection only once. The
// zero Factory is ready to use. It is safe for concurrent use.
type Factory struct {
	mu sync.Mutex
	// Guarded by mu.
	informers map[shareKey]runner
	// start runs an informer. It is nil before Run.
	start func(runner)
}

// A runner is an Informer of any type.
type runner interface {
	Run(ctx context.Context) error
	WaitForSync(ctx context.Context) error
}

// shareKey identifies an informer of a factory: calls of Shared with equal keys return the same
// informer.
type shareKey struct {
	source    listwatch.Source
	selection string
	value     reflect.Type
}

// Shared returns the factory's informer of T for a selection of source. The first call creates
// the informer and, if configure is not nil, lets configure set the other fields of the informer.
// configure must not use the factory. An informer that is created while the factory runs is
// started at once.
//
// Two sources are the same if they are equal (==), so a source should be a pointer. If source has
// a type that cannot be compared, the error has code Invalid.
func Shared[T any](
	f *Factory, source listwatch.Source, s listwatch.Selection, configure func(*Informer[T]),
) (*Informer[T], error) {
	if source == nil || !reflect.ValueOf(source).Comparable() {
		return nil, &listwatch.Error{
			Code: listwatch.Invalid, Op: "share an informer",
			Message: fmt.Sprintf("source of type %T: cannot be compared; use a pointer", source),
		}
	}
	key := shareKey{source, s.Key(), reflect.TypeFor[T]()}
	f.mu.Lock()
	defer f.mu.Unlock()
	if r, ok := f.informers[key]; ok {
		return r.(*Informer[T]), nil
	}
	i := &Informer[T]{Source: source, Selection: s}
	if configure != nil {
		configure(i)
	}
	if f.informers == nil {
		f.informers = make(map[shareKey]runner)
	}
	f.informers[key] = i
	if f.start != nil {
		f.start(i)
	}
	return i, nil
}

// Run runs all informers of the factory, including those created later, until ctx ends. It
// returns ctx.Err() after all of them have returned. A Factory runs once: a second Run
// returns an error of code Invalid.
func (f *Factory) Run(ctx context.Context) error {
	var all sync.WaitGroup
	start := func(r runner) { all.Go(func() { _ = r.Run(ctx) }) } // Run returns only ctx.Err()
	if err := f.startAll(start); err != nil {
		return err
	}
	<-ctx.Done()
	f.mu.Lock()
	f.start = func(r runner) { _ = r.Run(ctx) } // ctx has ended, so Run only closes the informer
	f.mu.Unlock()
	all.Wait()
	return ctx.Err()
}

func (f *Factory) startAll(start func(runner)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.start != nil {
		return &listwatch.Error{
			Code: listwatch.Invalid, Op: "run a factory", Message: "Run was already called; create another Factory",
		}
	}
	f.start = start
	for _, r := range f.informers {
		start(r)
	}
	return nil
}

// WaitForSync blocks until every informer that exists now has synced; see
// [Informer.WaitForSync].
func (f *Factory) WaitForSync(ctx context.Context) error {
	f.mu.Lock()
	all := make([]runner, 0, len(f.informers))
	for _, r := range f.informers {
		all = append(all, r)
	}
	f.mu.Unlock()
	for _, r := range all {
		if err := r.WaitForSync(ctx); err != nil {
			return err
		}
	}
	return nil
}
