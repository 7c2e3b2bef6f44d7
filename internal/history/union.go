package history

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/revision"
)

// A Part is a part of a union: the objects of Log that Selection selects.
type Part struct {
	Log *Log
	listwatch.Selection
}

// A Union is the Source of several logs that share a Revision. Any version of the Revision is a
// resume point of the Union.
type Union struct {
	// Immutable after construction.
	parts    []Part
	revision *revision.Revision
	epoch    string
	stateID  string // see [listwatch.State]
}

var _ listwatch.Source = (*Union)(nil)

// NewUnion returns the union of parts. epoch is its epoch; see [listwatch.Description]. If there
// are no parts, if their logs do not share a Revision, or if two parts have the same log, the error
// has code Invalid.
func NewUnion(epoch string, parts []Part) (*Union, error) {
	if len(parts) == 0 {
		return nil, invalidUnion("a union needs at least one collection")
	}
	u := &Union{parts: slices.Clone(parts), revision: parts[0].Log.revision, epoch: epoch}
	seen, texts := make(map[[2]string]bool, len(parts)), make([]string, 0, 3*len(parts))
	for _, p := range u.parts {
		d := p.Log.description
		if err := d.RequireJSON("a union"); err != nil {
			return nil, err
		}
		switch {
		case p.Log.revision != u.revision:
			return nil, invalidUnion("%s %s: is in another database than %s, and the collections of a union must be in one",
				d.APIVersion, d.Kind, parts[0].Log.description.Kind)
		case seen[[2]string{d.APIVersion, d.Kind}]:
			return nil, invalidUnion("%s %s: a union has one selection of each kind", d.APIVersion, d.Kind)
		}
		seen[[2]string{d.APIVersion, d.Kind}] = true
		texts = append(texts, d.APIVersion, d.Kind, p.Key())
	}
	u.stateID = stateID(epoch, texts...)
	return u, nil
}

func invalidUnion(format string, args ...any) error {
	return &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf(format, args...)}
}

// Describe implements [listwatch.Describer]. The objects of a union have several kinds.
func (u *Union) Describe() listwatch.Description {
	return listwatch.Description{APIVersion: "v1", Kind: "List", Epoch: u.epoch}
}

// types describes the objects of the parts.
func (u *Union) types() []listwatch.Description {
	all := make([]listwatch.Description, len(u.parts))
	for i, p := range u.parts {
		all[i] = p.Log.description
	}
	return all
}

// List implements [listwatch.Source]. It returns the objects of all parts at one version, in the
// order of the parts, and then of the keys, in one page. It ignores the selection of q.
func (u *Union) List(ctx context.Context, q listwatch.Query) (page listwatch.Page, err error) {
	if q.Continue != "" {
		return page, invalidUnion("a list of several collections has only one page, and no continue token")
	}
	err = u.start(ctx, q, q.Match == listwatch.MatchExact, func(v listwatch.Version) error {
		page = listwatch.Page{Version: v}
		for _, p := range u.parts {
			part, err := p.Log.List(ctx, listwatch.Query{
				Selection: p.Selection, Start: listwatch.StartAt, Version: v, Match: listwatch.MatchExact,
			})
			if err != nil {
				return err
			}
			page.Items = append(page.Items, part.Items...)
		}
		return nil
	})
	if err != nil {
		return listwatch.Page{}, err
	}
	return page, nil
}

// Watch implements [listwatch.Source]. The Watcher is like that of [Log.Watch]. Watch waits up to 3
// seconds for a future version. It ignores the selection of q.
func (u *Union) Watch(ctx context.Context, q listwatch.Query) (w listwatch.Watcher, err error) {
	err = u.start(ctx, q, !q.SendsInitialEvents(), func(v listwatch.Version) (err error) {
		w, err = u.open(v, q)
		return err
	})
	return w, err
}

// start calls f with the version at which q starts: the newest version or, if exact is true and q
// has a version, that version. If retention drops the history of a part meanwhile, so that f
// returns an error of code Expired for the newest version, start calls f again with a newer one.
func (u *Union) start(ctx context.Context, q listwatch.Query, exact bool, f func(listwatch.Version) error) error {
	if q.Start == listwatch.StartAt {
		if err := u.revision.Wait(ctx, q.Version); err != nil {
			return err
		}
		if exact {
			return f(q.Version)
		}
	}
	for try := 0; ; try++ {
		err := f(u.revision.Version())
		if !errors.Is(err, listwatch.Expired) || try == maxStarts {
			return err
		}
		for _, p := range u.parts {
			if err := u.revision.Wait(ctx, p.Log.Stats().Oldest); err != nil {
				return err
			}
		}
	}
}

// maxStarts limits the attempts to find a version that all parts retain. A log keeps its newest
// record, so more than one is needed only while a write is being published.
const maxStarts = 100

// open returns a Watcher that starts at v.
func (u *Union) open(v listwatch.Version, q listwatch.Query) (listwatch.Watcher, error) {
	pass := newPass(q)
	m := newMerged(u, len(u.parts))
	c := &Cursor{last: m, stage: m}
	for i, p := range u.parts {
		cursor, err := p.Log.open(listwatch.Query{
			Selection: p.Selection, Start: listwatch.StartAt, Version: v, InitialEvents: listwatch.InitialEventsNo,
		}, pass)
		if err != nil {
			_ = c.Close() // always nil
			return nil, err
		}
		m.parts[i].cursor = cursor
	}
	if q.SendsInitialEvents() {
		var err error
		if c.stage, err = u.initial(m, v, q); err != nil {
			_ = c.Close() // always nil
			return nil, err
		}
	}
	return pace(c, pass, u.revision), nil
}

// initial returns the first stage of the initial events at v, which m follows. They are a
// difference only if each part can send one.
func (u *Union) initial(m *merged, v listwatch.Version, q listwatch.Query) (stage, error) {
	s := start{atVersion: q.Start == listwatch.StartAt, version: q.Version}
	if q.Bookmarks && q.Since.ID == u.stateID {
		s.since = q.Since.Version
	}
	parts := make([]*snapshot, len(u.parts))
	since := s.since
	for i, p := range m.parts {
		var err error
		if parts[i], err = p.snapshot(v, &s); err != nil {
			return nil, err
		}
		since = min(since, parts[i].since) // zero or s.since
	}
	var next stage = m
	if q.Bookmarks {
		at := listwatch.State{Version: v, ID: u.stateID}
		next = &synced{of: u.Describe(), parts: u.types(), at: at, since: since, next: m}
	}
	for _, p := range slices.Backward(parts) {
		p.next, p.since = next, since
		next = p
	}
	return next, nil
}
