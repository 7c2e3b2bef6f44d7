package adapters

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
)

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// define creates a custom resource for this run and waits until it is served.
func (c *KubeServer) define(ctx context.Context) error {
	suffix := strings.TrimPrefix(c.run, "conformance-")
	r := resource{
		group: "conformance.example.com", version: "v1", plural: "things" + suffix,
		kind: "Thing" + suffix, namespaced: true,
	}
	name := r.String()
	if err := c.rest.do(ctx, "POST", definitionsPath, nil, definition(name, r), nil); err != nil {
		if errors.Is(err, listwatch.NotFound) {
			return invalidf("the server has neither ConfigMaps nor custom resources: set --resource to one of its resources")
		}
		return err
	}
	c.definition = name
	return c.awaitServed(ctx, r)
}

// definition returns a CustomResourceDefinition for r whose objects may have any spec
// (Kubernetes, "Extend the Kubernetes API with CustomResourceDefinitions").
func definition(name string, r resource) map[string]any {
	type m = map[string]any
	spec := m{
		"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": m{"phase": m{"type": "string"}},
	}
	return m{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": m{"name": name},
		"spec": m{
			"group": r.group, "scope": "Namespaced",
			"names": m{"plural": r.plural, "kind": r.kind, "listKind": r.kind + "List", "singular": strings.ToLower(r.kind)},
			"versions": []m{{
				"name": r.version, "served": true, "storage": true, "selectableFields": []m{{"jsonPath": ".spec.phase"}},
				"schema": m{"openAPIV3Schema": m{"type": "object", "properties": m{"spec": spec}}},
			}},
		},
	}
}

// awaitServed waits until the objects of r can be listed.
func (c *KubeServer) awaitServed(ctx context.Context, r resource) error {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		found, err := c.discover(ctx, r)
		if err == nil && found != nil {
			if err = c.rest.do(ctx, "GET", r.path("default"), nil, nil, nil); err == nil {
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
	return c.rest.do(ctx, "DELETE", definitionsPath+"/"+c.definition, nil, nil, nil)
}
