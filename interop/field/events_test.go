//go:build field && !race

package field

import (
	"context"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

// commandLimit limits the time of a command through the relay, in addition to twice the time of the
// same command without the relay. Without load a command takes 0.2 s, and one that waits for a
// cache that never advances takes 43 s.
const commandLimit = 5 * time.Second

// testEvents reads events with kubectl while the cluster changes.
func (c *cluster) testEvents(t *testing.T) {
	stop := c.startWriter(t)
	defer stop()
	for _, args := range kubectlCommands {
		want, wantErrs, direct := c.direct.kubectl(t, "", args...)
		got, gotErrs, relayed := c.relayed.kubectl(t, "", args...)
		if diff := cmp.Diff(normalize(want+wantErrs), normalize(got+gotErrs)); diff != "" {
			t.Errorf("kubectl %s: (-direct +relayed)\n%s", strings.Join(args, " "), diff)
		}
		t.Logf("kubectl %s: directly %v, relayed %v", strings.Join(args, " "), direct, relayed)
		if relayed > 2*direct+commandLimit {
			t.Errorf("kubectl %s takes %v, directly %v", strings.Join(args, " "), relayed, direct)
		}
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
	for _, path := range []string{"/api/v1/events", "/apis/events.k8s.io/v1/events"} {
		for name, query := range map[string]url.Values{
			"initial events": {
				"sendInitialEvents": {"true"}, "resourceVersionMatch": {"NotOlderThan"}, "allowWatchBookmarks": {"true"},
			},
			"no version": {},
			"version 0":  {"resourceVersion": {"0"}},
		} {
			query.Set("watch", "1")
			query.Set("timeoutSeconds", "5")
			names := func(e *endpoint) (found []string) {
				for _, event := range e.watch(t, path, query) {
					o, _ := event["object"].(object)
					m, _ := o["metadata"].(object)
					text, _ := event["type"].(string)
					name, _ := m["name"].(string)
					found = append(found, text+" "+name)
				}
				return found
			}
			if diff := cmp.Diff(sorted(names(c.direct)), sorted(names(c.relayed))); diff != "" {
				t.Errorf("watch of %s with %s: (-direct +relayed)\n%s", path, name, diff)
			}
		}
	}
}

// testEventInformers starts informers of events, and of other resources beside them.
func (c *cluster) testEventInformers(t *testing.T) {
	stop := c.startWriter(t)
	defer stop()
	client, err := dynamic.NewForConfig(c.relayed.config)
	if err != nil {
		t.Fatal(err)
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	typedClient, err := kubernetes.NewForConfig(c.relayed.config)
	if err != nil {
		t.Fatal(err)
	}
	typed := informers.NewSharedInformerFactory(typedClient, 0)
	all := map[string]cache.SharedIndexInformer{
		"events":       factory.ForResource(schema.GroupVersionResource{Version: "v1", Resource: "events"}).Informer(),
		"new events":   factory.ForResource(schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}).Informer(),
		"pods":         factory.ForResource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Informer(),
		"typed events": typed.Core().V1().Events().Informer(),
		"typed pods":   typed.Core().V1().Pods().Informer(),
		"typed jobs":   typed.Batch().V1().Jobs().Informer(),
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer factory.Shutdown()
	defer typed.Shutdown()
	defer cancel()
	begin := time.Now()
	factory.Start(ctx.Done())
	typed.Start(ctx.Done())
	for name, informer := range all {
		eventually(t, "the informer of "+name+" is synced", func(context.Context) (bool, error) { return informer.HasSynced(), nil })
	}
	t.Logf("all informers are synced after %v", time.Since(begin))
	if took := time.Since(begin); took > informerLimit {
		t.Errorf("informers take %v", took)
	}
	direct, err := kubernetes.NewForConfig(c.direct.config)
	if err != nil {
		t.Fatal(err)
	}
	made, err := direct.CoreV1().Events("default").Create(t.Context(), newEvent("while-watching"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"events", "new events", "typed events"} {
		eventually(t, name+" has the new event", func(context.Context) (bool, error) {
			_, exists, err := all[name].GetStore().GetByKey("default/" + made.Name)
			return exists, err
		})
	}
}

// informerLimit limits the time until informers are synced. Without load it is less than a second.
const informerLimit = 30 * time.Second
