package cases

import (
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/watchserver"
)

// labelled is the query of a watch with a label selector; fields is that for a field selector.
func labelled(selector string) string { return "labelSelector=" + url.QueryEscape(selector) }
func fields(selector string) string   { return "fieldSelector=" + url.QueryEscape(selector) }

func labelOps(e *env) {
	e.put("a", "color", "red", "size", "1")
	e.put("b", "color", "blue")
	e.put("c", "color", "green", "size", "2")
	e.put("d")
	for selector, want := range map[string]string{
		"color=red":                     "a",
		"color==red":                    "a",
		"color!=red":                    "b c d", // also those without the label
		"color in (red,blue)":           "a b",
		"color in ( blue )":             "b",
		"color notin (red,blue)":        "c d",
		"size":                          "a c",
		"!size":                         "b d",
		"color,!size":                   "b",
		"color in (red,green),size!=1":  "c",
		"size>1":                        "c",
		"size<2":                        "a",
		"color=red,color=blue":          "",
		"":                              "a b c d",
		"color=,size":                   "",
		"color!=red,color!=blue":        "c d",
		"color notin (red), color,size": "c",
	} {
		s := e.dial(labelled(selector) + streamingList)
		var lines []string
		for name := range strings.FieldsSeq(want) {
			lines = append(lines, "ADDED "+name)
		}
		s.want(append(lines, "BOOKMARK")...)
		s.Close()
	}
}

// streamingList asks for the state and for a bookmark that ends it.
const streamingList = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"

func leavesSelector(e *env) {
	e.put("a", "on", "no")
	e.put("b", "on", "yes")
	s := e.dial(labelled("on=yes"))
	s.want("ADDED b")
	e.put("a", "on", "yes")
	e.put("a", "on", "yes", "more", "x")
	e.put("a", "on", "no")
	e.put("a", "on", "no", "more", "y")
	e.put("a", "on", "yes")
	e.delete("a")
	e.put("b", "on", "no")
	e.delete("b")
	e.put("c", "on", "yes")
	s.want("ADDED a", "MODIFIED a", "DELETED a", "ADDED a", "DELETED a", "DELETED b", "ADDED c")
}

func leavesCarriesNewRV(e *env) {
	s := e.dial(labelled("on=yes"))
	e.put("a", "on", "yes", "phase", "first")
	left := e.put("a", "on", "no", "phase", "second")
	gone := s.want("ADDED a", "DELETED a")[1]
	data := string(gone.Object.Data)
	if gone.Version != left || !strings.Contains(data, `"resourceVersion":"`+left.String()+`"`) {
		e.Errorf("got %s at %d, want the version of the update, %d", data, gone.Version, left)
	}
	if gone.Object.Labels["on"] != "yes" || !strings.Contains(data, `"phase":"first"`) || strings.Contains(data, "second") {
		e.Errorf("got %s, want the last state that matched", data)
	}
}

func nonMatchingSilent(e *env) {
	e.put("a", "on", "no")
	queries := []string{labelled("on=yes"), labelled("on,on!=no")}
	if e.can(FieldSelectors) {
		queries = append(queries, fields("spec.phase=wanted"))
	}
	elsewhere := "elsewhere"
	if e.can(Namespaces) {
		elsewhere = "other/a"
	}
	for _, query := range queries {
		s := e.dial(query + "&" + from(e.newest()))
		e.put("a", "on", "no", "phase", "other")
		e.put("b", "on", "no")
		e.put(elsewhere, "phase", "other")
		e.delete("b")
		e.delete(elsewhere)
		if before := s.until(e.sentinel("on", "yes", "phase", "wanted")); len(before) > 0 {
			e.Errorf("%s: got %s, want silence", query, line(before[0]))
		}
		s.Close()
	}
}

func fieldName(e *env) {
	e.put("a")
	e.put("b")
	var elsewhere []string
	if e.can(Namespaces) {
		e.put("other/a")
		elsewhere = []string{"ADDED other/a"}
	}
	for query, want := range map[string][]string{
		fields("metadata.name=b"):                                    {"ADDED b"},
		fields("metadata.name==b,metadata.namespace=" + e.home()):    {"ADDED b"},
		fields("metadata.name=a"):                                    append([]string{"ADDED a"}, elsewhere...),
		fields("metadata.name!=a"):                                   {"ADDED b"},
		fields("metadata.name=a,metadata.namespace!=" + e.home()):    elsewhere,
		fields("metadata.name=nobody"):                               nil,
		fields("metadata.name=b") + "&" + labelled("!no-such-label"): {"ADDED b"},
	} {
		s := e.dial(query + streamingList)
		s.want(append(slices.Clone(want), "BOOKMARK")...)
		s.Close()
	}
}

func fieldUnknown(e *env) {
	for _, selector := range []string{"spec.color=red", "metadata.labels=x", "status.mood=fine", "name=a", "metadata.name=a,x=y"} {
		s := e.watch(fields(selector)).refused(http.StatusBadRequest, "BadRequest")
		if !strings.Contains(s.Message, "field") {
			e.Errorf("%s: got message %q, want one that names the field", selector, s.Message)
		}
		e.list(fields(selector)).refused(http.StatusBadRequest, "BadRequest")
	}
}

