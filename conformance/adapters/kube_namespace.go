package adapters

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
)

// cleanupTimeout limits the time to remove what a case has created.
const cleanupTimeout = 10 * time.Second

func (c *KubeServer) nextNamespace() string { return fmt.Sprintf("%s-%d", c.run, c.namespaces.Add(1)) }

// openInstance creates a namespace for a case.
func (c *KubeServer) openInstance(t harness.T, _ harness.Setup) *harness.Instance {
	t.Helper()
	namespace := c.nextNamespace()
	if err := c.createNamespace(t.Context(), namespace); err != nil {
		t.Fatalf("create namespace %s: %v", namespace, err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), cleanupTimeout)
		defer cancel()
		if err := c.deleteNamespace(ctx, namespace); err != nil {
			t.Logf("delete namespace %s: %v", namespace, err)
		}
	})
	return c.instanceIn(namespace)
}

func (c *KubeServer) instanceIn(namespace string) *harness.Instance {
	store := &kubeStore{KubeServer: c, namespace: namespace, versions: map[string]string{}}
	return &harness.Instance{
		URL: c.rest.base.JoinPath(c.resource.path(namespace)), Kind: c.resource.kind, KubernetesPath: c.rest.base.JoinPath(c.resource.path("")).Path,
		Namespace: namespace, Network: c.options.network(), Header: c.header, Store: store,
	}
}

const namespacesPath = "/api/v1/namespaces"

func (c *KubeServer) createNamespace(ctx context.Context, namespace string) error {
	c.mu.Lock()
	c.open[namespace] = true
	c.mu.Unlock()
	if !c.createsNamespaces {
		// There is nothing to create, but an unreachable server must be detected before the
		// case starts.
		return c.rest.do(ctx, "GET", c.resource.path(namespace), nil, nil, nil)
	}
	body := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}}
	return c.rest.do(ctx, "POST", namespacesPath, nil, body, nil)
}

// deleteNamespace deletes a namespace and its objects.
func (c *KubeServer) deleteNamespace(ctx context.Context, namespace string) error {
	c.mu.Lock()
	delete(c.open, namespace)
	c.mu.Unlock()
	err := c.rest.do(ctx, "DELETE", c.resource.path(namespace), nil, nil, nil)
	if c.createsNamespaces {
		err = errors.Join(err, c.rest.do(ctx, "DELETE", namespacesPath+"/"+namespace, nil, nil, nil))
	}
	if errors.Is(err, listwatch.NotFound) {
		return nil
	}
	return err
}
