package savedcopy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/atomicfile"
	"github.com/listwatch/listwatch/persist"
)

// A Keeper reads and saves the copy of one collection.
type Keeper struct {
	// Immutable after construction.
	persist.File
	Source listwatch.Source    // the collection
	Trace  func(persist.Saved) // may be nil

	saved listwatch.Version // the version of the copy, or of the newest failed one; owned by Save
}

// Read is like the function Read. It traces an error unless there is no copy.
func (k *Keeper) Read(want Header, each func(line []byte) error) (Header, error) {
	_ = atomicfile.RemoveUnfinished(k.Path) // they only take space
	h, err := Read(k.Path, want, each)
	if err == nil {
		k.saved = h.State.Version
	} else if !errors.Is(err, fs.ErrNotExist) {
		k.Reject(err)
	}
	return h, err
}

// Encoding returns the encoding of the objects, and its name for [Header.Representation]. Both are
// empty for JSON.
func (k *Keeper) Encoding() (e listwatch.Encoding, name string) {
	if e = listwatch.Describe(k.Source).Encoding; e != nil {
		name = fmt.Sprintf(" %T", e)
	}
	return e, name
}

// Reject reports that the copy cannot be used because of err.
func (k *Keeper) Reject(err error) {
	k.saved = 0
	k.trace(persist.Saved{Err: err})
}

// Run calls save once in each interval until ctx ends.
func (k *Keeper) Run(ctx context.Context, save func()) {
	if k.Interval < 0 {
		return
	}
	tick := time.NewTicker(cmp.Or(k.Interval, time.Minute))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			save()
		case <-ctx.Done():
			return
		}
	}
}

// IsNew reports whether s is a state that Save has not saved. Its ID is empty if it is not known.
func (k *Keeper) IsNew(s listwatch.State) bool {
	return s.ID != "" && s.Version != 0 && s.Version != k.saved
}

// Save writes the copy of a new state. allowed reports, after the copy was written, whether its
// owner may still read the collection.
func (k *Keeper) Save(h Header, lines iter.Seq2[[]byte, error], allowed func() bool) {
	k.saved = h.State.Version // also after an error: try again when there is something new
	if listwatch.Describe(k.Source).Kind == "Secret" && !k.Secrets {
		k.trace(persist.Saved{Err: errors.Join(errSecrets, Remove(k.Path))})
		return
	}
	begun := time.Now()
	err := Write(k.Path, h, lines)
	if !allowed() {
		err = errors.Join(err, Remove(k.Path))
	}
	k.trace(persist.Saved{Objects: h.Objects, Version: h.State.Version, Took: time.Since(begun), Err: err})
}

// Lost reports whether err means that the owner of the copy may not read the collection. If so,
// Lost removes the copy.
func (k *Keeper) Lost(err error) bool {
	code := listwatch.CodeOf(err)
	if code != listwatch.Unauthorized && code != listwatch.Forbidden {
		return false
	}
	k.trace(persist.Saved{Err: Remove(k.Path)})
	return true
}

func (k *Keeper) trace(s persist.Saved) {
	if k.Trace != nil {
		k.Trace(s)
	}
}

var errSecrets = &listwatch.Error{
	Code: listwatch.Invalid, Op: "save a copy", Message: "Secrets are not saved unless Persist.Secrets is true",
}
