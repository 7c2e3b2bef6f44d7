package relay

import (
	"context"
	"fmt"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/internal/reflector"
)

// A sink makes a log of what comes from upstream.
type sink struct {
	// Immutable after construction.
	relay *Relay
	ctx   context.Context // of the relay

	// Owned by the follower.
	state   []*listwatch.Object // of the state that is on its way
	changes []history.Record    // scratch
	newest  listwatch.Version   // of the newest event that was appended
	torn    bool                // the state must be had anew, whatever its version
}

var _ reflector.Sink = (*sink)(nil)

// Begin implements [reflector.Sink].
func (s *sink) Begin() { s.state = nil }

// Take implements [reflector.Sink]. What is of one version goes into the log at once.
func (s *sink) Take(events []listwatch.Event) error {
	s.relay.progress.heard()
	for len(events) > 0 {
		n := 1
		var err error
		switch e := events[0]; {
		case e.Initial:
			s.state = append(s.state, s.object(e.Object))
		case e.Type == listwatch.Synced:
			s.synced(e)
		case e.Type == listwatch.Bookmark:
			err = s.bookmark(e)
		default:
			for n < len(events) && isChange(events[n]) && events[n].Version == e.Version {
				n++
			}
			err = s.append(events[:n])
		}
		if err != nil {
			s.relay.upstream.goShallow()
			return err
		}
		events = events[n:]
	}
	return nil
}

func isChange(e listwatch.Event) bool {
	return e.Type != listwatch.Bookmark && e.Type != listwatch.Synced && !e.Initial
}

// object returns o with the fields that can be selected by. Its bytes are shared.
func (s *sink) object(o *listwatch.Object) *listwatch.Object {
	if s.relay.options.Fields == nil {
		return o
	}
	fields := s.relay.fields.ReadFields(o.Data)
	return &listwatch.Object{Key: o.Key, Version: o.Version, Labels: o.Labels, Fields: fields, Data: o.Data}
}

// synced puts the state that has come in place.
func (s *sink) synced(e listwatch.Event) {
	r, v := s.relay, e.Version
	d := r.describe(epochOf(e, r.upstream.Source))
	goal := r.upstream.takeGoal()
	g := r.latest.filled()
	torn := s.torn
	s.torn = false
	switch {
	case g == nil || g.description.Epoch != d.Epoch || v < s.newest || torn && v < g.head.Version():
		s.begin(g, d, v, goal)
	case v > g.head.Version() || torn:
		g.reset(s.state, v)
		if shown, _, _ := r.latest.get(); shown == g {
			r.options.Trace.began(v, len(s.state))
		}
	default:
		// The log is at the version of the state, or beyond it without an event in between: nobody has missed anything.
	}
	r.upstream.begun(d.Epoch)
	s.newest, s.state = v, nil
}

// begin makes a generation of the state; old is the one before.
func (s *sink) begin(old *generation, d listwatch.Description, v listwatch.Version, to goal) {
	r := s.relay
	g := newGeneration(r.options, d, v)
	g.reset(s.state, v)
	r.progress.forget()
	if !to.asked.IsZero() {
		r.progress.sampled(to.asked, max(to.version, v), g)
	}
	// In this order, so that who finds the epoch of the upstream to be that of the state finds this generation too, and not the one before.
	r.latest.begin(g)
	r.upstream.begun(d.Epoch)
	var why error
	if old != nil {
		if why = wentBack(old.head.Version(), v); old.description.Epoch != d.Epoch {
			why = anotherEpoch(old.description.Epoch, d.Epoch)
		}
	}
	show := func() {
		if r.latest.show(g, why) {
			now := g.log.Stats()
			r.options.Trace.began(now.Version, now.Objects)
		}
	}
	if to.version <= v {
		show()
		return
	}
	r.tasks.start(func() {
		s.awaitPast(g, to.version)
		show()
	})
}

// awaitPast returns when the past has been read up to the version it leads to, so that nobody is shown a state that the relay knows to be
// old; or when it doesn't get on any more: then nothing better is to be had.
func (s *sink) awaitPast(g *generation, to listwatch.Version) {
	for {
		before := g.head.Version()
		s.relay.prober.want(g, to)
		if err := g.head.Wait(s.ctx, to); err == nil || s.ctx.Err() != nil || g.head.Version() == before {
			return
		}
	}
}

// bookmark moves the head on, and with it every silent watcher.
func (s *sink) bookmark(e listwatch.Event) error {
	g := s.relay.latest.filled()
	if epoch := annotatedEpoch(e); epoch != "" && epoch != g.description.Epoch && g.description.Epoch != "" {
		return anotherEpoch(g.description.Epoch, epoch)
	}
	g.head.Advance(e.Version)
	return nil
}

// append adds the changes of one version.
func (s *sink) append(events []listwatch.Event) error {
	g, v := s.relay.latest.filled(), events[0].Version
	if v <= max(s.newest, g.head.Version()) {
		// Others of this version have been shown without these, or the head has told watchers that they had all.
		s.torn = true
		g.torn.Store(uint64(v))
		return corrupt(fmt.Sprintf("changes of version %d came when the relay was beyond it", v))
	}
	s.changes = s.changes[:0]
	for _, e := range events {
		c, err := s.change(g, e)
		if err != nil {
			return err
		}
		s.changes = append(s.changes, c)
	}
	g.log.Append(s.changes...)
	g.head.Advance(v)
	s.newest = v
	clear(s.changes)
	return nil
}

// change returns what e did. An event that does not fit to the state means that one before it is missing.
func (s *sink) change(g *generation, e listwatch.Event) (history.Record, error) {
	c := history.Record{Version: e.Version, Old: g.log.Get(e.Object.Key)}
	if e.Type != listwatch.Deleted {
		c.New = s.object(e.Object)
	}
	if (e.Type == listwatch.Added) != (c.Old == nil) {
		return c, corrupt(fmt.Sprintf("%s %s at version %d does not fit to the state: an event must have been lost", e.Type, e.Object.Key, e.Version))
	}
	return c, nil
}

// epochOf returns the epoch that the bookmark e bears, or else the one that source describes.
func epochOf(e listwatch.Event, source listwatch.Source) string {
	if epoch := annotatedEpoch(e); epoch != "" {
		return epoch
	}
	return listwatch.Describe(source).Epoch
}

func annotatedEpoch(e listwatch.Event) string {
	epoch, err := rawjson.String(rawjson.Lookup(e.Object.Data, "metadata", "annotations", listwatch.AnnotationEpoch))
	if err != nil {
		return ""
	}
	return epoch
}
