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

func (k *KubeServer) nextNamespace() string { return fmt.Sprintf("%s-%d", k.run, k.namespaces.Add(1)) }

// openInstance creates a namespace for a case.
func (k *KubeServer) openInstance(t harness.T, _ harness.Setup) *harness.Instance {
	t.Helper()
	namespace := k.nextNamespace()
	if err := k.createNamespace(t.Context(), namespace); err != nil {
		t.Fatalf("create namespace %s: %v", namespace, err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), cleanupTimeout)
		defer cancel()
		if err := k.deleteNamespace(ctx, namespace); err != nil {
			t.Logf("delete namespace %s: %v", namespace, err)
		}
	})
	return k.instanceIn(namespace)
}

func (k *KubeServer) instanceIn(namespace string) *harness.Instance {
	store := &kubeStore{KubeServer: k, namespace: namespace, versions: map[string]string{}}
	in := &harness.Instance{
		URL: k.rest.base.JoinPath(k.resource.path(namespace)), Kind: k.resource.kind,
		KubernetesPath: k.rest.base.JoinPath(k.resource.path("")).Path,
		Namespace:      namespace, Network: k.options.network(), Header: k.header, Store: store,
	}
	history := k.options.History
	if history.Restart != "" {
		in.Restart = func(ctx context.Context) error {
			return history.restart(ctx, k.rest, k.resource.path(namespace))
		}
	}
	if history != (History{}) {
		in.Compact = func(ctx context.Context) error {
			return history.compact(ctx, k.rest, k.resource.path(namespace))
		}
		in.CompactEndsWatches = history.CompactURL == ""
	}
	return in
}

const namespacesPath = "/api/v1/namespaces"

func (k *KubeServer) createNamespace(ctx context.Context, namespace string) error {
	k.mu.Lock()
	k.open[namespace] = true
	k.mu.Unlock()
	if !k.createsNamespaces {
		// There is nothing to create, but an unreachable server must be detected before the
		// case starts.
		return k.rest.do(ctx, "GET", k.resource.path(namespace), nil, nil, nil)
	}
	body := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}}
	return k.rest.do(ctx, "POST", namespacesPath, nil, body, nil)
}

// deleteNamespace deletes a namespace and its objects.
func (k *KubeServer) deleteNamespace(ctx context.Context, namespace string) error {
	k.mu.Lock()
	delete(k.open, namespace)
	k.mu.Unlock()
	err := k.rest.do(ctx, "DELETE", k.resource.path(namespace), nil, nil, nil)
	if k.createsNamespaces {
		err = errors.Join(err, k.rest.do(ctx, "DELETE", namespacesPath+"/"+namespace, nil, nil, nil))
	}
	if errors.Is(err, listwatch.NotFound) {
		return nil
	}
	return err
}
