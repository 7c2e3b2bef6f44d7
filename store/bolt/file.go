package bolt

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/listwatch/listwatch"
)

// errUnreadable marks errors that bbolt returns for a file that it cannot read.
var errUnreadable = errors.New("bbolt cannot read it")

// A file is an open bbolt database.
type file struct {
	*bbolt.DB
	handle *os.File // closed by DB.Close
	// pageSize is read once, because bbolt's Info accesses the mapped file, which faults if the
	// file has been truncated.
	pageSize int
	last     fingerprint
}

// A fingerprint shows whether another program has written to a file. It holds the size and the
// beginnings of the two meta pages, which describe the newest transactions and have checksums.
// Every transaction changes it.
type fingerprint struct {
	size  int64
	metas [2][metaBytes]byte
}

// metaBytes is the number of bytes of a meta page in a fingerprint. It includes bbolt's page header
// and meta structure.
const metaBytes = 128

// fingerprint reads the current fingerprint, at the cost of three system calls. If another program
// has shortened the file, the missing bytes are zero.
func (f *file) fingerprint() (p fingerprint, err error) {
	info, err := f.handle.Stat()
	if err != nil {
		return p, err
	}
	p.size = info.Size()
	for i := range p.metas {
		if _, err := f.handle.ReadAt(p.metas[i][:], int64(i*f.pageSize)); err != nil && !errors.Is(err, io.EOF) {
			return p, err
		}
	}
	return p, nil
}

// Update performs a transaction. All transactions that write must use it, because isOverwritten
// takes any other write for a write of another program.
func (f *file) Update(do func(*bbolt.Tx) error) error {
	defer f.remember() // also after a failure or a panic, which may have written a part
	return f.DB.Update(do)
}

// remember keeps the fingerprint for isOverwritten.
func (f *file) remember() {
	if p, err := f.fingerprint(); err == nil {
		f.last = p
	}
}

// isOverwritten reports whether something else has written to the file since the last transaction.
func (f *file) isOverwritten() bool {
	p, err := f.fingerprint()
	return err == nil && p != f.last // the next transaction reports err
}

// abandon closes a file after a panic of bbolt. DB.Close could wait forever for a lock that
// bbolt did not release. The memory mapping stays until the process ends.
func (f *file) abandon() error { return errors.Join(unlock(f.handle), f.handle.Close()) }

// openBolt opens and locks the file at path with bbolt. current reports whether path still
// names the locked file.
func openBolt(path string, readOnly bool, lockTimeout time.Duration) (f *file, current bool, err error) {
	f = new(file)
	options := &bbolt.Options{
		ReadOnly: readOnly,
		Timeout:  max(lockTimeout, 1), // bbolt would wait forever if it were zero
		// The free list is stored in the file. To rebuild it, bbolt would have to read the
		// whole file, and on a damaged page it would panic on a goroutine of its own.
		NoFreelistSync: false, FreelistType: bbolt.FreelistMapType,
		OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
			var err error
			f.handle, err = os.OpenFile(name, flag, mode)
			return f.handle, err
		},
	}
	err = catchPanic(func() (err error) {
		f.DB, err = bbolt.Open(path, 0o600, options)
		return err
	})
	if err != nil {
		if f.handle != nil {
			_ = f.abandon() // after a panic of bbolt, the file is still open and locked
		}
		return nil, false, err
	}
	locked, err := f.handle.Stat()
	if err != nil {
		return nil, false, errors.Join(err, f.Close())
	}
	f.pageSize = f.Info().PageSize
	f.remember()
	named, err := os.Stat(path)
	return f, err == nil && os.SameFile(locked, named), nil
}

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
		return nil, &listwatch.Error{Code: listwatch.Invalid, Message: "the file is empty; if its data is not needed, remove it to start with a new database"}
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
				return &listwatch.Error{Code: listwatch.Corrupt, Message: fmt.Sprintf("the file is truncated: it has %d of %d bytes", info.Size(), tx.Size())}
			}
			_, err = readHeader(tx)
			return err
		})
	})
	return errors.Join(err, f.Close())
}

// markUnreadable adds errUnreadable to err if it is an error of bbolt about the content of
// a file. Most of these have no exported name, so the function excludes all other errors:
// system errors, the lock timeout, and reports of damage.
func markUnreadable(err error) error {
	_, system := errors.AsType[syscall.Errno](err)
	_, damaged := errors.AsType[damagedError](err)
	if system || damaged || errors.Is(err, berrors.ErrTimeout) || errors.Is(err, berrors.ErrChecksum) {
		return err
	}
	return fmt.Errorf("%w: %w", errUnreadable, err)
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
		err = syncDirectory(path)
	}
	if err != nil {
		_ = f.Close() // the first error is more useful
		return nil, err
	}
	return f, nil
}

// openTemporary creates an empty bbolt database in the directory of path.
func openTemporary(path string) (f *file, name string, err error) {
	created, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*")
	if err != nil {
		return nil, "", err
	}
	name = created.Name()
	if err = created.Close(); err == nil {
		f, _, err = openBolt(name, false, time.Second)
	}
	if err != nil {
		_ = os.Remove(name) // the first error is more useful
		return nil, "", err
	}
	return f, name, nil
}

// syncDirectory makes the name of the file at path survive a crash of the machine.
func syncDirectory(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
		err = nil // the file system does not support fsync for directories
	}
	return errors.Join(err, d.Close())
}