func badSyntax(e *env) {
	for _, selector := range []string{"!!", "a in", "a in (b", "a=b=c", "=b", "a,,b", ",", "a b", "a=b c", "-a=b", "a=-", "a/b/c=d", "a notin b", "a>x", "(a)"} {
		e.watch(labelled(selector)).refused(http.StatusBadRequest, "BadRequest")
		e.list(labelled(selector)).refused(http.StatusBadRequest, "BadRequest")
	}
	for _, selector := range []string{"metadata.name", "=a", `metadata.name=\x`, "metadata.name in (a)", "!metadata.name"} {
		e.watch(fields(selector)).refused(http.StatusBadRequest, "BadRequest")
	}
	e.watch("labelSelector=%ff%fe").refused(http.StatusBadRequest, "BadRequest")
}

func combinedResume(e *env) {
	start := e.put("a", "on", "yes", "kind", "x")
	e.put("b", "on", "yes", "kind", "y")
	e.put("a", "on", "no", "kind", "x")
	first := e.dial(labelled("on=yes") + "&" + from(start))
	at := first.want("ADDED b", "DELETED a")[1].Version
	first.Close()

	e.put("b", "on", "no", "kind", "x")
	e.put("a", "on", "yes", "kind", "y")
	e.put("b", "on", "yes", "kind", "x")
	// Another selector from the same version is answered as if it had been there all the time.
	e.dial(labelled("kind=x")+"&"+from(at)).want("ADDED b", "DELETED a", "MODIFIED b")
	e.dial(labelled("kind=x")+"&"+from(start)).want("MODIFIED a", "ADDED b", "DELETED a", "MODIFIED b")
	// And the first one goes on where it was.
	e.dial(labelled("on=yes")+"&"+from(at)).want("DELETED b", "ADDED a", "ADDED b")
	e.dial(from(at)).want("MODIFIED b", "MODIFIED a", "MODIFIED b")
}

// eagerBookmarks is for cases in real time.
var eagerBookmarks = Setup{Timing: watchserver.Timing{Bookmark: 5 * time.Millisecond}}

func emptyResult(e *env) {
	e.put("a")
	s := e.dial(labelled("on=yes") + "&allowWatchBookmarks=true")
	s.want("BOOKMARK")
	written := e.put("b", "on", "no")
	for at := listwatch.Version(0); at < written; at = s.want("BOOKMARK")[0].Version {
	}
	e.put("c", "on", "yes")
	for got := "BOOKMARK"; got != "ADDED c"; got = line(s.next()) {
		if got != "BOOKMARK" {
			e.Fatalf("got %q, want bookmarks and then the object that matches", got)
		}
	}
}

// selectors are those that selectProperty follows, with what they mean.
var selectors = map[string]func(map[string]string) bool{
	"color=red":             func(l map[string]string) bool { return l["color"] == "red" },
	"color!=red":            func(l map[string]string) bool { return l["color"] != "red" },
	"size":                  func(l map[string]string) bool { return l["size"] != "" },
	"!size,color in (blue)": func(l map[string]string) bool { return l["size"] == "" && l["color"] == "blue" },
}

// selectProperty holds four watches of a random history against the projection of that history: 10,000 steps over all variants.
func selectProperty(e *env) {
	const burst = 50
	steps := 2000
	if raced {
		steps = 500
	}
	random := e.random()
	start := e.put("a")
	watches := map[string]*stream{}
	for selector := range selectors {
		watches[selector] = e.dial(labelled(selector) + "&" + from(start))
	}
	labels := map[string]map[string]string{"a": {}}
	for done := 0; done < steps; done += burst {
		since := len(e.history)
		for range burst {
			e.randomStep(random)
		}
		for selector, s := range watches {
			before := map[string]map[string]string{}
			for name, l := range labels {
				before[name] = l
			}
			want := project(e.history[since:], before, selectors[selector])
			var got []seen
			for range want {
				ev := s.next()
				got = append(got, seen{line(ev), ev.Version})
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(seen{})); diff != "" {
				e.Fatalf("%s after %d steps (-want +got):\n%s", selector, done, diff)
			}
		}
		project(e.history[since:], labels, selectors["size"]) // moves labels on
	}
}

// A seen is an event, shortly.
type seen struct {
	line    string
	version listwatch.Version
}

func (e *env) randomStep(random *rand.Rand) {
	name := string(rune('a' + random.IntN(6)))
	if random.IntN(5) == 0 {
		if _, err := e.tryDelete(name); err == nil {
			return
		}
	}
	var labels []string
	if c := random.IntN(4); c < 3 {
		labels = append(labels, "color", []string{"red", "blue", "green"}[c])
	}
	if random.IntN(2) == 0 {
		labels = append(labels, "size", "1")
	}
	e.put(name, labels...)
}

// project returns what a watcher of the objects that match sees of history, and moves labels, the state before it, on.
func project(history []write, labels map[string]map[string]string, matches func(map[string]string) bool) (events []seen) {
	for _, w := range history {
		old, existed := labels[w.name]
		before, after := existed && matches(old), w.labels != nil && matches(w.labels)
		switch {
		case before && after:
			events = append(events, seen{"MODIFIED " + w.name, w.version})
		case before:
			events = append(events, seen{"DELETED " + w.name, w.version})
		case after:
			events = append(events, seen{"ADDED " + w.name, w.version})
		}
		if labels[w.name] = w.labels; w.labels == nil {
			delete(labels, w.name)
		}
	}
	return events
}
