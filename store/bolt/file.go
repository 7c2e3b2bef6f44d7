package bolt

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
)

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
// attributes every other write to another program.
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

// abandon closes the file after bbolt has panicked. DB.Close could wait forever for a lock that
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
