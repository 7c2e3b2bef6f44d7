package servecmd

import (
	"context"
	"fmt"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/store"
)

// demoPods is the number of pods that the demo keeps.
const demoPods = 5

// runDemo makes one change per interval until ctx ends. It creates, updates, relabels and
// deletes pods, and scales a deployment.
func (s *server) runDemo(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for i := 0; ; i++ {
		if err := s.demoStep(ctx, i); err != nil && ctx.Err() == nil {
			// Another client may have deleted the demo's objects. Continue with the next
			// step.
			s.Log.Debug("demo", "step", i, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// demoStep makes the i-th change, counted from 0.
func (s *server) demoStep(ctx context.Context, i int) error {
	n := i / 5
	pod := listwatch.Key{Namespace: "default", Name: demoPodName(n)}
	pods, deployments := s.collection("pods"), s.collection("deployments")
	var err error
	switch i % 5 {
	case 0:
		_, err = pods.CreateIn(ctx, "default", podState(n, "blue", "Pending"))
	case 1:
		_, err = pods.Replace(ctx, pod, podState(n, "blue", "Running"))
	case 2:
		err = scale(ctx, deployments, 1+n%3)
	case 3:
		_, err = pods.Replace(ctx, pod, podState(n, "green", "Running"))
	case 4:
		if n < demoPods {
			return nil
		}
		_, err = pods.Delete(ctx, listwatch.Key{Namespace: "default", Name: demoPodName(n - demoPods)},
			listwatch.Preconditions{})
	}
	return err
}

func demoPodName(n int) string { return fmt.Sprintf("demo-%d", n) }

func podState(n int, color, phase string) []byte {
	return fmt.Appendf(
		nil,
		`{"metadata":{"name":%q,"labels":{"app":"demo","color":%q}},"spec":{"nodeName":"node-%d"},"status":{"phase":%q}}`,
		demoPodName(n), color, n%2, phase)
}

// scale sets the size of the demo's deployment.
func scale(ctx context.Context, c *store.Collection, replicas int) error {
	state := fmt.Appendf(nil, `{"metadata":{"name":"demo","labels":{"app":"demo"}},"spec":{"replicas":%d}}`, replicas)
	_, err := c.Replace(ctx, listwatch.Key{Namespace: "default", Name: "demo"}, state)
	if listwatch.CodeOf(err) == listwatch.NotFound {
		_, err = c.CreateIn(ctx, "default", state)
	}
	return err
}

func (s *server) collection(name string) *store.Collection {
	r, _ := kubeapi.FindResource(s.api.Resources(), name)
	return s.api.Collection(r)
}
