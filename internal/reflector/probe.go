package reflector

import (
	"cmp"
	"context"
	"io"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// ProbeTimeout is the timeout of the watches of a probe. Servers send a bookmark two seconds before
// the timeout, as kube-apiserver does.
const ProbeTimeout = 3 * time.Second

// ProbeSource returns the Source to [Probe] for s. Its watches end or send a bookmark within about
// a second if s is a client.Remote. Otherwise it is s.
func ProbeSource(s listwatch.Source) (source listwatch.Source, isRemote bool) {
	if remote, ok := s.(connector); ok {
		if c, ok := remote.Connect(ProbeTimeout).(connections); ok && c.Unwrap() == s {
			return c, true
		}
	}
	return s, false
}

// A Progress is the result of a [Probe]. No event of the selection has a version that is greater
// than Seen but at most Version.
type Progress struct {
	Seen, Version listwatch.Version
	// Epoch is the epoch of these versions, or empty if it is not known.
	Epoch string
}

// Probe opens a second, short watch of s at version from, and returns the version
// that it reaches. A follower that has received every event up to Seen has received every event up
// to Version, although no event of the selection has that version. So a follower can reach the
// version of a write that concerns another selection or another collection of the database.
func Probe(
	ctx context.Context, source listwatch.Source, s listwatch.Selection, from listwatch.Version,
) (Progress, error) {
	p := Progress{Seen: from}
	w, err := source.Watch(ctx, listwatch.Query{
		Selection: s, Start: listwatch.StartAt, Version: from,
		InitialEvents: listwatch.InitialEventsNo, Bookmarks: true,
	})
	if err != nil {
		return p, err
	}
	defer func() { _ = w.Close() }()
	if poller, ok := w.(listwatch.Poller); ok {
		return p.poll(poller, source)
	}
	for e, err := range listwatch.All(ctx, w) {
		switch {
		case err != nil:
			return p, err
		case e.Type == listwatch.Bookmark:
			p.Version, p.Epoch = e.Version, EpochOf(e)
			return p, nil
		}
		p.Seen = e.Version
	}
	return p, cmp.Or(ctx.Err(), io.EOF) // the server has ended the watch
}

// poll returns the progress of a Poller, which knows its position.
func (p Progress) poll(w listwatch.Poller, source listwatch.Source) (Progress, error) {
	var events [batchSize]listwatch.Event
	for {
		n, err := w.Poll(events[:])
		if err != nil {
			return p, err
		}
		if n == 0 {
			break
		}
		p.Seen = events[n-1].Version
	}
	p.Version, p.Epoch = max(w.Progress().Version, p.Seen), listwatch.Describe(source).Epoch
	return p, nil
}

// EpochOf returns the epoch in the annotation of a bookmark, or the empty string if it has none.
func EpochOf(bookmark listwatch.Event) string {
	raw := rawjson.Lookup(bookmark.Object.Data, "metadata", "annotations", listwatch.AnnotationEpoch)
	epoch, err := rawjson.String(raw)
	if err != nil {
		return ""
	}
	return epoch
}
