package kubeapi

import (
	"strings"
	"testing"
)

func TestPropagationPolicyAddsFinalizer(t *testing.T) {
	const one = configMaps + "/a"
	for _, tt := range []struct {
		options, want string
	}{
		{`{"propagationPolicy":"Foreground"}`, `"finalizers":["x.example.com/y","foregroundDeletion"]`},
		{`{"propagationPolicy":"Orphan"}`, `"finalizers":["x.example.com/y","orphan"]`},
		{`{"orphanDependents":true}`, `"finalizers":["x.example.com/y","orphan"]`},
		{`{"propagationPolicy":"Background"}`, `"finalizers":["x.example.com/y"]`},
	} {
		for _, collected := range []bool{true, false} {
			a := startServer(t, func(h *Handler) { h.Collected = collected })
			a.want(t, 201, "POST", configMaps, `{"metadata":{"name":"a","finalizers":["x.example.com/y"]}}`)
			a.want(t, 200, "DELETE", one+"?dryRun=All", tt.options)
			if got := a.want(t, 200, "GET", one, ""); strings.Contains(got, "deletionTimestamp") {
				t.Errorf("%s: a dry run stored %s", tt.options, got)
			}
			want := tt.want
			if !collected {
				want = `"finalizers":["x.example.com/y"]`
			}
			if got := a.want(t, 200, "DELETE", one, tt.options); !strings.Contains(got, want) || !strings.Contains(got, "deletionTimestamp") {
				t.Errorf("%s, collected %t: got %s, want %s", tt.options, collected, got, want)
			}
		}
	}
}

func TestSeparateStatusIgnoresOtherWrites(t *testing.T) {
	const path = "/api/v1/namespaces/default/pods"
	a := startServer(t, func(h *Handler) { h.resources[0].SeparateStatus = true })
	created := a.want(t, 201, "POST", path, `{"metadata":{"name":"a"},"status":{"phase":"Failed"}}`)
	a.want(t, 200, "PUT", path+"/a/status", `{"metadata":{"name":"a"},"status":{"phase":"Running"}}`)
	updated := a.want(t, 200, "PUT", path+"/a", `{"metadata":{"name":"a"},"spec":{"nodeName":"n"},"status":{"phase":"Failed"}}`)
	if strings.Contains(created, "Failed") || !strings.Contains(updated, "Running") {
		t.Errorf("got %s and %s, want only the status of the subresource", created, updated)
	}
}
