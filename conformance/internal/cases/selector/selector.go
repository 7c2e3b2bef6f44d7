package selector

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/internal/racetest"
)

func labelOps(e *harness.Env) {
	e.Put("a", "color", "red", "size", "1")
	e.Put("b", "color", "blue")
	e.Put("c", "color", "green", "size", "2")
	e.Put("d")
	for selector, want := range map[string]string{
		"color=red":                     "a",
		"color==red":                    "a",
		"color!=red":                    "b c d", // includes objects without the label
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
		s := e.Dial(harness.LabelSelector(selector) + harness.InitialEvents)
		var lines []string
		for name := range strings.FieldsSeq(want) {
			lines = append(lines, "ADDED "+name)
		}
		s.Want(append(lines, "BOOKMARK")...)
		s.Close()
	}
}

func leavesSelector(e *harness.Env) {
	e.Put("a", "on", "no")
	e.Put("b", "on", "yes")
	s := e.Dial(harness.LabelSelector("on=yes"))
	s.Want("ADDED b")
	e.Put("a", "on", "yes")
	e.Put("a", "on", "yes", "more", "x")
	e.Put("a", "on", "no")
	e.Put("a", "on", "no", "more", "y")
	e.Put("a", "on", "yes")
	e.Delete("a")
	e.Put("b", "on", "no")
	e.Delete("b")
	e.Put("c", "on", "yes")
	s.Want("ADDED a", "MODIFIED a", "DELETED a", "ADDED a", "DELETED a", "DELETED b", "ADDED c")
}

func leavesCarriesNewRV(e *harness.Env) {
	s := e.Dial(harness.LabelSelector("on=yes"))
	e.Put("a", "on", "yes", "phase", "first")
	left := e.Put("a", "on", "no", "phase", "second")
	gone := s.Want("ADDED a", "DELETED a")[1]
	data := string(gone.Object.Data)
	if gone.Version != left || !strings.Contains(data, `"resourceVersion":"`+left.String()+`"`) {
		e.Errorf("got %s at version %d, want the version %d of the update", data, gone.Version, left)
	}
	if gone.Object.Labels["on"] != "yes" || !strings.Contains(data, `"phase":"first"`) ||
		strings.Contains(data, "second") {
		e.Errorf("got %s, want the last state that matched", data)
	}
}

func nonMatchingSilent(e *harness.Env) {
	e.Put("a", "on", "no")
	queries := []string{harness.LabelSelector("on=yes"), harness.LabelSelector("on,on!=no")}
	if e.Supports(harness.FieldSelectors) {
		queries = append(queries, harness.FieldSelector("spec.phase=matching"))
	}
	elsewhere := "elsewhere"
	if e.Supports(harness.Namespaces) {
		elsewhere = "other/a"
	}
	for _, query := range queries {
		s := e.Dial(query + "&" + harness.From(e.Newest()))
		e.Put("a", "on", "no", "phase", "other")
		e.Put("b", "on", "no")
		e.Put(elsewhere, "phase", "other")
		e.Delete("b")
		e.Delete(elsewhere)
		if before := s.ReadUntil(e.PutSentinel("on", "yes", "phase", "matching")); len(before) > 0 {
			e.Errorf("%s: got %s, want no event", query, harness.EventLine(before[0]))
		}
		s.Close()
	}
}

func fieldName(e *harness.Env) {
	e.Put("a")
	e.Put("b")
	var elsewhere []string
	if e.Supports(harness.Namespaces) {
		e.Put("other/a")
		elsewhere = []string{"ADDED other/a"}
	}
	addedA := append([]string{"ADDED a"}, elsewhere...)
	for query, want := range map[string][]string{
		harness.FieldSelector("metadata.name=b"):                                                 {"ADDED b"},
		harness.FieldSelector("metadata.name==b,metadata.namespace=" + e.HomeNamespace()):        {"ADDED b"},
		harness.FieldSelector("metadata.name=a"):                                                 addedA,
		harness.FieldSelector("metadata.name!=a"):                                                {"ADDED b"},
		harness.FieldSelector("metadata.name=a,metadata.namespace!=" + e.HomeNamespace()):        elsewhere,
		harness.FieldSelector("metadata.name=nobody"):                                            nil,
		harness.FieldSelector("metadata.name=b") + "&" + harness.LabelSelector("!no-such-label"): {"ADDED b"},
	} {
		s := e.Dial(query + harness.InitialEvents)
		s.Want(append(slices.Clone(want), "BOOKMARK")...)
		s.Close()
	}
}

func fieldUnknown(e *harness.Env) {
	for _, selector := range []string{
		"spec.color=red", "metadata.labels=x", "status.mood=fine", "name=a", "metadata.name=a,x=y",
	} {
		s := e.WatchRaw(harness.FieldSelector(selector)).WantRefused(http.StatusBadRequest, "BadRequest")
		if !strings.Contains(s.Message, "field") {
			e.Errorf("%s: got message %q, want one that names the field", selector, s.Message)
		}
		e.ListRaw(harness.FieldSelector(selector)).WantRefused(http.StatusBadRequest, "BadRequest")
	}
}

