package bolt

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"go.etcd.io/bbolt"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/atomicfile"
	"github.com/listwatch/listwatch/store"
)

// resolve returns path as an absolute path without symbolic links, so that Shrink replaces
// the file and not a link to it.
func resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	resolved, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return resolved, err
	}
	if _, err := os.Lstat(path); err == nil {
		return "", &listwatch.Error{Code: listwatch.Invalid, Message: "it is a link to a file that does not exist"}
	}
	return path, nil
}

// openFile opens the database at path for writing, and creates it if there is no file. It
// does not change a file that is not a database of this package.
func openFile(path string, o Options) (*file, error) {
	deadline := time.Now().Add(o.LockTimeout)
	for {
		f, err := openOrCreate(path, o, deadline)
		switch {
		case errors.Is(err, fs.ErrExist):
			continue // another process has just created the file
		case err != nil || f != nil:
			return f, err
		}
	}
}

// openOrCreate makes one attempt for openFile. It returns nil if another process has replaced the
// file, as [DB.Shrink] does, while this process waited for the lock.
func openOrCreate(path string, o Options, deadline time.Time) (*file, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && o.RestoredFromBackup:
		return nil, &listwatch.Error{Code: listwatch.Invalid, Message: "the restored file does not exist"}
	case errors.Is(err, fs.ErrNotExist):
		return create(path, o)
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, &listwatch.Error{Code: listwatch.Invalid, Message: "it is not a regular file"}
	case info.Size() == 0:
		// A database is never empty. bbolt would initialize the file, and the loss of its
		// content would go unnoticed.
		return nil, &listwatch.Error{
			Code:    listwatch.Invalid,
			Message: "the file is empty; if its data is not needed, remove it to start with a new database",
		}
	}
	if err := inspect(path, time.Until(deadline)); err != nil {
		return nil, err
	}
	f, current, err := openBolt(path, false, time.Until(deadline))
	switch {
	case err != nil:
		return nil, err
	case !current:
		return nil, f.Close()
	}
	// A process that was killed may have left a transaction that is only in the kernel's
	// cache. It must be on disk before readers see it.
	if err := f.Sync(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// inspect checks, without writing, that the file at path is a complete database of this
// package.
func inspect(path string, lockTimeout time.Duration) error {
	f, _, err := openBolt(path, true, lockTimeout)
	if err != nil {
		return markUnreadable(err)
	}
	err = catchPanic(func() error {
		return f.View(func(tx *bbolt.Tx) error {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			if info.Size() < tx.Size() {
				return &listwatch.Error{
					Code:    listwatch.Corrupt,
					Message: fmt.Sprintf("the file is truncated: it has %d of %d bytes", info.Size(), tx.Size()),
				}
			}
			_, err = readHeader(tx)
			return err
		})
	})
	return errors.Join(err, f.Close())
}

// create creates a database at path. The file appears only when it is complete. If there is a
// file already, the error is fs.ErrExist.
func create(path string, o Options) (*file, error) {
	f, temporary, err := openTemporary(path)
	if err != nil {
		return nil, err
	}
	err = initialize(f, o)
	if err == nil {
		if err = os.Link(temporary, path); err != nil && !errors.Is(err, fs.ErrExist) {
			err = os.Rename(temporary, path) // the file system does not support hard links
		}
	}
	if removeErr := os.Remove(temporary); err == nil && !errors.Is(removeErr, fs.ErrNotExist) {
		err = removeErr
	}
	if err == nil {
		err = atomicfile.SyncDirectory(path)
	}
	if err != nil {
		_ = f.Close() // the first error is more useful
		return nil, err
	}
	return f, nil
}

// initialize writes the header of an empty database.
func initialize(f *file, o Options) error {
	stored, err := o.Transformer.ToStorage(store.Location{}, []byte(knownText))
	if err != nil {
		return fmt.Errorf("transformer: %w", err)
	}
	last := keyOf(o.StartVersion)
	values := []struct{ key, value []byte }{
		{formatKey, strconv.AppendInt(nil, formatNumber, 10)},
		{epochKey, []byte(rand.Text())},
		{lastKey, last[:]},
		{knownTextKey, stored},
	}
	return catchPanic(func() error {
		return f.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucket(headerBucket)
			if err != nil {
				return err
			}
			for _, v := range values {
				if err := b.Put(v.key, v.value); err != nil {
					return err
				}
			}
			return nil
		})
	})
}
