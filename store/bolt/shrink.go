package bolt

import (
	"errors"
	"io/fs"
	"os"

	"go.etcd.io/bbolt"
)

// shrinkBatch is how many bytes one transaction copies.
const shrinkBatch = 4 << 20

// Shrink rewrites the file without its free pages, which are otherwise used again but never given back. Writes wait meanwhile; reads don't.
// It needs as much space beside the file as the new one takes. Where it fails the file is as it was.
func (db *DB) Shrink() error {
	db.file.Lock()
	defer db.file.Unlock()
	if db.bolt == nil {
		return errClosed(db.path)
	}
	if db.broken != nil {
		return db.broken
	}
	if err := db.shrink(); err != nil {
		return writeError(db.path, err)
	}
	return nil
}

// shrinkIfWorthIt rewrites the file where most of it is free. That this can't be done, for want of space or of rights on the directory, is
// no reason not to open it; damage is.
func (db *DB) shrinkIfWorthIt() error {
	limit := db.options.ShrinkThreshold
	if limit < 0 {
		return nil
	}
	free := int64(db.bolt.Stats().FreePageN) * int64(db.bolt.Info().PageSize)
	info, err := os.Stat(db.at)
	if err != nil || free <= limit || free <= info.Size()/2 {
		return err
	}
	err = db.shrink()
	if _, ok := errors.AsType[damaged](err); ok {
		return err
	}
	return nil
}

// shrink puts a copy in the place of the file. Both are locked then, so that nobody can have the old one by its name.
func (db *DB) shrink() error {
	next, temporary, err := openBeside(db.at)
	if err != nil {
		return err
	}
	next.NoSync = true // until all is there
	err = guarded(func() error { return bbolt.Compact(next.DB, db.bolt.DB, shrinkBatch) })
	next.NoSync = false
	if err == nil {
		err = next.Sync()
	}
	if err == nil {
		err = db.keepMode(temporary)
	}
	if err == nil {
		err = os.Rename(temporary, db.at)
	}
	if err != nil {
		rmErr := os.Remove(temporary)
		if errors.Is(rmErr, fs.ErrNotExist) {
			rmErr = nil
		}
		return errors.Join(err, next.Close(), rmErr)
	}
	err = db.bolt.Close()
	db.bolt = next
	return errors.Join(err, syncDirectory(db.at))
}

// keepMode gives the new file the permissions of the old one, which must still be in its place: a backup that somebody put there is not to be
// replaced.
func (db *DB) keepMode(name string) error {
	have, err := db.bolt.os.Stat()
	if err != nil {
		return err
	}
	info, err := os.Stat(db.at)
	if err != nil {
		return err
	}
	if !os.SameFile(have, info) {
		return errors.New("by now there is another file of that name")
	}
	return os.Chmod(name, info.Mode().Perm())
}
