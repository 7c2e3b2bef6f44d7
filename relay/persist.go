package relay

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/internal/reflector"
	"github.com/listwatch/listwatch/internal/savedcopy"
	"github.com/listwatch/listwatch/watchcache"
)

// A persister reads and writes the copy of a relay: the oldest state in the log, and the changes
// since. Without the changes, every client that resumes before the version of the copy would have
// to fetch the whole state. A nil persister does nothing.
//
// The copy ends at the newest version that certainly has all its changes. The relay resumes the
// watch of the upstream there, so watches of the relay see no gap unless the upstream no longer has
// the history.
type persister struct {
	savedcopy.Keeper // Save is called with saving held
	log              *logWriter
	saving           sync.Mutex
}

// newPersister returns nil if the relay keeps no copy.
func newPersister(l *logWriter) *persister {
	o := &l.relay.options
	if o.Persist.Path == "" {
		return nil
	}
	keeper := savedcopy.Keeper{File: o.Persist, Source: l.relay.upstream.origin, Trace: o.Trace.Saved}
	return &persister{Keeper: keeper, log: l}
}

// header describes the copies that p can use.
func (p *persister) header() savedcopy.Header {
	_, encoding := p.Encoding()
	h := savedcopy.Header{Representation: "relay " + p.Form + encoding}
	if remote, ok := p.Source.(*client.Remote); ok {
		h.Selection = remote.URL
	}
	if o := &p.log.relay.options; !o.Projection.Empty() {
		h.Selection += " " + o.Projection.String()
	}
	return h
}

// load makes the relay serve the state in the file, and returns where to resume the watch of the
// upstream. It returns the zero ResumePoint if there is no usable file.
func (p *persister) load() (at reflector.ResumePoint) {
	if p == nil {
		return at
	}
	var lines []*listwatch.Object
	h, err := p.Read(p.header(), func(line []byte) error {
		o, err := savedcopy.DecodeObject(line)
		lines = append(lines, o)
		return err
	})
	if err != nil {
		return at
	}
	l := p.log
	r := l.relay
	d := h.Description
	described := r.describe("")
	d.Fields, d.FieldRules, d.Encoding = described.Fields, described.FieldRules, described.Encoding
	ep := newEpochCache(r, d)
	state, past := replay(lines, h.Floor)
	if err := ep.Replace(state, h.State.Version, past...); err != nil {
		p.Reject(err)
		return at
	}
	l.mu.Lock()
	l.newest, l.complete, l.unconfirmed = h.State.Version, h.State, true
	l.mu.Unlock()
	r.epochs.fill(ep)
	r.upstream.loaded(d.Epoch)
	r.epochs.serve(ep, nil)
	r.options.Trace.Replaced(h.State.Version, len(state), "saved")
	return reflector.ResumePoint{Version: h.State.Version, ID: h.State.ID, Synced: true, Confirmed: true}
}

// replay applies the changes among lines to the objects at version floor. It returns the resulting
// state and the changes. A change without Data is a delete.
func replay(lines []*listwatch.Object, floor listwatch.Version) (state []*listwatch.Object, past []watchcache.Change) {
	byKey := make(map[listwatch.Key]*listwatch.Object, len(lines))
	past = append(past, watchcache.Change{Version: floor})
	for _, o := range lines {
		change := watchcache.Change{Version: o.Version, Key: o.Key, Object: o, Old: byKey[o.Key]}
		if byKey[o.Key] = o; o.Data == nil {
			change.Object = nil
			delete(byKey, o.Key)
		}
		if o.Version > floor {
			past = append(past, change)
		}
	}
	return slices.Collect(maps.Values(byKey)), past
}

// save writes the file, unless the state is not complete or has not advanced.
func (p *persister) save() {
	if p == nil {
		return
	}
	p.saving.Lock()
	defer p.saving.Unlock()
	ep, state := p.log.completeState()
	if !p.IsNew(state) {
		return
	}
	h := p.header()
	h.State, h.Description, h.Floor = state, ep.Describe(), ep.Stats().Oldest
	lines, err := readLog(ep, h.Floor, state.Version)
	if err != nil {
		return // the history has just been dropped: the next save includes what follows
	}
	h.Objects = len(lines)
	encode := func(o *listwatch.Object) ([]byte, error) {
		return savedcopy.EncodeObject(o, h.Description.Encoding)
	}
	p.Save(h, savedcopy.Lines(slices.Values(lines), encode), func() bool {
		_, state := p.log.completeState()
		return state.ID != ""
	})
}

// readLog returns the objects of ep at version from, and the changes up to version to.
func readLog(ep *epochCache, from, to listwatch.Version) (lines []*listwatch.Object, err error) {
	ctx := context.Background() // the log has these versions, so no call waits
	page, err := ep.List(ctx, listwatch.Query{Start: listwatch.StartAt, Version: from, Match: listwatch.MatchExact})
	if err != nil {
		return nil, err
	}
	lines = slices.Clone(page.Items)
	w, err := ep.Watch(ctx, listwatch.Query{
		Start: listwatch.StartAt, Version: from, InitialEvents: listwatch.InitialEventsNo,
	})
	if err != nil {
		return nil, err
	}
	defer w.Close()
	var events [64]listwatch.Event
	for {
		n, err := w.(listwatch.Poller).Poll(events[:])
		for _, e := range events[:n] {
			if e.Version > to {
				return lines, nil
			}
			o := &listwatch.Object{Key: e.Object.Key, Version: e.Version}
			if e.Type != listwatch.Deleted {
				o = e.Object
			}
			lines = append(lines, o)
		}
		if n == 0 || err != nil {
			return lines, err
		}
	}
}

// lost removes the file if err means that the relay may not read the collection.
func (p *persister) lost(err error) {
	if p == nil || !p.Lost(err) {
		return
	}
	p.log.mu.Lock()
	defer p.log.mu.Unlock()
	if !p.log.unconfirmed {
		p.log.complete.ID = ""
	}
}

// completeState returns the epoch that readers use, and the newest state of it that is complete.
// The ID of the state is empty if there is no such state.
func (l *logWriter) completeState() (*epochCache, listwatch.State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ep, _, _ := l.relay.epochs.get()
	if ep == nil || ep != l.relay.epochs.filling() || l.incomplete || l.unconfirmed {
		return ep, listwatch.State{}
	}
	return ep, l.complete
}
