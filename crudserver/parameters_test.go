package crudserver

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch/internal/rest"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/watchserver"
)

// parameterSamples has a request for each parameter of lists and watches. invalid is the same
// request with a value that must be refused. It is empty if the parameter has no invalid value.
var parameterSamples = map[string]struct{ valid, invalid string }{
	"labelSelector":   {"labelSelector=a", "labelSelector=a=b=c"},
	"fieldSelector":   {"fieldSelector=metadata.name=a", "fieldSelector=a"},
	"fields":          {"fields=metadata.name", "fields=a..b"},
	"watch":           {"watch=true", "watch=maybe"},
	"resourceVersion": {"resourceVersion=0", "resourceVersion=x"},
	"resourceVersionMatch": {
		"resourceVersion=1&resourceVersionMatch=NotOlderThan", "resourceVersion=1&resourceVersionMatch=x",
	},
	"sendInitialEvents": {
		"watch=1&resourceVersionMatch=NotOlderThan&sendInitialEvents=true",
		"watch=1&resourceVersionMatch=NotOlderThan&sendInitialEvents=x",
	},
	"allowWatchBookmarks": {"watch=1&allowWatchBookmarks=true", "watch=1&allowWatchBookmarks=x"},
	"initialEventsSince":  {"watch=1&initialEventsSince=1", "watch=1&initialEventsSince=x"},
	"initialEventsState":  {"watch=1&initialEventsState=x", ""},
	"conflate":            {"watch=1&conflate=1s", "watch=1&conflate=x"},
	"limit":               {"limit=5", "limit=x"},
	"continue":            {"", "continue=x"},
	"timeoutSeconds":      {"timeoutSeconds=1", "timeoutSeconds=x"},
	// This parameter of other servers has no effect here; timeoutSeconds has.
	"timeout": {"timeout=1s", ""},
	"pretty":  {"pretty=true", ""},
}

func TestEachParameterIsReadOrRefused(t *testing.T) {
	synctest.Test(t, testEachParameter)
}

func testEachParameter(t *testing.T) {
	server := &watchserver.Server{}
	h := &Handler{Path: "/flags", Collection: newCollection(t, store.CollectionSpec{Kind: "Flag"}), Server: server}
	doors := map[string]struct {
		http.Handler
		path string
	}{
		"serve":      {&watchserver.Server{Source: h.Collection}, "/"},
		"crudserver": {h, "/flags"},
		"union":      {server.Union(h), "/watch?of=/flags"},
		"part":       {server.Union(h), "/watch?of=" + url.QueryEscape("/flags?")},
	}
	for _, name := range rest.Names(rest.Selects, rest.Reads, rest.Responds) {
		sample, ok := parameterSamples[name]
		if !ok {
			t.Errorf("%s: the new parameter needs a sample", name)
		}
		for door, d := range doors {
			send := func(query string) *httptest.ResponseRecorder {
				target := d.path + url.QueryEscape(query)
				switch door {
				case "serve", "crudserver":
					target = d.path + "?" + query
				case "union":
					target = d.path + "&" + query
				}
				if strings.Contains(query, "watch") && !strings.Contains(query, "timeoutSeconds") {
					target += "&timeoutSeconds=1"
				}
				w := httptest.NewRecorder()
				d.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
				return w
			}
			if w := send(sample.valid); w.Code != http.StatusOK && !names(w.Body.String(), name) {
				t.Errorf("%s at %s: got %d %s, want 200 or an error with this name", name, door, w.Code, w.Body)
			}
			if sample.invalid == "" {
				continue
			}
			if w := send(sample.invalid); w.Code/100 != 4 || !names(w.Body.String(), name) {
				t.Errorf("%s at %s, invalid: got %d %s, want an error with this name", name, door, w.Code, w.Body)
			}
		}
	}
}

// names reports whether an error names the parameter, such as labelSelector, also as two words.
func names(message, parameter string) bool {
	return strings.Contains(strings.ReplaceAll(strings.ToLower(message), " ", ""), strings.ToLower(parameter))
}
