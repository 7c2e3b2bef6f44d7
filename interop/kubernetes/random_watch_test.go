//go:build !race

package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"pgregory.net/rapid"
)

// A watchScope describes the objects that a watch selects, so that last can create such an object.
type watchScope struct {
	target
	labels string // the labels that the selector wants, or empty
}

// endMark is the annotation of the object that ends the n-th watch of a sequence.
func endMark(n int) string { return fmt.Sprintf(`"random/end":"%d"`, n) }

// last returns a request that creates the object that ends the n-th watch of a sequence; see
// endMark.
func (w watchScope) last(n int) request {
	to := w.target
	if to.name == "" {
		to.name = "end"
	}
	if to.namespace == "" && to.plural != "gadgets" {
		to.namespace = "n"
	}
	o := newObject(to.plural, to.namespace, to.name)
	o.set(change{"", "metadata.annotations", "{" + endMark(n) + "}"}, to)
	if w.labels != "" {
		o.set(change{"", "metadata.labels", w.labels}, to)
	}
	return request{verb: "create", method: "POST", path: to.collection(), contentType: jsonType, body: o.text()}
}

// genWatch generates a watch of a collection or of an object.
func genWatch(t *rapid.T, to target) request {
	w := &watchScope{target: to}
	w.name = ""
	r := request{
		verb: "watch", method: "GET", query: oneOf(t, "watch", "watch=true", "watch=1", "watch=", "watch"),
		watch: w,
	}
	if rapid.IntRange(1, 4).Draw(t, "all?") == 1 {
		w.namespace = ""
	}
	r.path = collectionPath(to.plural, w.namespace)
	key := collectionKey(r.path)
	if form := oneOf(t, "form", "", "", "", "prefix", "name"); w.namespace == to.namespace && form != "" {
		switch form {
		case "prefix":
			r.path = strings.Replace(r.path, "/v1/", "/v1/watch/", 1)
		case "name":
			r.path, w.name = strings.Replace(to.path(), "/v1/", "/v1/watch/", 1), to.name
		}
	}
	if w.name == "" {
		r.addWatchSelector(t)
	}
	r.addQuery(oneOf(t, "start", []variant{
		{},
		{},
		{"", "resourceVersion=0"},
		{"", "resourceVersion=@list(" + key + ")"},
		{"", "resourceVersion=@list(" + key + ")"},
		{"", "sendInitialEvents=false&resourceVersionMatch=NotOlderThan"},
		{"", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"},
		{"", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=&resourceVersion=@list(" +
			key + ")"},
		{"", "sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=@list(" + key + ")"},
	}...))
	r.addQuery(pick(t, "option", 75, same(
		"sendInitialEvents=true", "resourceVersionMatch=Exact", "resourceVersionMatch=Bad", "resourceVersion=abc",
		"timeoutSeconds=x", "timeoutSeconds=3600", "limit=1", "limit=x",
		"allowWatchBookmarks=", "sendInitialEvents=x", "labelSelector=a%3D%3D%3D", "fieldSelector=spec.none%3D1",
		"pretty=true", "unknown=1", "sendInitialEvents=false",
		"continue=bad", "continue=@continue("+key+")", "limit=-1", "fieldSelector=metadata.namespace!%3Dnone",
	)...))
	r.addAccept(t)
	return r
}

func (r *request) addWatchSelector(t *rapid.T) {
	s := oneOf(t, "selector", []struct{ query, labels string }{
		{"", ""},
		{"", ""},
		{"labelSelector=app%3Dx", `{"app":"x"}`},
		{"labelSelector=app!%3Dx", ""},
		{"labelSelector=app", `{"app":"q"}`},
		{"labelSelector=!app", ""},
		{"labelSelector=app%20in%20(x,y)", `{"app":"y"}`},
		{"labelSelector=app%20notin%20(x)", ""},
		{"fieldSelector=metadata.name!%3Da", ""},
		{"fieldSelector=metadata.namespace!%3Dnone", ""},
		{"fieldSelector=spec.color%3Dred", ""},
	}...)
	if strings.Contains(s.query, "color") && r.watch.plural != "widgets" {
		return
	}
	r.watch.labels = s.labels
	trait := ""
	if r.watch.plural == "gadgets" && strings.Contains(s.query, "namespace") {
		trait = "selector bad" // gadgets have no namespace
	}
	r.addQuery(variant{trait, s.query})
}

// An openWatch reads the events of a watch.
type openWatch struct {
	stop   context.CancelFunc
	events chan []json.RawMessage // receives all events at the end
	err    error                  // valid after the receive from events
}

// watch opens the n-th watch of the sequence. If the server refuses it, the returned openWatch is
// nil, and the answer is the refusal.
func (s *comparedServer) watch(ctx context.Context, r request, n int) (*openWatch, answer, error) {
	ctx, stop := context.WithCancel(ctx)
	res, err := s.open(ctx, r)
	if err != nil {
		stop()
		return nil, answer{}, err
	}
	if res.StatusCode != http.StatusOK {
		defer stop()
		defer res.Body.Close()
		body, err := readJSON(res)
		if err != nil {
			return nil, answer{}, err
		}
		a, err := s.answer(r, res, body)
		return nil, a, err
	}
	w := &openWatch{stop: stop, events: make(chan []json.RawMessage, 1)}
	go func() {
		defer res.Body.Close()
		var events []json.RawMessage
		for next := eventReader(res); ; {
			var e json.RawMessage
			if e, w.err = next(); w.err != nil {
				break
			}
			events = append(events, e)
			if bytes.Contains(e, []byte(endMark(n))) {
				break
			}
		}
		w.events <- events
	}()
	return w, answer{
		code: res.StatusCode, warnings: res.Header.Values("Warning"),
		body: res.Header.Get("Content-Type"),
	}, nil
}

// endWatch creates the object that ends the n-th watch, deletes it again, and returns the events
// of that watch.
func (s *comparedServer) endWatch(ctx context.Context, w *openWatch, scope watchScope, n int) (any, error) {
	defer w.stop()
	last := scope.last(n)
	var created struct{ Metadata struct{ Name string } }
	if err := s.decode(ctx, last, &created); err != nil {
		return nil, err
	}
	if err := s.decode(ctx, request{method: "DELETE", path: last.path + "/" + created.Metadata.Name}, nil); err != nil {
		return nil, err
	}
	var events []json.RawMessage
	select {
	case events = <-w.events:
	case <-ctx.Done():
		w.stop()
		return nil, fmt.Errorf("%s: the watch has no last event: %q", s.name, <-w.events)
	}
	var all []any
	for _, e := range events {
		var v map[string]any
		if err := decodeExact(e, &v); err != nil {
			return nil, err
		}
		object, _ := v["object"].(map[string]any)
		if v["type"] == "BOOKMARK" {
			if !bytes.Contains(e, []byte("initial-events-end")) {
				continue // each server decides when it sends bookmarks
			}
			if meta, ok := object["metadata"].(map[string]any); ok {
				meta["resourceVersion"] = ""
			}
			dropEpoch(object)
		}
		all = append(all, map[string]any{"type": v["type"], "object": s.normalize(object)})
	}
	if w.err != nil {
		all = append(all, w.err.Error())
	}
	return all, nil
}

// dropEpoch drops the annotation that our server adds to the bookmark of the initial events, also
// in the rows of a Table.
func dropEpoch(object map[string]any) {
	meta, _ := object["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	delete(annotations, "listwatch.dev/epoch")
	delete(annotations, "listwatch.dev/state")
	for _, row := range elements(object["rows"]) {
		if o, ok := row["object"].(map[string]any); ok {
			dropEpoch(o)
		}
	}
}
