package memory_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"pgregory.net/rapid"
)

// scalars are JSON values in unusual spellings.
var scalars = []string{
	"null", "true", "0", "-0", "0.10", "1e400", "-1E-7", "9007199254740993", "123456789012345678901234567890",
	`""`, `"é"`, `"\u00e9"`, `"<&>"`, `"\u003c"`, `"\/"`, `"/"`, `"\n\t\"\\"`, `"\ud83d\ude00"`, `"😀"`, `"\ud800"`,
	"\"\u2028\"", `"7"`, "\"\x7f\"",
}

func jsonValue(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		kind := rapid.IntRange(0, 3).Draw(t, "kind")
		if depth == 0 || kind < 2 {
			return rapid.SampledFrom(scalars).Draw(t, "scalar")
		}
		if kind == 2 {
			return "[" + strings.Join(rapid.SliceOfN(jsonValue(depth-1), 0, 3).Draw(t, "elements"), ",") + "]"
		}
		return "{" + strings.Join(jsonMembers(t, depth-1, "m"), ",") + "}"
	})
}

// jsonMembers draws the members of an object. The prefix makes their names unique within
// the object.
func jsonMembers(t *rapid.T, depth int, prefix string) []string {
	values := rapid.SliceOfN(jsonValue(depth), 0, 4).Draw(t, "values")
	for i, v := range values {
		values[i] = fmt.Sprintf(`"%s%d":%s`, prefix, i, v)
	}
	return values
}

// Property: a created object keeps every byte that its writer sent, except for the members
// that the server sets.
func TestCreateKeepsEveryByte(t *testing.T) {
	_, pods := open(t, memory.Options{History: listwatch.Retention{Bytes: 1}})
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		meta := append(jsonMembers(t, 1, "x"), fmt.Sprintf(`"name":"p%d"`, n), `"namespace":"n"`)
		members := append(jsonMembers(t, 3, "y"), `"kind":"Pod"`, `"apiVersion":"v1"`, `"metadata":{META}`)
		meta = rapid.Permutation(meta).Draw(t, "metadata")
		data := "{" + strings.Join(rapid.Permutation(members).Draw(t, "object"), ",") + "}"
		o, err := pods.Create(t.Context(), []byte(strings.Replace(data, "META", strings.Join(meta, ","), 1)))
		if err != nil {
			t.Fatal(err)
		}
		before, after, _ := strings.Cut(data, "META")
		before += strings.Join(meta, ",")
		got := string(o.Data)
		if !strings.HasPrefix(got, before+`,"uid":"`) || !strings.HasSuffix(got, `Z"`+after) {
			t.Fatalf("got\n%s, want\n%s… server-set members …%s", got, before, after)
		}
		set := got[len(before) : len(got)-len(after)]
		if want := 4; strings.Count(set, `":`) != want ||
			!strings.Contains(set, `"resourceVersion":"`+o.Version.String()+`"`) {
			t.Fatalf("the server set %s, want %d members, including version %v", set, want, o.Version)
		}
		again, err := listwatch.ParseObject(o.Data)
		if err != nil || again.Key != o.Key || string(again.Data) != got {
			t.Fatalf("%s parses as %+v, %v", got, again, err)
		}
	})
}

// Property: versions grow with every write, and a watch returns exactly these writes.
func TestVersionsGrowWithEveryWrite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flags := memory.New[flag]()
		c := store.CollectionOf(flags)
		w, err := c.Watch(t.Context(), listwatch.Query{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = w.Close() }()
		page, err := c.List(t.Context(), listwatch.Query{})
		if err != nil {
			t.Fatal(err)
		}
		last := page.Version
		var want []string
		for range rapid.IntRange(1, 20).Draw(t, "writes") {
			key := listwatch.Key{Name: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name")}
			data := fmt.Appendf(nil, `{"metadata":{"name":%q},"count":%d}`, key.Name,
				rapid.IntRange(0, 2).Draw(t, "count"))
			e, o, err := write(t, c, key, data)
			if err != nil {
				if e := listwatch.AsError(err).Code; e != listwatch.NotFound && e != listwatch.AlreadyExists {
					t.Fatal(err)
				}
				continue
			}
			if e == 0 {
				if o.Version > last {
					t.Fatalf("an update without a change is at %v, after %v", o.Version, last)
				}
				continue
			}
			if o.Version <= last {
				t.Fatalf("version %v after %v", o.Version, last)
			}
			last = o.Version
			want = append(want, line(e, o))
		}
		events := make([]listwatch.Event, len(want)+1)
		n, err := w.(listwatch.Poller).Poll(events)
		if err != nil || n != len(want) {
			t.Fatalf("got %d events, %v, want %d", n, err, len(want))
		}
		for i, e := range events[:n] {
			if got := line(e.Type, e.Object); got != want[i] {
				t.Fatalf("event %d is %s, want %s", i, got, want[i])
			}
		}
	})
}

// write performs a random write and returns the type of its event, or 0 if the write
// changes nothing.
func write(t *rapid.T, c *store.Collection, key listwatch.Key, data []byte) (e listwatch.EventType, o *listwatch.Object,
	err error,
) {
	switch rapid.IntRange(0, 2).Draw(t, "operation") {
	case 0:
		o, err = c.Create(t.Context(), data)
		return listwatch.Added, o, err
	case 1:
		o, err = c.Delete(t.Context(), key, listwatch.Preconditions{})
		return listwatch.Deleted, o, err
	}
	old, err := c.Get(t.Context(), key)
	if err != nil {
		return 0, nil, err
	}
	if o, err = c.Replace(t.Context(), key, data); o == old {
		return 0, o, err
	}
	return listwatch.Modified, o, err
}
