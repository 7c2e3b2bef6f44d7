// Package atomicfile replaces files in one step, so that a crash at any moment leaves the old file
// or the new one.
package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// unfinished follows the name of the file in the names of files that Write has not finished.
const unfinished = ".new-"

// Write replaces the file at path with the file that write fills. Only the user of the process may
// read the file. If Write returns an error, the old file is unchanged, unless only the directory
// could not be synced. A process that dies during Write leaves a file whose name begins with that
// of path and ".new-".
func Write(path string, write func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+unfinished+"*")
	if err != nil {
		return err
	}
	if err = write(f); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return SyncDirectory(path)
}

// RemoveUnfinished removes the unfinished files of processes that died during a Write of path. No
// other process may be writing path.
func RemoveUnfinished(path string) error {
	dir := filepath.Dir(path)
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), filepath.Base(path)+unfinished) {
			err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// SyncDirectory makes the name of the file at path survive a crash of the machine.
func SyncDirectory(path string) error {
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
