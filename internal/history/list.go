package history

import (
	"context"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/budget"
)

// List implements [listwatch.Source]. It waits up to 3 seconds for a future version.
func (l *Log) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	if err := l.description.Check(&q.Selection); err != nil {
		return listwatch.Page{}, err
	}
	if q.Start == listwatch.StartAt {
		if err := l.revision.Wait(ctx, q.Version); err != nil {
			return listwatch.Page{}, err
		}
	}
	var from ContinueToken
	if q.Continue != "" {
		var err error
		if from, err = ParseContinueToken(q.Continue); err != nil {
			return listwatch.Page{}, err
		}
	}
	snap, version, err := l.snapshotFor(q, from)
	if err != nil {
		return listwatch.Page{}, err
	}
	end, err := budget.BeginTurn(ctx, snap.Len()*scanCost)
	if err != nil {
		return listwatch.Page{}, err
	}
	defer end()
	return page(snap, version, q, from), nil
}

// scanCost is the size of the work to look at one object, as [budget.BeginTurn] counts it: 8,000
// objects take about a millisecond.
const scanCost = 8

// snapshotFor returns the state that q requests, and its version.
func (l *Log) snapshotFor(q listwatch.Query, from ContinueToken) (tree, listwatch.Version, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	want := from.Version
	if q.Start == listwatch.StartAt && q.Match == listwatch.MatchExact {
		want = q.Version
	}
	now := l.version()
	if want == 0 {
		return l.state.snapshot(), now, nil
	}
	if !l.records.canStart(want) || want > now {
		if q.Continue != "" {
			return nil, 0, continueExpired(from)
		}
		return nil, 0, listExpired()
	}
	return l.stateAt(want), want, nil
}

// page returns the page of snap that starts after the key in from. As in Kubernetes, a full page
// has a continue token if any object of the namespace follows, even if the object is not selected,
// because finding the next selected object could mean scanning the rest of the collection.
func page(snap tree, version listwatch.Version, q listwatch.Query, from ContinueToken) listwatch.Page {
	s := newSelection(q.Selection)
	p := listwatch.Page{Version: version}
	full := false
	s.scan(snap, from.Key, func(o *listwatch.Object) bool {
		if full = q.Limit > 0 && len(p.Items) == q.Limit; full {
			return false
		}
		if s.Matches(o) {
			p.Items = append(p.Items, s.Projection.Reduce(o))
		}
		return true
	})
	if full {
		last := p.Items[len(p.Items)-1].Key
		p.Remaining = remaining(snap, &s, from, last, len(p.Items))
		p.Continue = ContinueToken{
			Version: version, Key: last, Remaining: p.Remaining,
			Bytewise: s.Namespace != "" || isBytewise(snap, last.Namespace),
		}.Encode()
	}
	return p
}

// remaining returns the number of objects that follow a page or, as in Kubernetes, -1 if the
// selection has selectors. count is the number of objects in the page, and last is the key
// of the last object in the page.
func remaining(snap tree, s *selection, from ContinueToken, last listwatch.Key, count int) int {
	switch {
	case from.Remaining > 0:
		return from.Remaining - count
	case s.isSelective():
		return -1
	}
	end := snap.Len()
	if s.Namespace != "" {
		// No namespace sorts between s.Namespace and this one.
		end = snap.Rank(&listwatch.Object{Key: listwatch.Key{Namespace: s.Namespace + "\x00"}})
	}
	return end - snap.Rank(&listwatch.Object{Key: last}) - 1
}

// isBytewise reports whether etcd has the same objects before and after the namespace as snap has;
// see [ContinueToken.Bytewise].
func isBytewise(snap tree, namespace string) bool {
	has := func(from, to string) bool { // the namespaces from from, before to
		rank := func(namespace string) int {
			return snap.Rank(&listwatch.Object{Key: listwatch.Key{Namespace: namespace}})
		}
		return rank(from) != rank(to)
	}
	if has(namespace+"\x00", namespace+"/") {
		return false
	}
	for i := range len(namespace) {
		if prefix := namespace[:i]; prefix != "" && namespace[i] < '/' && has(prefix, prefix+"\x00") {
			return false
		}
	}
	return true
}
