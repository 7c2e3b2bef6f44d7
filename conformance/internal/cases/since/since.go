package since

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
)

// A copied is the state that a client has copied: the versions of the objects by name.
type copied struct {
	*harness.Env
	query   string // selects the objects
	has     listwatch.State
	objects map[string]listwatch.Version
}

// copyState reads the state that query selects.
func copyState(e *harness.Env, query string) *copied {
	e.Helper()
	c := &copied{Env: e, query: query, objects: map[string]listwatch.Version{}}
	s := e.Dial(c.query + harness.InitialEvents)
	c.apply(s)
	s.Close()
	if c.has.ID == "" {
		e.Skipf("the server does not support initialEventsSince")
	}
	return c
}

// apply applies the initial events of s, and returns them as lines. isDifference reports whether
// they are a difference.
func (c *copied) apply(s *harness.Watch) (lines []string, isDifference bool) {
	c.Helper()
	var events []listwatch.Event
	for {
		e := s.Next()
		if e.Type != listwatch.Synced {
			events, lines = append(events, e), append(lines, harness.EventLine(e))
			continue
		}
		var v listwatch.Version
		if v, isDifference = e.Since(); isDifference && v != c.has.Version {
			c.Fatalf("got a difference since version %d, requested since %d", v, c.has.Version)
		}
		c.has = e.State()
		break
	}
	if !isDifference {
		clear(c.objects)
	}
	for _, e := range events {
		name := strings.TrimPrefix(harness.EventLine(e), e.Type.String()+" ")
		switch {
		case e.Type == listwatch.Added:
			c.objects[name] = e.Version
		case e.Type == listwatch.Deleted && isDifference:
			delete(c.objects, name)
		default:
			c.Fatalf("got %s among initial events without the mark of a difference", harness.EventLine(e))
		}
	}
	return lines, isDifference
}

// since returns the parameters with which c requests a difference.
func (c *copied) since() string {
	return fmt.Sprintf("%s%s&initialEventsSince=%d&initialEventsState=%s",
		c.query, harness.InitialEvents, c.has.Version, url.QueryEscape(c.has.ID))
}

// resume requests a difference.
func (c *copied) resume() (lines []string, isDifference bool) {
	c.Helper()
	s := c.Dial(c.since())
	defer s.Close()
	return c.apply(s)
}

// wantDifference resumes and compares the initial events with want.
func (c *copied) wantDifference(want ...string) {
	c.Helper()
	got, isDifference := c.resume()
	if !isDifference {
		c.Fatalf("got the whole state, want a difference: nothing was lost")
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		c.Errorf("the difference (-want +got):\n%s", diff)
	}
}

// wantWhole resumes with the given parameters, which do not permit a difference.
func (c *copied) wantWhole(why, query string, want ...string) {
	c.Helper()
	s := c.Dial(query)
	defer s.Close()
	got, isDifference := c.apply(s)
	if diff := cmp.Diff(want, got); isDifference || diff != "" {
		c.Errorf("%s: a difference: %v (-want +got):\n%s", why, isDifference, diff)
	}
}

func difference(e *harness.Env) {
	for _, name := range []string{"a", "b", "c"} {
		e.Put(name)
	}
	c := copyState(e, "")
	c.wantDifference()
	e.Put("b")
	e.Delete("c")
	e.Put("d")
	c.wantDifference("ADDED b", "ADDED d", "DELETED c")
	if diff := cmp.Diff(e.StateAt(c.has.Version), c.objects); diff != "" {
		e.Errorf("the state after the difference (-want +got):\n%s", diff)
	}
}

func wholeIfUnknown(e *harness.Env) {
	e.Put("a")
	c := copyState(e, "")
	e.Put("b")
	request, since := c.since(), "Since="+c.has.Version.String()
	c.wantWhole("no state", strings.Replace(request, "initialEventsState", "ignored", 1), "ADDED a", "ADDED b")
	c.wantWhole("another state", request+"x", "ADDED a", "ADDED b")
	c.wantWhole("a later version", strings.Replace(request, since, since+"0", 1), "ADDED a", "ADDED b")
}

func otherState(e *harness.Env) {
	e.Put("a", "app", "x")
	e.Put("b", "app", "y")
	c := copyState(e, harness.LabelSelector("app=x"))
	other := copyState(e, harness.LabelSelector("app=y"))
	c.has.ID = other.has.ID
	c.wantWhole("the state of another selector", c.since(), "ADDED a")
}

func horizon(e *harness.Env) {
	for _, name := range []string{"a", "b", "c"} {
		e.Put(name)
	}
	c := copyState(e, "")
	e.Delete("a")
	e.Put("b")
	e.CompactHistory()
	c.resume()
	if diff := cmp.Diff(e.StateAt(c.has.Version), c.objects); diff != "" {
		e.Errorf("the state after a compaction (-want +got):\n%s", diff)
	}
}

func leavesSelector(e *harness.Env) {
	e.Put("a", "app", "x")
	e.Put("b", "app", "x")
	c := copyState(e, harness.LabelSelector("app=x"))
	e.Put("a", "app", "y")
	c.wantDifference("DELETED a")
	if got := slices.Collect(maps.Keys(c.objects)); len(got) != 1 || got[0] != "b" {
		e.Errorf("the client has %v, want b", got)
	}
}

func reentersSelector(e *harness.Env) {
	e.Put("a", "app", "x")
	c := copyState(e, harness.LabelSelector("app=x"))
	e.Put("a", "app", "y")
	e.Put("a", "app", "x")
	c.wantDifference("ADDED a")
}

func recreated(e *harness.Env) {
	e.Put("a")
	c := copyState(e, "")
	e.Delete("a")
	e.Put("a")
	c.wantDifference("ADDED a")
}

func earlierVersion(e *harness.Env) {
	e.Put("a")
	c := copyState(e, "")
	e.Put("b")
	newest := e.Put("a")
	e.Delete("b")
	c.query = harness.From(newest)
	c.wantDifference("ADDED a", "DELETED b")
}

func noForeignKeys(e *harness.Env) {
	e.Put("a", "app", "x")
	e.Put("foreign", "app", "y")
	c := copyState(e, harness.LabelSelector("app=x"))
	e.Put("foreign", "app", "z")
	e.Put("brief", "app", "y")
	e.Delete("brief")
	e.Delete("foreign")
	e.Put("a", "app", "x")
	c.wantDifference("ADDED a")
}
