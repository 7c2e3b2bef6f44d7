package kubetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/internal/apistatus"
	"github.com/listwatch/listwatch/kubeapi/kubetest/internal/admission"
	"github.com/listwatch/listwatch/kubeapi/kubetest/internal/collector"
	"github.com/listwatch/listwatch/kubeapi/kubetest/internal/rules"
	"github.com/listwatch/listwatch/kubeapi/protobody"
	"github.com/listwatch/listwatch/store"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// An action is a subresource that is not a part of its object. A write to it starts an operation,
// such as an eviction.
type action struct {
	method, plural, subresource string
	// kind is the kind of the body if it is admitted like a new object.
	kind schema.GroupVersionKind
	// do performs the operation and returns the response. body is JSON.
	do func(ctx context.Context, objects collector.Resource, key listwatch.Key, body []byte) (any, error)
}

// newActions returns the actions of the core group that tests use.
func newActions(a *authority) []action {
	return []action{
		{http.MethodPost, "pods", "binding", corev1.SchemeGroupVersion.WithKind("Binding"), bind},
		{http.MethodPost, "pods", "eviction", policyv1.SchemeGroupVersion.WithKind("Eviction"), evict},
		{
			http.MethodPost, "serviceaccounts", "token", authenticationv1.SchemeGroupVersion.WithKind("TokenRequest"),
			a.issue,
		},
		{http.MethodPut, "namespaces", "finalize", schema.GroupVersionKind{}, finalize},
	}
}

// serveAction serves the request if it is for an action.
func (a *api) serveAction(w http.ResponseWriter, r *http.Request) (found bool) {
	t, ok := kubeapi.ParseRoute(r.URL.EscapedPath())
	i := slices.IndexFunc(a.actions, func(a action) bool {
		return ok && a.method == r.Method && t.Group == "" && a.plural == t.Plural && a.subresource == t.Subresource
	})
	if i < 0 {
		return false
	}
	verb := "create"
	if r.Method == http.MethodPut {
		verb = "update"
	}
	var body []byte
	var response any
	err := a.authority.checkAction(r.Context(), verb, t)
	if err == nil {
		body, err = readJSON(w, r)
	}
	if err == nil {
		key, objects := listwatch.Key{Namespace: t.Namespace, Name: t.Name}, a.named(t.Plural)
		if objects.Namespaced { // a POST creates the subresource in a namespace
			err = rules.RequireNamespace(r.Context(), objects.Resource, a.named("namespaces").Collection, key)
		}
		if kind := a.actions[i].kind; err == nil && !kind.Empty() {
			ctx := admission.WithWarnings(r.Context(), w)
			body, err = a.chain.Action(ctx, objects.Resource, key, t.Subresource, kind, r.URL.Query(), body)
		}
		if err == nil {
			response, err = a.actions[i].do(r.Context(), objects, key, body)
		}
	}
	if err != nil {
		apihttp.WriteError(w, r, err)
		return true
	}
	status := http.StatusCreated
	if r.Method == http.MethodPut {
		status = http.StatusOK
	}
	apihttp.WriteJSON(w, r, status, response)
	return true
}

// readJSON reads the body of r, which is JSON or Protocol Buffers.
func readJSON(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, kubeapi.DefaultMaxBodyBytes))
	if err != nil {
		return nil, err
	}
	if mediaType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); mediaType == protobody.MediaType {
		return protobody.ToJSON(body, kubeapi.DefaultMaxBodyBytes)
	}
	return rawjson.Compact(body)
}

// decode decodes body, an object of the given kind in version v1.
func decode(body []byte, kind string, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return apistatus.Undecodable(kind, "v1", err.Error())
	}
	return nil
}

var success = metav1.Status{
	TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess, Code: http.StatusCreated,
}

// bind assigns a pod to a node.
func bind(ctx context.Context, pods collector.Resource, key listwatch.Key, body []byte) (any, error) {
	var b corev1.Binding
	if err := decode(body, "Binding", &b); err != nil {
		return nil, err
	}
	// As in Kubernetes, the generation stays the same.
	spec := pods.Collection.Spec()
	spec.Generation = store.GenerationRule{Fixed: true}
	_, err := store.New(spec, pods.Collection.Backend()).Update(ctx, key, listwatch.Preconditions{},
		func(old *listwatch.Object) ([]byte, error) { return assign(old.Data, &b) })
	return success, err
}

// assign returns a pod after its binding. As in Kubernetes, it is refused if the pod has a node.
func assign(data []byte, b *corev1.Binding) ([]byte, error) {
	var p corev1.Pod
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, err
	}
	var reason string
	switch {
	case p.DeletionTimestamp != nil:
		reason = fmt.Sprintf("pod %s is being deleted, cannot be assigned to a host", p.Name)
	case p.Spec.NodeName != "":
		reason = fmt.Sprintf("pod %s is already assigned to node %q", p.Name, p.Spec.NodeName)
	case len(p.Spec.SchedulingGates) > 0:
		reason = fmt.Sprintf("pod %s has non-empty .spec.schedulingGates", p.Name)
	}
	if reason != "" {
		resource := schema.GroupResource{Resource: "pods/binding"}
		return nil, apistatus.Convert(apierrors.NewConflict(resource, p.Name, errors.New(reason)))
	}
	scheduled := corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(),
	}
	isOld := func(c corev1.PodCondition) bool { return c.Type == scheduled.Type }
	conditions := append(slices.DeleteFunc(p.Status.Conditions, isOld), scheduled)
	patch, err := json.Marshal(map[string]any{
		"metadata": metav1.ObjectMeta{Annotations: b.Annotations, Labels: b.Labels},
		"spec":     map[string]any{"nodeName": b.Target.Name},
		"status":   map[string]any{"conditions": conditions},
	})
	if err != nil {
		return nil, err
	}
	return rawjson.Merge(data, patch)
}

// evict deletes a pod with the options in the body. Disruption budgets have no effect, because no
// controller computes them.
func evict(ctx context.Context, pods collector.Resource, key listwatch.Key, body []byte) (any, error) {
	var e struct{ DeleteOptions metav1.DeleteOptions }
	if err := decode(body, "Eviction", &e); err != nil {
		return nil, err
	}
	from := pods.Collection
	if len(e.DeleteOptions.DryRun) > 0 {
		from = from.DryRun()
	}
	var conditions listwatch.Preconditions
	if p := e.DeleteOptions.Preconditions; p != nil && p.UID != nil {
		conditions.UID = string(*p.UID)
	}
	_, _, err := pods.Delete(ctx, from, key, conditions, e.DeleteOptions)
	return success, err
}

// finalize replaces the finalizers in the spec of a namespace. If none remain, the namespace no
// longer waits until it is empty.
func finalize(ctx context.Context, namespaces collector.Resource, key listwatch.Key, body []byte) (any, error) {
	var ns corev1.Namespace
	if err := decode(body, "Namespace", &ns); err != nil {
		return nil, err
	}
	replace := func(old *listwatch.Object) ([]byte, error) {
		return rules.FinalizeNamespace(old.Data, ns.Spec.Finalizers)
	}
	o, err := namespaces.Collection.Update(ctx, key, listwatch.Preconditions{}, replace)
	if err != nil {
		return nil, err
	}
	return json.RawMessage(o.Data), nil
}
