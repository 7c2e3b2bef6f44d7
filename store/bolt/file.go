package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/listwatch/listwatch"
)

// errUnreadable is what bbolt can't make anything of.
var errUnreadable = errors.New("bbolt can't read it")

// A file is an open database of bbolt.
type file struct {
	*bbolt.DB
	os *os.File // closed by DB.Close
}

// abandon lets go of a file that bbolt has panicked about: it may hold locks of its own for ever, on which Close would wait. The mapping of
// the file into memory is left to the end of the process.
func (f *file) abandon() error { return errors.Join(unlock(f.os), f.os.Close()) }

// openBolt opens the file at path with bbolt, and tells whether path still names the file that is locked then.
func openBolt(path string, readOnly bool, wait time.Duration) (db *file, named bool, err error) {
	db = new(file)
	options := &bbolt.Options{
		ReadOnly: readOnly,
		Timeout:  max(wait, 1), // zero would be for ever
		// The list of free pages is kept in the file: to find them by reading all of it would take long, and where a page is damaged bbolt
		// panics on a goroutine of its own.
		NoFreelistSync: false, FreelistType: bbolt.FreelistMapType,
		OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
			var err error
			db.os, err = os.OpenFile(name, flag, mode)
			return db.os, err
		},
	}
	err = guarded(func() (err error) {
		db.DB, err = bbolt.Open(path, 0o600, options)
		return err
	})
	if err != nil {
		if db.os != nil {
			_ = db.abandon() // where bbolt panicked it is still open, and locked
		}
		return nil, false, err
	}
	locked, err := db.os.Stat()
	if err != nil {
		return nil, false, errors.Join(err, db.Close())
	}
	at, err := os.Stat(path)
	return db, err == nil && os.SameFile(locked, at), nil
}

// locate returns the name of the file at path that holds from every directory: absolute, and its own where path is a link to it. To shrink
// a file by the name of a link would leave two of them.
func locate(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	own, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return own, err
	}
	if _, err := os.Lstat(path); err == nil {
		return "", &listwatch.Error{Code: listwatch.Invalid, Message: "it is a link to a file that is not there"}
	}
	return path, nil
}

// open opens the database at path for writing, and makes it where there is none. A file that is not ours is not changed.
func open(path string, o Options) (*file, error) {
	deadline := time.Now().Add(o.LockTimeout)
	for {
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && o.RestoredFromBackup:
			return nil, &listwatch.Error{Code: listwatch.Invalid, Message: "there is no such file that could be a restored copy"}
		case errors.Is(err, fs.ErrNotExist):
			db, err := create(path, o)
			if errors.Is(err, fs.ErrExist) {
				continue // somebody else was quicker
			}
			return db, err
		case err != nil:
			return nil, err
		case !info.Mode().IsRegular():
			return nil, &listwatch.Error{Code: listwatch.Invalid, Message: "it is no regular file"}
		case info.Size() == 0:
			// Ours are never empty. bbolt would make a database of it, and nobody would learn that there has been another.
			return nil, &listwatch.Error{Code: listwatch.Invalid, Message: "the file is empty; where nothing is missed, remove it to begin anew"}
		}
		if err := inspect(path, time.Until(deadline)); err != nil {
			return nil, err
		}
		db, named, err := openBolt(path, false, time.Until(deadline))
		if err != nil {
			return nil, err
		}
		if named {
			// A process that was killed may have left a transaction that only the kernel has: it must not be shown before it is on disk.
			if err := db.Sync(); err != nil {
				return nil, errors.Join(err, db.Close())
			}
			return db, nil
		}
		// While this process waited for the lock, another one put a shrunken file in the place of this.
		if err := db.Close(); err != nil {
			return nil, err
		}
	}
}

// inspect reads from the file at path, without writing to it, whether it is one of ours and complete.
func inspect(path string, wait time.Duration) error {
	db, _, err := openBolt(path, true, wait)
	if err != nil {
		return unreadable(err)
	}
	err = guarded(func() error {
		return db.View(func(tx *bbolt.Tx) error {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			if info.Size() < tx.Size() {
				return &listwatch.Error{Code: listwatch.Corrupt, Message: fmt.Sprintf("the file is cut off: it has %d bytes of %d", info.Size(), tx.Size())}
			}
			_, err = readHeader(tx)
			return err
		})
	})
	return errors.Join(err, db.Close())
}

// unreadable adds errUnreadable to an error of bbolt about the content of a file. Most of them have no name, so what others say is left
// out: those of the system, of waiting, and of damage.
func unreadable(err error) error {
	_, system := errors.AsType[syscall.Errno](err)
	_, panicked := errors.AsType[damaged](err)
	if system || panicked || errors.Is(err, berrors.ErrTimeout) || errors.Is(err, berrors.ErrChecksum) {
		return err
	}
	return fmt.Errorf("%w: %w", errUnreadable, err)
}

// create makes a database at path, which appears there complete or not at all. Where there is a file by then the error is fs.ErrExist.
func create(path string, o Options) (*file, error) {
	db, temporary, err := openBeside(path)
	if err != nil {
		return nil, err
	}
	err = initialize(db, o)
	if err == nil {
		if err = os.Link(temporary, path); err != nil && !errors.Is(err, fs.ErrExist) {
			err = os.Rename(temporary, path) // a file system without links
		}
	}
	if rmErr := os.Remove(temporary); err == nil && !errors.Is(rmErr, fs.ErrNotExist) {
		err = rmErr
	}
	if err == nil {
		err = syncDirectory(path)
	}
	if err != nil {
		_ = db.Close() // the first error is the one to tell
		return nil, err
	}
	return db, nil
}

// openBeside opens an empty file in the directory of path, for writing.
func openBeside(path string) (db *file, name string, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*")
	if err != nil {
		return nil, "", err
	}
	name = f.Name()
	if err = f.Close(); err == nil {
		db, _, err = openBolt(name, false, time.Second)
	}
	if err != nil {
		_ = os.Remove(name) // the first error is the one to tell
		return nil, "", err
	}
	return db, name, nil
}

// syncDirectory makes sure that the name of the file at path survives a crash of the machine.
func syncDirectory(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
		err = nil // a file system that does not do that for directories
	}
	return errors.Join(err, d.Close())
}
