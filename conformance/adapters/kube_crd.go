package adapters

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi"
)

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// define makes a custom resource for this run and waits until it is served.
func (c *KubeServer) define(ctx context.Context) error {
	suffix := strings.TrimPrefix(c.run, "conformance-")
	r := kubeapi.Resource{
		Group: "conformance.example.com", Version: "v1", Plural: "things" + suffix,
		Kind: "Thing" + suffix, Namespaced: true,
	}
	name := r.Plural + "." + r.Group
	if err := c.rest.ask(ctx, "POST", definitionsPath, nil, definition(name, r), nil); err != nil {
		if errors.Is(err, listwatch.NotFound) {
			return invalidf("the server has no configmaps to work on and no custom resources: name a resource of it")
		}
		return err
	}
	c.definition = name
	return c.awaitServed(ctx, r)
}

// definition is a CustomResourceDefinition for r, whose objects keep any spec (Kubernetes, "Extend the Kubernetes API with
// CustomResourceDefinitions").
func definition(name string, r kubeapi.Resource) map[string]any {
	type m = map[string]any
	spec := m{
		"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": m{"phase": m{"type": "string"}},
	}
	return m{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": m{"name": name},
		"spec": m{
			"group": r.Group, "scope": "Namespaced",
			"names": m{"plural": r.Plural, "kind": r.Kind, "listKind": r.Kind + "List", "singular": strings.ToLower(r.Kind)},
			"versions": []m{{
				"name": r.Version, "served": true, "storage": true, "selectableFields": []m{{"jsonPath": ".spec.phase"}},
				"schema": m{"openAPIV3Schema": m{"type": "object", "properties": m{"spec": spec}}},
			}},
		},
	}
}

// awaitServed asks until the objects of r can be listed.
func (c *KubeServer) awaitServed(ctx context.Context, r kubeapi.Resource) error {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		found, err := c.discover(ctx, r)
		if err == nil && found != nil {
			if err = c.rest.ask(ctx, "GET", r.Path("default"), nil, nil, nil); err == nil {
				c.resource = *found
				return nil
			}
		}
		if err != nil && !errors.Is(err, listwatch.NotFound) && !errors.Is(err, listwatch.Unavailable) {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return &listwatch.Error{Code: listwatch.Unavailable, Message: "the custom resource " + c.definition + " is not served", Err: context.Cause(ctx)}
		}
	}
}

func (c *KubeServer) removeDefinition(ctx context.Context) error {
	if c.definition == "" {
		return nil
	}
	return c.rest.ask(ctx, "DELETE", definitionsPath+"/"+c.definition, nil, nil, nil)
}
