package servecmd

import (
	"context"
	"fmt"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/store"
)

// demoPods is how many pods the demo keeps.
const demoPods = 5

// runDemo makes one change each interval until ctx ends: pods come, start to run, change a label and go, in an endless round, and a
// deployment changes its size.
func (s *server) runDemo(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for i := 0; ; i++ {
		if err := s.demoStep(ctx, i); err != nil && ctx.Err() == nil {
			// Somebody else may have deleted what the demo made; it goes on with the next.
			s.Log.Debug("demo", "step", i, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// demoStep makes change number i.
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
		_, err = pods.Delete(ctx, listwatch.Key{Namespace: "default", Name: demoPodName(n - demoPods)}, store.Preconditions{})
	}
	return err
}

func demoPodName(n int) string { return fmt.Sprintf("demo-%d", n) }

func podState(n int, color, phase string) []byte {
	return fmt.Appendf(nil, `{"metadata":{"name":%q,"labels":{"app":"demo","color":%q}},"spec":{"nodeName":"node-%d"},"status":{"phase":%q}}`,
		demoPodName(n), color, n%2, phase)
}

// scale gives the deployment of the demo its size.
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
