package readcmd

import (
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/savedcopy"
)

// A position is the state that a follower has printed.
type position struct {
	// has is the state. Its ID is empty if no Synced event was received, as with
	// --resource-version. Other events up to newest may have been printed as well.
	has    listwatch.State
	newest listwatch.Version
}

// saveInterval is the minimum time between two saves of a position, except at the end.
const saveInterval = time.Minute

// A positionFile keeps a position for the next run. It holds no objects. A nil positionFile does
// nothing.
type positionFile struct {
	path      string
	selection string // what is watched
	saved     position
	savedAt   time.Time
}

func (p *positionFile) header() savedcopy.Header {
	return savedcopy.Header{Selection: p.selection, Representation: "watch", Objects: 1}
}

// load returns the position in the file. It is zero if there is no file.
func (p *positionFile) load() (at position, err error) {
	if p == nil {
		return at, nil
	}
	h, err := savedcopy.Read(p.path, p.header(), func(line []byte) error { return json.Unmarshal(line, &at.newest) })
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return position{}, err
	}
	at.has = h.State
	p.saved, p.savedAt = at, time.Now()
	return at, nil
}

// save writes the file if at is new. Unless isLast is true, it does so once per saveInterval.
func (p *positionFile) save(at position, isLast bool) error {
	if p == nil || at.has.ID == "" || at == p.saved || !isLast && time.Since(p.savedAt) < saveInterval {
		return nil
	}
	p.saved, p.savedAt = at, time.Now()
	h := p.header()
	h.State = at.has
	lines := slices.Values([]listwatch.Version{at.newest})
	return savedcopy.Write(p.path, h, savedcopy.Lines(lines, func(v listwatch.Version) ([]byte, error) {
		return strconv.AppendUint(nil, uint64(v), 10), nil
	}))
}
