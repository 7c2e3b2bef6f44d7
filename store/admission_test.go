package store_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/typed"
)

// A rollout is a part of the traffic that gets a feature.
type rollout struct {
	listwatch.Metadata `json:"metadata"`
	Percent            int    `json:"percent"`
	Salt               string `json:"salt,omitempty"`
}

// admitRollout sets a default, and refuses percentages above 100 and a change of the salt.
func admitRollout(_ context.Context, old, value *rollout) error {
	if value.Salt == "" {
		value.Salt = value.Name
	}
	var err error
	if value.Percent > 100 {
		err = listwatch.Cause{Reason: listwatch.CauseInvalid, Field: "percent", Message: "must be at most 100"}
	}
	if old != nil && value.Salt != old.Salt {
		err = errors.Join(err,
			listwatch.Cause{Reason: listwatch.CauseForbidden, Field: "salt", Message: "must not change"})
	}
	return err
}

func newRollouts(t *testing.T) *store.Collection {
	t.Helper()
	spec := store.SpecOf[rollout]()
	spec.Admit = typed.Admit(admitRollout)
	c, err := memory.Open(memory.Options{}).Collection(spec)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAdmitSeesEveryWrite(t *testing.T) {
	all := newRollouts(t)
	for _, test := range []struct {
		name string
		c    *store.Collection
	}{{"write", all}, {"dry run", all.DryRun()}} {
		t.Run(test.name, func(t *testing.T) {
			c, name := test.c, test.name
			o, err := c.Create(t.Context(), []byte(`{"metadata":{"name":"`+name[:3]+`"},"percent":5,"note":1.0}`))
			if err != nil || !bytes.Contains(o.Data, []byte(`"note":1.0`)) ||
				!bytes.Contains(o.Data, []byte(`"salt":"`+name[:3]+`"`)) {
				t.Fatalf("got %s, %v, want the default and the member that the type lacks", o.Data, err)
			}
			_, err = c.Create(t.Context(), []byte(`{"metadata":{"name":"b"},"percent":500}`))
			wantCauses(t, err, `rollout "b" is invalid: percent: must be at most 100`, "percent")
			_, err = c.Create(t.Context(), []byte(`{"metadata":{"name":"b"},"percent":"5"}`))
			wantCode(t, err, listwatch.Invalid,
				"the object has a member of a wrong type: json: cannot unmarshal string into Go struct field rollout.percent of type int")
			key := listwatch.Key{Name: "wri"} // the dry run has created nothing
			_, err = c.Replace(t.Context(), key, []byte(`{"metadata":{"name":"wri"},"percent":101,"salt":"x"}`))
			wantCauses(t, err, `rollout "wri" is invalid: [percent: must be at most 100, salt: must not change]`,
				"percent", "salt")
		})
	}
	before := all.Stats().Newest
	if _, err := all.Replace(t.Context(), listwatch.Key{Name: "wri"},
		[]byte(`{"metadata":{"name":"wri"},"percent":5,"note":1.0}`)); err != nil || all.Stats().Newest != before {
		t.Errorf("a replace that lacks the default: got %v, version %d, want version %d as before", err,
			all.Stats().Newest, before)
	}
}

func wantCauses(t *testing.T, err error, message string, fields ...string) {
	t.Helper()
	e := testkit.WantStatus(t, message, err, 422)
	if e.Code != listwatch.Invalid || e.Message != message {
		t.Fatalf("got %v, want code Invalid and %q", err, message)
	}
	if len(e.Details.Causes) != len(fields) {
		t.Fatalf("got causes %+v, want them for %q", e.Details.Causes, fields)
	}
	for i, c := range e.Details.Causes {
		if c.Field != fields[i] {
			t.Errorf("got cause %+v, want field %q", c, fields[i])
		}
	}
}

// Generated names are known to Admit, and the errors that it returns are not retried.
func TestAdmitErrorsPassUnchanged(t *testing.T) {
	type key struct{}
	calls := 0
	busy := &listwatch.Error{Code: listwatch.Conflict, Message: "no"}
	c, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{
		Admit: func(ctx context.Context, old *listwatch.Object, data []byte) ([]byte, error) {
			calls++
			if ctx.Value(key{}) == nil {
				t.Error("the context of the write was lost")
			}
			if old != nil {
				return nil, busy
			}
			if !bytes.Contains(data, []byte(`"name":"a-`)) {
				t.Errorf("got %s, want a generated name", data)
			}
			return data, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.WithValue(t.Context(), key{}, true)
	o, err := c.Create(ctx, []byte(`{"metadata":{"generateName":"a-"}}`))
	if err != nil || !strings.HasPrefix(o.Key.Name, "a-") {
		t.Fatalf("got %v, %v", o, err)
	}
	if _, err := c.Replace(ctx, o.Key, []byte(`{"metadata":{"name":"`+o.Key.Name+`"},"x":1}`)); !errors.Is(err, busy) ||
		calls != 2 {
		t.Errorf("got %v after %d calls, want the error of Admit after one call", err, calls)
	}
}

func TestAdmitCannotRenameObject(t *testing.T) {
	c, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{
		Admit: func(context.Context, *listwatch.Object, []byte) ([]byte, error) {
			return []byte(`{"metadata":{"name":"b"}}`), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Create(t.Context(), []byte(`{"metadata":{"name":"a"}}`))
	wantCode(t, err, listwatch.Invalid, "the name of the object (b) does not match the name of the request (a)")
}

// A name that merely looks generated is the writer's.
func TestAdmitKnowsWhetherANameIsGenerated(t *testing.T) {
	var generated bool
	things, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{
		Kind: "Thing",
		Admit: func(ctx context.Context, _ *listwatch.Object, data []byte) ([]byte, error) {
			generated = store.IsNameGenerated(ctx)
			return data, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for metadata, want := range map[string]bool{
		`"generateName":"a-"`: true, `"name":"a-bcdfg","generateName":"a-"`: false, `"name":"a"`: false,
	} {
		if _, err := things.Create(t.Context(), []byte(`{"metadata":{`+metadata+`}}`)); err != nil {
			t.Fatal(err)
		}
		if generated != want {
			t.Errorf("%s: the name is generated: %v, want %v", metadata, generated, want)
		}
	}
}
