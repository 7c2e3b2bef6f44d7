package expirytest_test

import (
	"context"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/expirytest"
	"github.com/listwatch/listwatch/internal/leaktest"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A mutant is the store in memory with one defect. A nil function is the one of the store.
type mutant struct {
	store.Renewer
	name   string
	commit func(m *mutant, ctx context.Context, c store.Change) (*listwatch.Object, error)
	renew  func(m *mutant, ctx context.Context, o *listwatch.Object) error
}

func (m *mutant) Commit(ctx context.Context, c store.Change) (*listwatch.Object, error) {
	if m.commit == nil {
		return m.Renewer.Commit(ctx, c)
	}
	return m.commit(m, ctx, c)
}

func (m *mutant) Renew(ctx context.Context, o *listwatch.Object) error {
	if m.renew == nil {
		return m.Renewer.Renew(ctx, o)
	}
	return m.renew(m, ctx, o)
}

// Unwrap returns the store, whose sizes are correct.
func (m *mutant) Unwrap() listwatch.Source { return m.Renewer }

// withTTL returns a mutant's Commit that changes the TTL of each draft.
func withTTL(
	change func(c store.Change) time.Duration,
) func(m *mutant, ctx context.Context, c store.Change) (*listwatch.Object, error) {
	return func(m *mutant, ctx context.Context, c store.Change) (*listwatch.Object, error) {
		if c.New != nil {
			draft := *c.New
			draft.TTL = change(c)
			c.New = &draft
		}
		return m.Renewer.Commit(ctx, c)
	}
}

var mutants = []mutant{
	{name: "a renewal has no effect", renew: func(*mutant, context.Context, *listwatch.Object) error { return nil }},
	{name: "a renewal is a write", renew: func(m *mutant, ctx context.Context, o *listwatch.Object) error {
		draft, err := expirytest.Spec.Restore(o.Key, o.Data)
		if err != nil {
			return err
		}
		draft.TTL = expirytest.Spec.ReadTTL(o.Data)
		_, err = m.Renewer.Commit(ctx, store.Change{Key: o.Key, Old: o, New: draft})
		return err
	}},
	{name: "an update ends the TTL", commit: withTTL(func(c store.Change) time.Duration {
		if c.Old != nil {
			return 0
		}
		return c.New.TTL
	})},
	{name: "objects end early", commit: withTTL(func(c store.Change) time.Duration { return c.New.TTL / 2 })},
	{name: "objects end late", commit: withTTL(func(c store.Change) time.Duration { return 2 * c.New.TTL })},
	{name: "finalizers are ignored", commit: withTTL(func(c store.Change) time.Duration {
		return expirytest.Spec.TTL(c.New.Unversioned().Data)
	})},
	{name: "an object with a TTL is deleted without an event", commit: func(
		m *mutant, ctx context.Context, c store.Change,
	) (*listwatch.Object, error) {
		if c.New == nil {
			return c.Old, nil
		}
		return m.Renewer.Commit(ctx, c)
	}},
}

// TestMutantsAreFound shows that the histories find each defect.
func TestMutantsAreFound(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			for i := range uint64(50) {
				_, err := expirytest.Try(t, 1, i, 200, func(t *testing.T, _ func() time.Time) *expirytest.DB {
					c := testkit.Must(memory.Open(memory.Options{}).Collection(expirytest.Spec))(t)
					m.Renewer = c.Backend().(store.Renewer)
					c = store.New(expirytest.Spec, &m)
					return &expirytest.DB{Agents: func() *store.Collection { return c }}
				})
				if err != nil {
					t.Logf("history %d", i)
					return
				}
			}
			t.Error("the defect was not found")
		})
	}
}
