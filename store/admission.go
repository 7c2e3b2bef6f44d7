package store

import (
	"context"
	"errors"

	"github.com/listwatch/listwatch"
)

// generatedName is the key of a context in which an object has a name that was generated.
type generatedName struct{}

// IsNameGenerated reports whether the object that [CollectionSpec.Admit] admits in ctx got its name
// from its generateName, and not from its writer.
func IsNameGenerated(ctx context.Context) bool { return ctx.Value(generatedName{}) != nil }

// admit passes sub, which would replace old, to Admit. It checks the object that Admit returns
// against the rules, and returns it as a submission. old is nil for a create. If there is no Admit,
// it returns sub. The caller must not hold a turn, because Admit may wait.
func (s CollectionSpec) admit(ctx context.Context, old *listwatch.Object, sub *submission) (*submission, error) {
	if s.Admit == nil {
		return sub, nil
	}
	sub.setKey()
	sub.doc.dropMetadata("resourceVersion") // it was a precondition, which has been checked
	_, data := sub.doc.render()
	if sub.isGenerated {
		ctx = context.WithValue(ctx, generatedName{}, true)
	}
	data, err := s.Admit(ctx, old, data)
	if err != nil {
		return nil, s.refused(sub.key.Name, err)
	}
	d, err := parseInTurn(ctx, data)
	if err != nil {
		return nil, err
	}
	if sub, err = s.submit(d, sub.key); err != nil {
		return nil, err
	}
	return sub, s.checkRules(sub, old == nil)
}

// refused converts an error of Admit to the error for the writer.
func (s CollectionSpec) refused(name string, err error) error {
	if listwatch.CodeOf(err) != listwatch.Unknown || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return s.invalid(name, causesOf(err))
}

// causesOf returns err as causes. If errors.Join made err, each joined error becomes a cause. An
// error that is not a listwatch.Cause becomes a cause without a field.
func causesOf(err error) (all []listwatch.Cause) {
	if cause, ok := err.(listwatch.Cause); ok {
		return []listwatch.Cause{cause}
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		parts := joined.Unwrap()
		if err.Error() == errors.Join(parts...).Error() { // otherwise err is not from errors.Join
			for _, e := range parts {
				all = append(all, causesOf(e)...)
			}
			return all
		}
	}
	return []listwatch.Cause{{Reason: listwatch.CauseInvalid, Message: err.Error()}}
}
