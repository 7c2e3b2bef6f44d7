//go:build !race

package kubernetes

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/listwatch/listwatch/internal/ports"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/interop/internal/apiserver"
	"github.com/listwatch/listwatch/interop/internal/program"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// onlyDefault lets the user ann read and write the namespace default.
func onlyDefault(a authorizer.Attributes) bool {
	return a.GetUser().GetName() == "ann" && a.GetNamespace() == "default"
}

// startCluster starts an API server with widgets and a relay of the whole server.
func startCluster(t *testing.T) (*apiserver.Server, apiserver.Options, *relayProcess) {
	t.Helper()
	o := apiserver.Options{
		Users:     map[string]user.Info{"of-ann": &user.DefaultInfo{Name: "ann"}},
		Authorize: onlyDefault,
	}
	server := apiserver.StartWith(t, o)
	createCRD(t, server.Config(), relayWidgets, "Widget")
	debug := ports.Address(t)
	relay := startRelay(t, program.Build(t), ports.Address(t), writeKubeconfig(t, server), "--cluster",
		"--debug-addr", debug)
	relay.debug = debug
	return server, o, relay
}

// wantWatchers requires that the cache of the widgets has n watchers.
func (p *relayProcess) wantWatchers(t *testing.T, n int) {
	t.Helper()
	response, err := http.Get("http://" + p.debug + "/debug/relays")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var status struct {
		Relays []struct {
			Name     string
			Watchers int
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&status); err != nil {
		t.Fatal(err)
	}
	for _, r := range status.Relays {
		if r.Name == "widgets."+relayGroup {
			if r.Watchers != n {
				t.Errorf("the cache has %d watchers, want %d", r.Watchers, n)
			}
			return
		}
	}
	t.Errorf("got %+v, want a cache of the widgets", status)
}

// userConfig returns a configuration for a user of the relay.
func (p *relayProcess) userConfig(token string) *rest.Config {
	c := p.config()
	c.BearerToken = token
	return c
}

func TestClusterRelayServesUnmodifiedClients(t *testing.T) {
	server, _, relay := startCluster(t)
	config := relay.userConfig(server.Token)
	direct, relayed := newDynamicClient(t, server.Config()).Resource(relayWidgets),
		newDynamicClient(t, config).Resource(relayWidgets)

	t.Run("ReadsFollowWrites", func(t *testing.T) {
		for i := range 20 {
			name := fmt.Sprint("v-", i)
			if _, err := relayed.Namespace("default").Create(t.Context(), unstructuredWidget(name, i),
				metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			for _, version := range []string{"", "0"} {
				list, err := relayed.List(t.Context(), metav1.ListOptions{ResourceVersion: version})
				if err != nil {
					t.Fatal(err)
				}
				if len(list.Items) != i+1 {
					t.Fatalf("resourceVersion=%q: got %d widgets, want %d", version, len(list.Items), i+1)
				}
			}
			if _, err := relayed.Namespace("default").Get(t.Context(), name, metav1.GetOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("InformersAgree", func(t *testing.T) {
		s := &relayTest{T: t, relayProcess: relay, server: server, direct: direct}
		informers := []cache.SharedIndexInformer{startWidgetInformer(t, config), startWidgetInformer(t, config)}
		s.write(30)
		s.waitForAgreement(t, informers...)
		s.wantSameList(t, relayed, metav1.ListOptions{LabelSelector: "odd=true"})
		relay.wantWatchers(t, len(informers))
	})
	t.Run("ListsContinueAtTheServer", func(t *testing.T) { testContinuedLists(t, relayed, direct) })
	t.Run("TablesAreTheServers", func(t *testing.T) { testTable(t, config) })
	t.Run("NewResourcesAreNoticed", func(t *testing.T) {
		createCRD(t, config, relayGadgets, "Gadget") // through the relay
		gadgets := newDynamicClient(t, config).Resource(relayGadgets)
		watch, err := gadgets.Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer watch.Stop()
		client, err := clientset.NewForConfig(config)
		if err == nil {
			err = client.ApiextensionsV1().CustomResourceDefinitions().Delete(t.Context(), "gadgets."+relayGroup,
				metav1.DeleteOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
		for range watch.ResultChan() { // until the watch ends
		}
		eventually(t, "404", func() bool {
			_, err := gadgets.List(t.Context(), metav1.ListOptions{})
			return errors.IsNotFound(err)
		})
	})
	t.Run("UsersSeeTheirNamespace", func(t *testing.T) {
		ann := newDynamicClient(t, relay.userConfig("of-ann")).Resource(relayWidgets)
		list, err := ann.Namespace("default").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) == 0 {
			t.Errorf("got %v, %v, want widgets", list, err)
		}
		if _, err := ann.List(t.Context(), metav1.ListOptions{}); !errors.IsForbidden(err) {
			t.Errorf("all namespaces: got %v, want Forbidden", err)
		}
		if _, err := ann.Namespace("other").Watch(t.Context(), metav1.ListOptions{}); !errors.IsForbidden(err) {
			t.Errorf("another namespace: got %v, want Forbidden", err)
		}
		stranger := newDynamicClient(t, relay.userConfig("of-nobody")).Resource(relayWidgets)
		if _, err := stranger.Namespace("default").List(t.Context(),
			metav1.ListOptions{}); !errors.IsUnauthorized(err) {
			t.Errorf("an unknown token: got %v, want Unauthorized", err)
		}
	})
}

// testContinuedLists lists through the relay, page by page, and continues at the API server after
// each page. At some objects the order of the relay differs from the order of etcd. A token for
// such a place would make the API server omit objects, so the relay sends a token that the API
// server refuses.
func testContinuedLists(t *testing.T, relayed, direct dynamic.NamespaceableResourceInterface) {
	for _, namespace := range []string{"zone", "zone-1", "zones"} {
		for i := range 2 {
			if _, err := direct.Namespace(namespace).Create(t.Context(), unstructuredWidget(fmt.Sprint("c-", i), i),
				metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	names := func(list *unstructured.UnstructuredList) (all []string) {
		for _, o := range list.Items {
			all = append(all, o.GetNamespace()+"/"+o.GetName())
		}
		return all
	}
	all := func(first []string, rest *unstructured.UnstructuredList) string {
		return fmt.Sprint(slices.Sorted(slices.Values(slices.Concat(first, names(rest)))))
	}
	whole := list(t, direct, metav1.ListOptions{})
	var seen, refused []string
	for o := (metav1.ListOptions{Limit: 1}); ; {
		page := list(t, relayed, o)
		seen = append(seen, names(page)...)
		if o.Continue = page.GetContinue(); o.Continue == "" {
			break
		}
		rest, err := direct.List(t.Context(), metav1.ListOptions{Continue: o.Continue})
		switch {
		case errors.IsBadRequest(err):
			refused = append(refused, seen[len(seen)-1])
		case err != nil:
			t.Fatal(err)
		case all(seen, rest) != all(nil, whole) || rest.GetResourceVersion() != page.GetResourceVersion():
			t.Errorf("after %s: got %q at version %s", seen[len(seen)-1], names(rest), rest.GetResourceVersion())
		}
	}
	if got, want := fmt.Sprint(refused), "[zone/c-0 zone/c-1 zone-1/c-0 zone-1/c-1]"; got != want {
		t.Errorf("the API server refused to continue after %s, want %s", got, want)
	}
	zone := list(t, relayed.Namespace("zone"), metav1.ListOptions{Limit: 1})
	rest := list(t, direct.Namespace("zone"), metav1.ListOptions{Continue: zone.GetContinue()})
	if got := all(names(zone), rest); got != "[zone/c-0 zone/c-1]" {
		t.Errorf("in one namespace: got %s", got)
	}
}

func list(t *testing.T, r dynamic.ResourceInterface, o metav1.ListOptions) *unstructured.UnstructuredList {
	t.Helper()
	return testkit.Must(r.List(t.Context(), o))(t)
}

// restartWatches is the number of informers that are open while the API server restarts.
const restartWatches = 1000

// comparedInformers is the number of informers whose objects are compared. Comparing all of them
// would take long.
const comparedInformers = 20

func TestRestartOfTheServerCausesNoRelist(t *testing.T) {
	server, o, relay := startCluster(t)
	s := &relayTest{
		T: t, relayProcess: relay, server: server,
		direct: newDynamicClient(t, server.Config()).Resource(relayWidgets),
	}
	s.write(20)
	var informers []cache.SharedIndexInformer
	counter := new(listCounter)
	counted := relay.userConfig(server.Token)
	counted.Wrap(counter.count)
	for range restartWatches {
		informers = append(informers, runWidgetInformer(t, counted))
	}
	for _, i := range informers {
		waitForSync(t, i)
	}
	before := counter.lists.Load()
	for range 2 {
		server.Shutdown()
		o.Replaces = server
		server = apiserver.StartWith(t, o)
		s.direct = newDynamicClient(t, server.Config()).Resource(relayWidgets)
		s.write(20)
		s.waitForAgreement(t, informers[:comparedInformers]...)
	}
	if after := counter.lists.Load(); after != before {
		t.Errorf("the informers listed %d times again, want never", after-before)
	}
	relay.wantWatchers(t, restartWatches)
}
