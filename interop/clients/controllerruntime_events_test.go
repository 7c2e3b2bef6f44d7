package clients

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/interop/internal/testapi"
	"github.com/listwatch/listwatch/watchserver"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// recordEvents makes the controller record events of events.k8s.io/v1, like most new controllers.
func recordEvents(c *runningController) { c.events = c.manager.GetEventRecorder("widgets") }

func TestReconcilerWorksWithoutEventsAPI(t *testing.T) {
	s := testapi.Start(t, widgetResource)
	var events atomic.Int64
	s.API.Server.Trace = &watchserver.Trace{Refused: func(_ context.Context, r watchserver.Request, err error) {
		if strings.HasPrefix(r.Path, "/apis/events.k8s.io/v1/") && errors.Is(err, listwatch.NotFound) {
			events.Add(1)
		}
	}}
	c := newControllerClient(t, s)
	startController(t, s, managerOptions(), recordEvents)
	createObjects(t, c, newWidget("w", "text"), newWidget("x", "text"))
	waitUntilReady(t, c, "w", "text")
	waitUntilReady(t, c, "x", "text")
	eventually(t, "refusal of both events", func(context.Context) (bool, error) { return events.Load() == 2, nil })
}

// For a repeated event, the recorder sends a strategic merge patch of the series.
func TestReconcilerRecordsEvents(t *testing.T) {
	s := testapi.Start(t, widgetResource, "events.v1.events.k8s.io=Event")
	c := newControllerClient(t, s)
	r := startController(t, s, managerOptions(), recordEvents)
	createObjects(t, c, newWidget("w", "text"))
	w, m := waitUntilReady(t, c, "w", "text")
	var events eventsv1.EventList
	eventually(t, "one event", func(ctx context.Context) (bool, error) {
		err := c.List(ctx, &events)
		return len(events.Items) == 1, err
	})
	event := events.Items[0]
	if event.Regarding.UID != w.UID || event.Related.Name != m.Name || event.Reason != "Made" ||
		event.Note != "created w-made" || event.EventTime.IsZero() {
		t.Errorf("got %+v, want an event about the widget", event)
	}
	for range 2 {
		r.events.Eventf(w, m, corev1.EventTypeWarning, "Broken", "Repair", "it is broken")
	}
	eventually(t, "one event with a series", func(ctx context.Context) (bool, error) {
		err := c.List(ctx, &events)
		broken := slices.DeleteFunc(events.Items, func(e eventsv1.Event) bool { return e.Reason != "Broken" })
		return len(broken) == 1 && broken[0].Series != nil && broken[0].Series.Count == 2, err
	})
}

func TestRepeatedCoreEventsAreCounted(t *testing.T) {
	s := testapi.Start(t, widgetResource)
	c := newControllerClient(t, s)
	r := startController(t, s, managerOptions(), nil)
	w := newWidget("w", "text")
	createObjects(t, c, w)
	waitUntilReady(t, c, "w", "text")
	//lint:ignore SA1019 most controllers, and the leader election, still use this recorder
	recorder := r.manager.GetEventRecorderFor("widgets")
	for range 3 {
		recorder.Event(w, corev1.EventTypeWarning, "Broken", "it is broken")
	}
	eventually(t, "one event with a count of 3", func(ctx context.Context) (bool, error) {
		var events corev1.EventList
		err := c.List(ctx, &events, client.InNamespace("default"),
			client.MatchingFields{"involvedObject.name": "w", "reason": "Broken"})
		return len(events.Items) == 1 && events.Items[0].Count == 3, err
	})
}