func badSyntax(e *harness.Env) {
	for _, selector := range []string{
		"!!", "a in", "a in (b", "a=b=c", "=b", "a,,b", ",", "a b", "a=b c", "-a=b", "a=-", "a/b/c=d",
		"a notin b", "a>x", "(a)",
	} {
		e.WatchRaw(harness.LabelSelector(selector)).WantRefused(http.StatusBadRequest, "BadRequest")
		e.ListRaw(harness.LabelSelector(selector)).WantRefused(http.StatusBadRequest, "BadRequest")
	}
	for _, selector := range []string{
		"metadata.name", "=a", `metadata.name=\x`, "metadata.name in (a)", "!metadata.name",
	} {
		e.WatchRaw(harness.FieldSelector(selector)).WantRefused(http.StatusBadRequest, "BadRequest")
	}
	e.WatchRaw("labelSelector=%ff%fe").WantRefused(http.StatusBadRequest, "BadRequest")
}

func combinedResume(e *harness.Env) {
	start := e.Put("a", "on", "yes", "kind", "x")
	e.Put("b", "on", "yes", "kind", "y")
	e.Put("a", "on", "no", "kind", "x")
	first := e.Dial(harness.LabelSelector("on=yes") + "&" + harness.From(start))
	at := first.Want("ADDED b", "DELETED a")[1].Version
	first.Close()

	e.Put("b", "on", "no", "kind", "x")
	e.Put("a", "on", "yes", "kind", "y")
	e.Put("b", "on", "yes", "kind", "x")
	// A watch that resumes with another selector receives the same events as a watch that
	// has always used that selector.
	e.Dial(harness.LabelSelector("kind=x")+"&"+harness.From(at)).Want("ADDED b", "DELETED a", "MODIFIED b")
	e.Dial(harness.LabelSelector("kind=x")+"&"+harness.From(start)).Want("MODIFIED a", "ADDED b",
		"DELETED a", "MODIFIED b")
	// A watch that resumes with the first selector, or without a selector, has no gap.
	e.Dial(harness.LabelSelector("on=yes")+"&"+harness.From(at)).Want("DELETED b", "ADDED a", "ADDED b")
	e.Dial(harness.From(at)).Want("MODIFIED b", "MODIFIED a", "MODIFIED b")
}

func emptyResult(e *harness.Env) {
	e.Put("a")
	s := e.Dial(harness.LabelSelector("on=yes") + "&allowWatchBookmarks=true")
	s.Want("BOOKMARK")
	want := e.Put("b", "on", "no")
	for at := listwatch.Version(0); at < want; at = s.Want("BOOKMARK")[0].Version {
	}
	e.Put("c", "on", "yes")
	for got := "BOOKMARK"; got != "ADDED c"; got = harness.EventLine(s.Next()) {
		if got != "BOOKMARK" {
			e.Fatalf("got %q, want bookmarks and then ADDED c", got)
		}
	}
}

// selectors maps each selector of selectProperty to a function that implements it.
var selectors = map[string]func(map[string]string) bool{
	"color=red":             func(l map[string]string) bool { return l["color"] == "red" },
	"color!=red":            func(l map[string]string) bool { return l["color"] != "red" },
	"size":                  func(l map[string]string) bool { return l["size"] != "" },
	"!size,color in (blue)": func(l map[string]string) bool { return l["size"] == "" && l["color"] == "blue" },
}

// selectProperty compares four watches of a random history with the events that
// harness.Project predicts.
func selectProperty(e *harness.Env) {
	const burst = 50
	steps := 2000
	if racetest.Enabled {
		steps = 500
	}
	random := e.Random()
	start := e.Put("a")
	watches := map[string]*harness.Watch{}
	for selector := range selectors {
		watches[selector] = e.Dial(harness.LabelSelector(selector) + "&" + harness.From(start))
	}
	labels := map[string]map[string]string{"a": {}}
	for done := 0; done < steps; done += burst {
		since := len(e.History)
		for range burst {
			randomStep(e, random)
		}
		for selector, s := range watches {
			before := map[string]map[string]string{}
			for name, l := range labels {
				before[name] = l
			}
			want := harness.Project(e.History[since:], before, selectors[selector])
			var got []harness.SeenEvent
			for range want {
				ev := s.Next()
				got = append(got, harness.SeenEvent{Line: harness.EventLine(ev), Version: ev.Version})
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(harness.SeenEvent{})); diff != "" {
				e.Fatalf("%s after %d steps (-want +got):\n%s", selector, done, diff)
			}
		}
		harness.Project(e.History[since:], labels, selectors["size"]) // updates labels
	}
}

func randomStep(e *harness.Env, random *rand.Rand) {
	name := string(rune('a' + random.IntN(6)))
	if random.IntN(5) == 0 {
		if _, err := e.TryDelete(name); err == nil {
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
	e.Put(name, labels...)
}
