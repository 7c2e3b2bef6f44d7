package etcd

import (
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

// errClosed is the error of everything that needs a DB to be open.
var errClosed = &listwatch.Error{Code: listwatch.Unavailable, Message: "the database is closed"}

// retryAfter is when it is worth while to ask again where etcd did not answer.
const retryAfter = time.Second

// failed returns err, of a request to etcd, as an error of this module. The end of the caller's context passes unchanged.
func failed(ctx context.Context, op string, err error) error {
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
	case e.Code == listwatch.Unavailable:
		e.Details = &listwatch.Details{RetryAfter: retryAfter}
	}
	return e
}

// codeOf says what the caller can do about an error of etcd.
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

// is reports whether err is a known error of etcd, however it is wrapped.
func is(err, known error) bool { return errors.Is(rpctypes.Error(err), known) }

// isTooLarge reports whether a message was more than gRPC sends.
func isTooLarge(err error) bool {
	return grpcCode(err) == codes.ResourceExhausted && !is(err, rpctypes.ErrNoSpace) && !is(err, rpctypes.ErrTooManyRequests)
}

func grpcCode(err error) codes.Code {
	if e, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		return e.Code()
	}
	return status.Code(err)
}

// ambiguous reports whether a write that ended with err may have been done.
func ambiguous(err error) bool {
	return codeOf(err) == listwatch.Unavailable && grpcCode(err) != codes.ResourceExhausted
}

// notFresh is the error of a read that wants the newest state while nobody can say what that is.
func notFresh(cause error) error {
	return &listwatch.Error{
		Code:    listwatch.NotYet,
		Message: "the newest state can't be had from etcd within " + patience.String(),
		Details: &listwatch.Details{RetryAfter: retryAfter},
		Err:     cause,
	}
}

// A gap is a place in the history of a collection that was lost for good.
type gap struct{ reason string }

func (g *gap) Error() string { return g.reason }

func gapf(format string, args ...any) error { return &gap{fmt.Sprintf(format, args...)} }

// errUnknownOutcome is the cause of a write's error where etcd may have done it.
var errUnknownOutcome = errors.New("etcd did not say whether it was done")

// reasonOf returns the error that a watch was cancelled with.
func reasonOf(text string) error {
	for _, known := range []error{
		rpctypes.ErrGRPCPermissionDenied, rpctypes.ErrGRPCInvalidAuthToken, rpctypes.ErrGRPCAuthOldRevision, rpctypes.ErrGRPCUserEmpty, rpctypes.ErrGRPCNoLeader,
	} {
		if text == known.Error() || text == rpctypes.ErrorDesc(known) {
			return known
		}
	}
	return errors.New(text)
}
