package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/listwatch/listwatch"
)

// errClosed is the error of operations on a closed DB.
var errClosed = &listwatch.Error{Code: listwatch.Unavailable, Message: "the database is closed"}

// errReadOnly is the error of writes and renewals if Options.ReadOnly is set.
func errReadOnly() error {
	return &listwatch.Error{
		Code: listwatch.Unsupported, Status: http.StatusMethodNotAllowed, Reason: "MethodNotAllowed",
		Message: "the store is read-only",
	}
}

// errChanged is the error of a write or a renewal whose object is no longer the newest one.
func errChanged() error {
	return &listwatch.Error{Code: listwatch.Conflict, Message: "the object has changed"}
}

// retryAfter is the delay that a client is asked to wait if etcd did not respond.
const retryAfter = time.Second

// requestError returns the error of a request to etcd as a *listwatch.Error. If ctx has
// ended, it returns the error of ctx.
func requestError(ctx context.Context, op string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if e, ok := errors.AsType[*listwatch.Error](err); ok {
		return e
	}
	e := &listwatch.Error{Code: codeOf(err), Op: op, Err: errors.New(rpctypes.ErrorDesc(err))}
	switch {
	case is(err, rpctypes.ErrRequestTooLarge), isTooLarge(err):
		e.Code, e.Status, e.Reason = listwatch.Invalid, http.StatusRequestEntityTooLarge, "RequestEntityTooLarge"
		e.Message = "the object is too large for etcd"
	case e.Code == listwatch.Unavailable:
		e.Details = &listwatch.Details{RetryAfter: retryAfter}
	}
	if is(err, rpctypes.ErrNoSpace) {
		e.Message = "etcd is out of space: its operator must compact and defragment it, and disarm the alarm"
	}
	return e
}

// clientError is like requestError, for a request of a client of the server. A client cannot mend
// the credentials that the server has for etcd, so for the client etcd is unavailable.
func clientError(ctx context.Context, op string, err error) error {
	err = requestError(ctx, op, err)
	if e, ok := errors.AsType[*listwatch.Error](err); ok &&
		(e.Code == listwatch.Unauthorized || e.Code == listwatch.Forbidden) {
		return &listwatch.Error{
			Code: listwatch.Unavailable, Op: op, Message: "etcd refuses the credentials or the rights of this server",
			Err: e.Err, Details: &listwatch.Details{RetryAfter: retryAfter},
		}
	}
	return err
}

// codeOf returns the code for an error of the etcd client.
func codeOf(err error) listwatch.Code {
	switch {
	case is(err, rpctypes.ErrAuthFailed), is(err, rpctypes.ErrUserEmpty), is(err, rpctypes.ErrInvalidAuthToken):
		return listwatch.Unauthorized
	case is(err, rpctypes.ErrPermissionDenied):
		return listwatch.Forbidden
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return listwatch.Unavailable
	}
	switch grpcCode(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Canceled:
		return listwatch.Unavailable
	case codes.Unauthenticated:
		return listwatch.Unauthorized
	case codes.PermissionDenied:
		return listwatch.Forbidden
	}
	return listwatch.Unknown
}

// is reports whether err is the given error of etcd, possibly wrapped.
func is(err, known error) bool { return errors.Is(rpctypes.Error(err), known) }

// isTooLarge reports whether a message exceeded the limit of gRPC.
func isTooLarge(err error) bool {
	return grpcCode(err) == codes.ResourceExhausted && !is(err, rpctypes.ErrNoSpace) &&
		!is(err, rpctypes.ErrTooManyRequests)
}

func grpcCode(err error) codes.Code {
	if e, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		return e.Code()
	}
	return status.Code(err)
}

// isAmbiguous reports whether a write that failed with err may have happened.
func isAmbiguous(err error) bool {
	return codeOf(err) == listwatch.Unavailable && grpcCode(err) != codes.ResourceExhausted
}

// A gapError reports that events of a collection were lost. The collection must be loaded
// again.
type gapError struct{ reason string }

func (g *gapError) Error() string { return g.reason }

func gapf(format string, args ...any) error { return &gapError{fmt.Sprintf(format, args...)} }

// unknownOutcome is the message of the error of a write that may have happened.
const unknownOutcome = "etcd did not report whether the write happened"

// canceled converts the text with which etcd has canceled a watch, which may be empty, to an error.
// It returns the error of package rpctypes that has this text, or else a new error.
func canceled(text string) error {
	for _, known := range []error{
		rpctypes.ErrGRPCPermissionDenied, rpctypes.ErrGRPCInvalidAuthToken, rpctypes.ErrGRPCAuthOldRevision,
		rpctypes.ErrGRPCUserEmpty, rpctypes.ErrGRPCNoLeader,
	} {
		if text == known.Error() || text == rpctypes.ErrorDesc(known) {
			return known
		}
	}
	return errors.New(cmp.Or(text, "etcd ended the watch"))
}
