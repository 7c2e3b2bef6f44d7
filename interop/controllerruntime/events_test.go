package controllerruntime

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/interop/internal/kubetest"
	"github.com/listwatch/listwatch/watchserver"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// withEvents makes a controller tell events of events.k8s.io/v1, as controllers do that are new.
func withEvents(c *controller) { c.events = c.manager.GetEventRecorder("widgets") }

func TestReconcilerWorksWhereItsEventsAreNotServed(t *testing.T) {
	s := kubetest.Start(t, widgets)
	var events atomic.Int64
	s.API.Server.Trace = &watchserver.Trace{Refused: func(r *http.Request, err error) {
		if strings.HasPrefix(r.URL.Path, "/apis/events.k8s.io/v1/") && errors.Is(err, listwatch.NotFound) {
			events.Add(1)
		}
	}}
	c := newClient(t, s)
	startController(t, s, options(), withEvents)
	create(t, c, newWidget("w", "text"), newWidget("x", "text"))
	made(t, c, "w", "text")
	made(t, c, "x", "text")
	eventually(t, "both events are refused", func(context.Context) (bool, error) { return events.Load() == 2, nil })
}

// What is told twice is patched by a strategic merge patch, which needs a schema: a resource that is declared by its name has none.
func TestEventsOfAReconcilerAreKeptWhereTheyAreDeclared(t *testing.T) {
	s := kubetest.Start(t, widgets, "events.v1.events.k8s.io=Event")
	c := newClient(t, s)
	startController(t, s, options(), withEvents)
	create(t, c, newWidget("w", "text"))
	w, m := made(t, c, "w", "text")
	var events eventsv1.EventList
	eventually(t, "an event", func(ctx context.Context) (bool, error) {
		err := c.List(ctx, &events)
		return len(events.Items) == 1, err
	})
	event := events.Items[0]
	if event.Regarding.UID != w.UID || event.Related.Name != m.Name || event.Reason != "Made" || event.Note != "created w-made" || event.EventTime.IsZero() {
		t.Errorf("got %+v, want the event about the widget", event)
	}
}

func TestCoreEventsAreCountedWhenTheyAreToldAgain(t *testing.T) {
	s := kubetest.Start(t, widgets)
	c := newClient(t, s)
	r := startController(t, s, options(), nil)
	w := newWidget("w", "text")
	create(t, c, w)
	made(t, c, "w", "text")
	//lint:ignore SA1019 most controllers still tell events like this, and so does the leader election
	recorder := r.manager.GetEventRecorderFor("widgets")
	for range 3 {
		recorder.Event(w, corev1.EventTypeWarning, "Broken", "it is broken")
	}
	eventually(t, "an event that was told three times", func(ctx context.Context) (bool, error) {
		var events corev1.EventList
		err := c.List(ctx, &events, client.InNamespace("default"), client.MatchingFields{"involvedObject.name": "w", "reason": "Broken"})
		return len(events.Items) == 1 && events.Items[0].Count == 3, err
	})
}
