package informer

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	"github.com/listwatch/listwatch"
)

// A Factory shares informers: who asks for the same type of the same selection of the same source gets the same one, so that a program with
// many parts watches a collection once. The zero Factory is ready. It is safe for concurrent use.
type Factory struct {
	mu sync.Mutex
	// Guarded by mu.
	informers map[shareKey]runner
	start     func(runner) // starts an informer; nil: Run was not called
}

// A runner is an Informer of any type.
type runner interface {
	Run(ctx context.Context) error
	WaitForSync(ctx context.Context) error
}

// A shareKey is what informers must have in common to be one.
type shareKey struct {
	source    listwatch.Source
	selection string
	value     reflect.Type
}

// Shared returns the factory's informer of T for a selection of source. The first call makes it; configure, which may be nil, is called then
// alone, to set its other fields; it must not use the factory. An informer that comes while the factory runs is started at once.
//
// Sources are the same if they are equal (==), so they are best pointers; a source that can't be compared is an error of code Invalid.
func Shared[T any](f *Factory, source listwatch.Source, q listwatch.Query, configure func(*Informer[T])) (*Informer[T], error) {
	if source == nil || !reflect.ValueOf(source).Comparable() {
		return nil, &listwatch.Error{
			Code: listwatch.Invalid, Op: "share an informer", Message: fmt.Sprintf("a source of type %T can't be compared with others; want a pointer", source),
		}
	}
	key := shareKey{source, selectionKey(q), reflect.TypeFor[T]()}
	f.mu.Lock()
	defer f.mu.Unlock()
	if r, ok := f.informers[key]; ok {
		return r.(*Informer[T]), nil
	}
	i := &Informer[T]{Source: source, Query: q}
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

// selectionOf spells what of q an informer looks at.
func selectionKey(q listwatch.Query) string {
	return fmt.Sprintf("%q %q %q %q", q.Namespace, q.Name, q.Labels.String(), q.Fields.String())
}

// Run runs all the informers that there are and that will be, until ctx ends, and returns ctx.Err() once all of them have returned. A Factory
// runs once.
func (f *Factory) Run(ctx context.Context) error {
	var all sync.WaitGroup
	start := func(r runner) { all.Go(func() { _ = r.Run(ctx) }) } // who made an informer without a Source was told
	if err := f.startAll(start); err != nil {
		return err
	}
	<-ctx.Done()
	f.mu.Lock()
	f.start = func(r runner) { _ = r.Run(ctx) } // it ends at once, as the others have: nobody waits for it in vain
	f.mu.Unlock()
	all.Wait()
	return ctx.Err()
}

func (f *Factory) startAll(start func(runner)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.start != nil {
		return &listwatch.Error{Code: listwatch.Invalid, Op: "run a factory", Message: "it runs, or has run: make another one"}
	}
	f.start = start
	for _, r := range f.informers {
		start(r)
	}
	return nil
}

// WaitForSync waits until every informer that there is has synced; see [Informer.WaitForSync].
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
