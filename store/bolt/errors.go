package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"syscall"

	berrors "go.etcd.io/bbolt/errors"

	"github.com/listwatch/listwatch"
)

// damaged is what bbolt said by a panic: it has no checks of its pages but assertions.
type damaged struct{ cause any }

func (d damaged) Error() string { return fmt.Sprint(d.cause) }

// guarded calls f, and makes an error of a panic and of a read beyond the end of the file, which is a fault of memory: the file is mapped.
func guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = damaged{r}
		}
	}()
	return f()
}

// openError says what err, of opening the file at path, means to whoever wants it open.
func openError(path string, err error) error {
	e := &listwatch.Error{Op: "open " + path, Err: err}
	var d damaged
	switch own, ok := errors.AsType[*listwatch.Error](err); {
	case ok:
		own.Op = e.Op
		return own
	case errors.Is(err, berrors.ErrTimeout):
		e.Code, e.Err = listwatch.Unavailable, nil
		e.Message = "the file is in use by " + lockHolder(path) + "; one process at a time can have it"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		e.Code, e.Message = listwatch.Forbidden, "the file and its directory must be writable"
	case outOfSpace(err):
		e.Code, e.Message = listwatch.Unavailable, "the disk is full"
	case errors.Is(err, errUnreadable):
		e.Code, e.Message = listwatch.Invalid, "the file is no database of listwatch, or a torn one"
	case errors.As(err, &d), errors.Is(err, berrors.ErrChecksum):
		e.Code, e.Message = listwatch.Corrupt, "the file is damaged"
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		e.Code, e.Message = listwatch.Invalid, "there is no such directory"
	default:
		e.Code = listwatch.Unknown
	}
	return e
}

// writeError says what err means to the writers whose transaction failed with it.
func writeError(path string, err error) error {
	e := &listwatch.Error{Code: listwatch.Unavailable, Message: "the write to " + path + " failed", Err: err}
	var d damaged
	switch {
	case outOfSpace(err):
		e.Message = "there is no space left for " + path
	case errors.As(err, &d):
		e.Code, e.Message = listwatch.Corrupt, path+" is damaged; what was read from it is still served, but nothing more is written"
	}
	return e
}

func corruptf(format string, args ...any) error {
	return &listwatch.Error{Code: listwatch.Corrupt, Message: "the file is damaged", Err: fmt.Errorf(format, args...)}
}

func outOfSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}
