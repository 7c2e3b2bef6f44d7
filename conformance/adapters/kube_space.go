package adapters

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
)

// cleanTime is how long it may take to remove what a case has made.
const cleanupTimeout = 10 * time.Second

func (c *KubeServer) nextSpace() string { return fmt.Sprintf("%s-%d", c.run, c.spaces.Add(1)) }

// site gives a case a namespace of its own.
func (c *KubeServer) site(t harness.T, _ harness.Setup) *harness.Instance {
	t.Helper()
	space := c.nextSpace()
	if err := c.makeSpace(t.Context(), space); err != nil {
		t.Fatalf("make namespace %s: %v", space, err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), cleanupTimeout)
		defer cancel()
		if err := c.dropSpace(ctx, space); err != nil {
			t.Logf("delete namespace %s: %v", space, err)
		}
	})
	return c.siteIn(space)
}

func (c *KubeServer) siteIn(space string) *harness.Instance {
	store := &kubeStore{KubeServer: c, space: space, last: map[string]string{}}
	return &harness.Instance{
		URL: c.rest.base.JoinPath(c.resource.Path(space)), Kind: c.resource.Kind, KubernetesPath: c.rest.base.JoinPath(c.resource.Path("")).Path,
		Namespace: space, Network: c.access.network(), Header: c.header, Store: store,
	}
}

const spacesPath = "/api/v1/namespaces"

func (c *KubeServer) makeSpace(ctx context.Context, space string) error {
	c.mu.Lock()
	c.open[space] = true
	c.mu.Unlock()
	if !c.makesSpaces {
		// There is nothing to make, but a server that has gone must show before the case.
		return c.rest.ask(ctx, "GET", c.resource.Path(space), nil, nil, nil)
	}
	body := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": space}}
	return c.rest.ask(ctx, "POST", spacesPath, nil, body, nil)
}

// dropSpace deletes the objects of a namespace, and it.
func (c *KubeServer) dropSpace(ctx context.Context, space string) error {
	c.mu.Lock()
	delete(c.open, space)
	c.mu.Unlock()
	err := c.rest.ask(ctx, "DELETE", c.resource.Path(space), nil, nil, nil)
	if c.makesSpaces {
		err = errors.Join(err, c.rest.ask(ctx, "DELETE", spacesPath+"/"+space, nil, nil, nil))
	}
	if errors.Is(err, listwatch.NotFound) {
		return nil
	}
	return err
}
