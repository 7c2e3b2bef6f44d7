package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"

	berrors "go.etcd.io/bbolt/errors"

	"github.com/listwatch/listwatch"
)

// errUnreadable marks errors that bbolt returns for a file that it cannot read.
var errUnreadable = errors.New("bbolt cannot read it")

// A damagedError reports that the content of the file is inconsistent. Its cause is usually a
// panic of bbolt, which checks its pages only by assertions.
type damagedError struct{ cause any }

func (d damagedError) Error() string { return fmt.Sprint(d.cause) }

// catchPanic calls f and returns a panic as a damagedError. That includes reads beyond the
// end of the file, which are memory faults because the file is mapped.
func catchPanic(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = damagedError{r}
		}
	}()
	return f()
}

// markUnreadable adds errUnreadable to err if it is an error of bbolt about the content of a
// file. Most of these have no exported name, so markUnreadable excludes all other errors: system
// errors, the lock timeout, and reports of damage.
func markUnreadable(err error) error {
	_, system := errors.AsType[syscall.Errno](err)
	_, damaged := errors.AsType[damagedError](err)
	if system || damaged || errors.Is(err, berrors.ErrTimeout) || errors.Is(err, berrors.ErrChecksum) {
		return err
	}
	return fmt.Errorf("%w: %w", errUnreadable, err)
}

// openError converts err to the error that Open or DB.Collection returns.
func openError(path string, err error) error {
	e := &listwatch.Error{Op: "open " + path, Err: err}
	var damaged damagedError
	switch own, ok := errors.AsType[*listwatch.Error](err); {
	case ok:
		own.Op = e.Op
		return own
	case errors.Is(err, berrors.ErrTimeout):
		e.Code, e.Err = listwatch.Unavailable, nil
		e.Message = "the file is in use by " + lockHolder(path) + "; only one process at a time can open it"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		e.Code, e.Message = listwatch.Forbidden, "the file and its directory must be writable"
	case isOutOfSpace(err):
		e.Code, e.Message = listwatch.Unavailable, "the disk is full"
	case errors.Is(err, errUnreadable):
		e.Code, e.Message = listwatch.Invalid, "the file is not a listwatch database, or is incomplete"
	case errors.As(err, &damaged), errors.Is(err, berrors.ErrChecksum):
		e.Code, e.Message = listwatch.Corrupt, "the file is damaged"
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		e.Code, e.Message = listwatch.Invalid, "the directory does not exist"
		if _, err := os.Stat(filepath.Dir(path)); err == nil {
			e.Message = "the file does not exist"
		}
	default:
		e.Code = listwatch.Unknown
	}
	return e
}

// writeError converts err, the error of a transaction of the file at path, to the error that its
// writers receive.
func writeError(path string, err error) error {
	e := &listwatch.Error{
		Code: listwatch.Unavailable, Message: "the write to the data file failed", Err: err,
	}
	var damaged damagedError
	switch {
	case isOutOfSpace(err):
		e.Message = "there is no space left for the data file"
	case errors.As(err, &damaged):
		e.Code = listwatch.Corrupt
		e.Message = "the data file is damaged; reads continue from memory, but nothing more is written"
	}
	return e
}

// ErrBackup is the error of [Open] for a file that [DB.Backup] or [BackupFile] has made, unless
// [Options].RestoredFromBackup is set. If such a file were opened like any other, clients that have
// seen later writes could not detect that these are lost.
var ErrBackup = errors.New("clients may have seen writes that it lacks; to use it, declare that it was restored")

func errBackup(at string) error {
	return &listwatch.Error{Code: listwatch.Invalid, Message: "the file is a backup made at " + at, Err: ErrBackup}
}

func errClosed() error {
	return &listwatch.Error{Code: listwatch.Unavailable, Message: "the database is closed"}
}

// errDisplaced is the error of writes to a file that is no longer at its path. Such writes are
// refused, because the next start would not find them.
func errDisplaced() error {
	return &listwatch.Error{
		Code: listwatch.Unavailable, Message: "the data file was deleted or replaced while it was open",
	}
}

// errOverwritten is the error of writes after another program has written to the file. Such writes
// are refused, because they would mix the database with the content of that program.
func errOverwritten() error {
	return &listwatch.Error{
		Code: listwatch.Unavailable,
		Message: "the data file was overwritten while it was open; " +
			"reads continue from memory, but nothing more is written",
	}
}

func corruptf(format string, args ...any) error {
	return &listwatch.Error{Code: listwatch.Corrupt, Message: "the file is damaged", Err: fmt.Errorf(format, args...)}
}

func isOutOfSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}
