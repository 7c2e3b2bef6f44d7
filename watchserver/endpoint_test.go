package watchserver_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// forTenant makes f serve only the flags of tenant, except for one named hidden.
func (f *fixture) forTenant(tenant string) {
	f.Helper()
	labels, err := listwatch.ParseLabelSelector("tenant=" + tenant)
	if err != nil {
		f.Fatal(err)
	}
	fields, err := listwatch.ParseFieldSelector("metadata.name!=hidden")
	if err != nil {
		f.Fatal(err)
	}
	f.endpoint = func(*http.Request) watchserver.Endpoint {
		return watchserver.Endpoint{Source: f.flags, Labels: labels, Fields: fields}
	}
}

func of(tenant string) map[string]string { return map[string]string{"tenant": tenant} }

func TestForcedSelectorsRestrictAWatch(t *testing.T) {
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		f.forTenant("a")
		f.put("mine", of("a"))
		f.put("hidden", of("a"))
		f.put("theirs", of("b"))
		all := f.watch(c, "")
		widened := f.watch(c, "labelSelector=tenant+in+(a,b)&fieldSelector=metadata.name=theirs")
		own := f.watch(c, "labelSelector=tier=front")
		all.want("ADDED mine")

		f.put("theirs", of("b"))
		f.put("front", map[string]string{"tenant": "a", "tier": "front"})
		f.put("mine", of("b"))   // leaves the tenant
		f.put("theirs", of("a")) // enters the tenant
		all.want("ADDED front", "DELETED mine", "ADDED theirs")
		own.want("ADDED front")
		widened.want("ADDED theirs")
	})
}

func TestDeletedKeepsTheStateOfTheTenant(t *testing.T) {
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		f.forTenant("a")
		f.put("mine", of("a"))
		w := f.watch(c, "")
		w.want("ADDED mine")
		f.put("mine", map[string]string{"tenant": "b", "secret": "of-b"})
		received, err := w.Receive()
		if err != nil || received.Type != "DELETED" || strings.Contains(string(received.Object), "of-b") {
			t.Errorf("got %s %s, %v; want DELETED with the last state of tenant a", received.Type, received.Object, err)
		}
	})
}

func TestForcedSelectorsRestrictAList(t *testing.T) {
	f := newFixture(t, nil)
	f.forTenant("a")
	for name, tenant := range map[string]string{"hidden": "a", "mine": "a", "mine2": "a", "theirs": "b"} {
		f.put(name, of(tenant))
	}
	for query, want := range map[string]string{
		"":                                   "mine mine2",
		"limit=1":                            "mine",
		"labelSelector=tenant%3Db":           "",
		"labelSelector=tenant":               "mine mine2",
		"fieldSelector=metadata.name=hidden": "",
		"fieldSelector=metadata.name=mine2":  "mine2",
	} {
		r := httptest.NewRequest(http.MethodGet, "/flags?"+query, nil)
		w := httptest.NewRecorder()
		f.WatchServer.Serve(w, r, f.endpoint(r))
		var list struct{ Items []Flag }
		if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%s: status %d, %v", query, w.Code, err)
		}
		var names []string
		for _, flag := range list.Items {
			names = append(names, flag.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%q: got %q, want %q", query, got, want)
		}
	}
}
