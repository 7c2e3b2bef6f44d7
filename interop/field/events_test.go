//go:build !race

package field

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// kubectlCommands read events, or objects with their events.
var kubectlCommands = [][]string{
	{"get", "events", "-o", "name"},
	{"get", "events"},
	{"get", "events", "-A", "-o", "json"},
	{"get", "events.events.k8s.io", "-o", "yaml"},
	{"get", "events", "--field-selector", "involvedObject.name=full"},
	{"get", "events", "--field-selector", "source=kubelet", "-o", "name"},
	{"events"},
	{"events", "--for", "pod/full"},
	{"events", "-A", "--types", "Warning"},
	{"describe", "pod", "full"},
	{"describe", "node", "one"},
	{"describe", "job", "full"},
	{"describe", "service", "bare"},
	{"get", "all", "-A"},
}

// ages matches what kubectl prints for a time.
var ages = regexp.MustCompile(`\b(\d+[dhms])+\b( \(x\d+ over [^)]*\))?`)

// testEvents reads events with kubectl while the cluster changes.
func (c *cluster) testEvents(t *testing.T) {
	stop := c.startWriter(t)
	defer stop()
	for _, args := range kubectlCommands {
		fastest := figure{what: "kubectl " + strings.Join(args, " "), factor: 2}
		for range rounds {
			want, wantErrs, direct := c.direct.kubectl(t, "", args...)
			got, gotErrs, relayed := c.relayed.kubectl(t, "", args...)
			if diff := cmp.Diff(normalize(want+wantErrs), normalize(got+gotErrs)); diff != "" {
				t.Errorf("%s: (-direct +relayed)\n%s", fastest.what, diff)
			}
			if fastest.add(direct, relayed); fastest.withinLimit() {
				break
			}
		}
		fastest.check(t)
	}
}

// normalize replaces what differs between two outputs of a command: ages, and the versions of
// lists.
func normalize(out string) string {
	out = ages.ReplaceAllString(out, "AGE")
	lines := strings.Split(out, "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	return strings.Join(lines, "\n")
}

// testEventWatches opens the kinds of watches that clients use for events.
func (c *cluster) testEventWatches(t *testing.T) {
	stop := c.startWriter(t)
	defer stop()
	var all sync.WaitGroup
	for _, path := range []string{"/api/v1/events", "/apis/events.k8s.io/v1/events"} {
		for name, query := range map[string]url.Values{
			"initial events": {
				"sendInitialEvents": {"true"}, "resourceVersionMatch": {"NotOlderThan"},
				"allowWatchBookmarks": {"true"},
			},
			"no version": {},
			"version 0":  {"resourceVersion": {"0"}},
		} {
			query.Set("watch", "1")
			query.Set("timeoutSeconds", "5")
			all.Go(func() {
				direct, relayed := c.watchBoth(t, path, query)
				if len(direct) == 1 && direct[0]["status"] != nil {
					return // Only the relay sends initial events.
				}
				if diff := cmp.Diff(sorted(namesIn(direct)), sorted(namesIn(relayed))); diff != "" {
					t.Errorf("watch of %s with %s: (-direct +relayed)\n%s", path, name, diff)
				}
			})
		}
	}
	all.Wait()
}

// namesIn returns the types of events and the names of their objects.
func namesIn(events []object) (names []string) {
	for _, event := range events {
		o, _ := event["object"].(object)
		m, _ := o["metadata"].(object)
		names = append(names, fmt.Sprint(event["type"], " ", m["name"]))
	}
	return names
}

// testEventInformers starts informers of events and of other resources, and creates an event. All
// informers of events must receive it.
func (c *cluster) testEventInformers(t *testing.T) {
	stop := c.startWriter(t)
	defer stop()
	fastest := figure{what: "informers", factor: 2}
	for range rounds {
		direct, relayed := startInformers(t, c.direct), startInformers(t, c.relayed)
		c.createEvent(t)
		for name, informer := range relayed.all {
			if !strings.Contains(name, "events") {
				continue
			}
			eventually(t, name+" has the new event", func(context.Context) (bool, error) {
				_, exists, err := informer.GetStore().GetByKey("default/" + newEventName)
				return exists, err
			})
		}
		direct.stop()
		relayed.stop()
		if fastest.add(direct.took, relayed.took); fastest.withinLimit() {
			break
		}
	}
	fastest.check(t)
}

const newEventName = "while-watching"

// createEvent deletes the event newEventName of the previous round at the kube-apiserver, and
// creates it again.
func (c *cluster) createEvent(t *testing.T) {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.direct.config)
	if err != nil {
		t.Fatal(err)
	}
	events := client.CoreV1().Events("default")
	if err := events.Delete(t.Context(), newEventName, metav1.DeleteOptions{}); err != nil &&
		!apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	if _, err := events.Create(t.Context(), newEvent(newEventName), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// informerSet is a set of informers of several types.
type informerSet struct {
	all  map[string]cache.SharedIndexInformer
	took time.Duration // from the start until all are synced
	stop func()
}

// startInformers starts informers and waits until they are synced.
func startInformers(t *testing.T, e *endpoint) informerSet {
	t.Helper()
	client, err := dynamic.NewForConfig(e.config)
	if err != nil {
		t.Fatal(err)
	}
	typedClient, err := kubernetes.NewForConfig(e.config)
	if err != nil {
		t.Fatal(err)
	}
	factory, typed := dynamicinformer.NewDynamicSharedInformerFactory(client, 0),
		informers.NewSharedInformerFactory(typedClient, 0)
	s := informerSet{all: map[string]cache.SharedIndexInformer{
		"events": factory.ForResource(schema.GroupVersionResource{Version: "v1", Resource: "events"}).Informer(),
		"new events": factory.ForResource(schema.GroupVersionResource{
			Group: "events.k8s.io", Version: "v1",
			Resource: "events",
		}).Informer(),
		"pods":         factory.ForResource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Informer(),
		"typed events": typed.Core().V1().Events().Informer(),
		"typed pods":   typed.Core().V1().Pods().Informer(),
		"typed jobs":   typed.Batch().V1().Jobs().Informer(),
	}}
	ctx, cancel := context.WithCancel(t.Context())
	s.stop = func() {
		cancel()
		factory.Shutdown()
		typed.Shutdown()
	}
	t.Cleanup(s.stop)
	begin := time.Now()
	factory.Start(ctx.Done())
	typed.Start(ctx.Done())
	for name, informer := range s.all {
		eventually(t, e.name+": the informer of "+name+" is synced",
			func(context.Context) (bool, error) { return informer.HasSynced(), nil })
	}
	s.took = time.Since(begin)
	return s
}
