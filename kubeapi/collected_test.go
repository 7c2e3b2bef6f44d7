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
			if got := a.want(t, 200, "DELETE", one, tt.options); !strings.Contains(got, want) ||
				!strings.Contains(got, "deletionTimestamp") {
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
	updated := a.want(t, 200, "PUT", path+"/a",
		`{"metadata":{"name":"a"},"spec":{"nodeName":"n"},"status":{"phase":"Failed"}}`)
	if strings.Contains(created, "Failed") || !strings.Contains(updated, "Running") {
		t.Errorf("got %s and %s, want only the status of the subresource", created, updated)
	}
}

// TestCreatesNameTheDeletion creates an object whose deletion a finalizer delays.
func TestCreatesNameTheDeletion(t *testing.T) {
	a := startServer(t, nil)
	body := `{"metadata":{"name":"a","finalizers":["x.example.com/y"]}}`
	a.want(t, 201, "POST", configMaps, body)
	if got := a.want(t, 409, "POST", configMaps, body); !strings.Contains(got,
		`"message":"configmaps \"a\" already exists"`) {
		t.Errorf("got %s, want the usual message", got)
	}
	a.want(t, 200, "DELETE", configMaps+"/a", "")
	if got := a.want(t, 409, "POST", configMaps, body); !strings.Contains(got,
		`"message":"object is being deleted: configmaps \"a\" already exists"`) {
		t.Errorf("got %s, want a message that names the deletion", got)
	}
}

// TestFailedPreconditionsNameTheCause deletes an object with preconditions that do not hold.
func TestFailedPreconditionsNameTheCause(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", configMaps, `{"metadata":{"name":"a"}}`)
	for condition, want := range map[string]string{
		`"uid":"b"`:             "might have been deleted and then recreated",
		`"resourceVersion":"0"`: "might have been modified\"",
	} {
		if got := a.want(t, 409, "DELETE", configMaps+"/a",
			`{"preconditions":{`+condition+`}}`); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %q", condition, got, want)
		}
	}
}
