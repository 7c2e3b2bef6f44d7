package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/budget"
	"github.com/listwatch/listwatch/store"
)

func TestParseDocumentReportsWhatItDropped(t *testing.T) {
	d, err := store.ParseDocument([]byte(` {"a": {"b": 1, "b": [1e999]}, "metadata": {"name": "x", "name": "y"}} `))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(d.JSON()), `{"a":{"b":[1e999]},"metadata":{"name":"y"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := d.Duplicates(), []string{"a.b", "metadata.name"}; !slices.Equal(got, want) {
		t.Errorf("got the duplicates %q, want %q", got, want)
	}
	if got := d.OutOfRange(); got != "1e999" {
		t.Errorf("got %q, want the number 1e999", got)
	}
}

func TestDocumentLooksUpPaths(t *testing.T) {
	d, err := store.ParseDocument([]byte(`{"a":{"b":{"c":1}},"metadata":{"labels":{"x":"y"}},"n":null}`))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"":                  string(d.JSON()),
		"a":                 `{"b":{"c":1}}`,
		"a b c":             "1",
		"a b c d":           "",
		"b":                 "",
		"n":                 "null",
		"metadata":          `{"labels":{"x":"y"}}`,
		"metadata labels x": `"y"`,
		"metadata name":     "",
	} {
		if got := string(d.Lookup(strings.Fields(path)...)); got != want {
			t.Errorf("%q: got %s, want %s", path, got, want)
		}
	}
}

func TestParseDocumentRefusesOtherJSON(t *testing.T) {
	deep := `{"a":` + strings.Repeat("[", 240) + strings.Repeat("]", 240) + "}"
	for _, data := range []string{``, `7`, `[]`, `null`, `{"a":1`, `{}{}`, deep} {
		if _, err := store.ParseDocument([]byte(data)); !errors.Is(err, listwatch.Invalid) {
			t.Errorf("%.20s: got %v, want Invalid", data, err)
		}
	}
}

func TestOneDocumentIsWrittenTwice(t *testing.T) {
	pods, _ := newPods()
	d, err := store.ParseDocument([]byte(`{"metadata":{"generateName":"web-"},"spec":1}`))
	if err != nil {
		t.Fatal(err)
	}
	before := string(d.JSON())
	names := map[string]bool{}
	for range 2 {
		o, err := pods.CreateDocument(t.Context(), "n", d)
		if err != nil {
			t.Fatal(err)
		}
		names[o.Key.Name] = true
	}
	if len(names) != 2 {
		t.Errorf("got the objects %v, want two", names)
	}
	if got := string(d.JSON()); got != before {
		t.Errorf("got %s, want %s", got, before)
	}
}

func TestUpdateDocumentReceivesTheStoredObject(t *testing.T) {
	pods, _ := newPods()
	mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n"},"spec":1}`)
	own := errors.New("my own")
	_, err := pods.UpdateDocument(t.Context(), keyA, listwatch.Preconditions{}, 0, func(
		old *listwatch.Object, stored *store.Document,
	) (*store.Document, error) {
		if got := string(stored.Lookup("spec")); got != "1" {
			t.Errorf("got the spec %s, want 1", got)
		}
		if string(stored.JSON()) != string(old.Data) {
			t.Errorf("got %s, want %s", stored.JSON(), old.Data)
		}
		return nil, own
	})
	if !errors.Is(err, own) {
		t.Errorf("got %v, want the error of the function", err)
	}
}

// A claims context counts the turns that a write waits for.
type claims struct {
	context.Context
	turns budget.Turns
	n     int
}

func (c *claims) Value(key any) any {
	if _, ok := key.(budget.ClaimKey); !ok {
		return c.Context.Value(key)
	}
	c.n++
	return budget.Claim{Turns: &c.turns, Client: "a"}
}

func TestLargeWritesWaitForFewTurns(t *testing.T) {
	object := func(value string) []byte {
		return fmt.Appendf(nil, `{"metadata":{"name":"a","namespace":"n"},"x":%q}`, strings.Repeat(value, budget.Large))
	}
	pods, _ := newPods()
	for _, w := range []struct {
		name  string
		write func(context.Context) error
		turns int // one for the body, one for the change
	}{
		{"create", func(ctx context.Context) error { _, err := pods.Create(ctx, object("x")); return err }, 1},
		{"update", func(ctx context.Context) error {
			_, err := pods.Update(ctx, keyA, listwatch.Preconditions{}, replaceWith(string(object("y"))))
			return err
		}, 1},
		{"replace", func(ctx context.Context) error { _, err := pods.Replace(ctx, keyA, object("z")); return err }, 2},
		{"patch", func(ctx context.Context) error {
			_, err := pods.Patch(ctx, keyA, listwatch.Patch{Type: listwatch.MergePatch, Data: object("p")})
			return err
		}, 2},
	} {
		t.Run(w.name, func(t *testing.T) {
			ctx := &claims{Context: t.Context()}
			if err := w.write(ctx); err != nil {
				t.Fatal(err)
			}
			if ctx.n != w.turns {
				t.Errorf("waited for %d turns, want %d", ctx.n, w.turns)
			}
		})
	}
}
