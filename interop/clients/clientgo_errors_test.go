package clients

import (
	"errors"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/interop/internal/testapi"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// errorPredicate returns the name of the predicate of package apierrors that is true for err. It
// fails the test unless exactly one predicate is true.
func errorPredicate(t *testing.T, err error) string {
	t.Helper()
	var names []string
	for name, is := range map[string]func(error) bool{
		"AlreadyExists": apierrors.IsAlreadyExists, "BadRequest": apierrors.IsBadRequest,
		"Conflict":  apierrors.IsConflict,
		"Forbidden": apierrors.IsForbidden, "Gone": apierrors.IsGone, "InternalError": apierrors.IsInternalError,
		"Invalid": apierrors.IsInvalid, "MethodNotSupported": apierrors.IsMethodNotSupported,
		"NotAcceptable": apierrors.IsNotAcceptable,
		"NotFound":      apierrors.IsNotFound, "RequestEntityTooLarge": apierrors.IsRequestEntityTooLargeError,
		"ResourceExpired": apierrors.IsResourceExpired, "ServiceUnavailable": apierrors.IsServiceUnavailable,
		"Timeout":         apierrors.IsTimeout,
		"TooManyRequests": apierrors.IsTooManyRequests, "Unauthorized": apierrors.IsUnauthorized,
		"UnsupportedMediaType": apierrors.IsUnsupportedMediaType,
	} {
		if is(err) {
			names = append(names, name)
		}
	}
	if len(names) != 1 {
		t.Errorf("%v (%T) satisfies the predicates %q, want exactly one", err, err, names)
	}
	// IsUnexpectedServerError is true if client-go cannot decode the body of an error response.
	if apierrors.IsUnexpectedServerError(err) {
		t.Errorf("%v: the body was not a Status", err)
	}
	return strings.Join(names, " ")
}

// wantError fails the test unless err satisfies the predicate with the wanted name, and no other
// predicate. It returns the Status of err.
func wantError(t *testing.T, err error, want string) *metav1.Status {
	t.Helper()
	if got := errorPredicate(t, err); got != want {
		t.Errorf("got %v, which is %s, want %s", err, got, want)
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		t.Fatalf("%v has no Status", err)
	}
	s := status.Status()
	return &s
}

func TestWriteErrorsMatchPredicates(t *testing.T) {
	forEachProtocol(t, func(t *testing.T, p testapi.Protocol) {
		s := testapi.Start(t)
		pods := newClientset(t, s.Config(p)).CoreV1().Pods("default")
		ctx := t.Context()
		stale := testkit.Must(pods.Create(ctx, pod("a", nil), metav1.CreateOptions{}))(t)
		testkit.Must(pods.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"labels":{"k":"v"}}}`),
			metav1.PatchOptions{}))(t)

		_, err := pods.Create(ctx, pod("a", nil), metav1.CreateOptions{})
		if d := wantError(t, err, "AlreadyExists").Details; d == nil || d.Name != "a" || d.Kind != "pods" {
			t.Errorf("got details %+v, want pods a", d)
		}
		stale.Spec.NodeName = "n"
		_, err = pods.Update(ctx, stale, metav1.UpdateOptions{})
		wantError(t, err, "Conflict")
		_, err = pods.UpdateStatus(ctx, stale, metav1.UpdateOptions{})
		wantError(t, err, "Conflict")
		_, err = pods.Patch(ctx, "a", types.MergePatchType,
			[]byte(`{"metadata":{"resourceVersion":"`+stale.ResourceVersion+`"}}`), metav1.PatchOptions{})
		wantError(t, err, "Conflict")
		for _, only := range []*metav1.Preconditions{
			{UID: new(types.UID("other"))},
			{ResourceVersion: &stale.ResourceVersion},
		} {
			wantError(t, pods.Delete(ctx, "a", metav1.DeleteOptions{Preconditions: only}), "Conflict")
		}

		wantError(t, pods.Delete(ctx, "missing", metav1.DeleteOptions{}), "NotFound")
		_, err = pods.Update(ctx, pod("missing", nil), metav1.UpdateOptions{})
		wantError(t, err, "NotFound")
		_, err = pods.Patch(ctx, "missing", types.JSONPatchType, []byte(`[]`), metav1.PatchOptions{})
		wantError(t, err, "NotFound")

		_, err = pods.Create(ctx, pod("Not A Name", map[string]string{"": "v"}), metav1.CreateOptions{})
		wantCauses(t, wantError(t, err, "Invalid"), "metadata.name", "metadata.labels")
		_, err = pods.Patch(ctx, "a", types.JSONPatchType,
			[]byte(`[{"op":"test","path":"/metadata/name","value":"b"}]`), metav1.PatchOptions{})
		wantError(t, err, "Invalid")
		_, err = pods.Patch(ctx, "a", types.JSONPatchType, []byte(`[{"op":"leap","path":"/"}]`), metav1.PatchOptions{})
		wantError(t, err, "Invalid")
		huge := configMap("huge", nil, map[string]string{"k": strings.Repeat("x", 4<<20)})
		_, err = newClientset(t, s.Config(p)).CoreV1().ConfigMaps("default").Create(ctx, huge, metav1.CreateOptions{})
		wantError(t, err, "RequestEntityTooLarge")
	})
}

// wantCauses fails the test unless s has a cause for each of the fields.
func wantCauses(t *testing.T, s *metav1.Status, fields ...string) {
	t.Helper()
	for _, field := range fields {
		found := false
		if s.Details != nil {
			for _, c := range s.Details.Causes {
				found = found || c.Field == field && c.Message != "" && c.Type != ""
			}
		}
		if !found {
			t.Errorf("got details %+v, want a cause for field %s", s.Details, field)
		}
	}
}

func TestReadErrorsMatchPredicates(t *testing.T) {
	client := newClientset(t, testapi.Start(t).Config(testapi.HTTP1))
	ctx, pods := t.Context(), client.CoreV1().Pods("default")
	_, err := pods.Get(ctx, "missing", metav1.GetOptions{})
	if d := wantError(t, err, "NotFound").Details; d == nil || d.Name != "missing" || d.Kind != "pods" {
		t.Errorf("got details %+v, want pods missing", d)
	}
	_, err = client.BatchV1().Jobs("default").List(ctx, metav1.ListOptions{})
	wantError(t, err, "NotFound")
	for _, o := range []metav1.ListOptions{
		{LabelSelector: "a in ("},
		{FieldSelector: "spec.unknown=1"},
		{ResourceVersion: "new"},
		{Continue: "what"},
		{TimeoutSeconds: new(int64(-1))},
	} {
		_, err = pods.List(ctx, o)
		wantError(t, err, "BadRequest")
		if o.Continue == "" {
			_, err = pods.Watch(ctx, o)
			wantError(t, err, "BadRequest")
		}
	}
	_, err = pods.Watch(ctx, metav1.ListOptions{SendInitialEvents: new(true)})
	wantCauses(t, wantError(t, err, "Invalid"), "resourceVersionMatch")
	rest := client.CoreV1().RESTClient()
	wantError(t, rest.Post().AbsPath("/api/v1/pods").Do(ctx).Error(), "MethodNotSupported")
	wantError(t, rest.Get().AbsPath("/api/v1/pods").SetHeader("Accept", "text/csv").Do(ctx).Error(), "NotAcceptable")
}

func TestCompactedVersionIsExpired(t *testing.T) {
	forEachProtocol(t, func(t *testing.T, p testapi.Protocol) {
		s := testapi.Start(t)
		client := newClientset(t, s.Config(p))
		ctx, pods := t.Context(), client.CoreV1().Pods("default")
		for _, name := range []string{"a", "b", "c"} {
			testkit.Must(pods.Create(ctx, pod(name, nil), metav1.CreateOptions{}))(t)
		}
		page := testkit.Must(pods.List(ctx, metav1.ListOptions{Limit: 1}))(t)
		testkit.Must(pods.Create(ctx, pod("d", nil), metav1.CreateOptions{}))(t)
		s.DB.Compact()

		_, err := pods.List(ctx, metav1.ListOptions{Limit: 1, Continue: page.Continue})
		next := wantError(t, err, "ResourceExpired").Continue
		rest := testkit.Must(pods.List(ctx, metav1.ListOptions{Continue: next}))(t)
		if len(rest.Items) != 3 || rest.Items[0].Name != "b" {
			t.Errorf("the continue token of the error returned %v, want b, c and d", rest.Items)
		}
		_, err = pods.List(ctx,
			metav1.ListOptions{
				ResourceVersion:      page.ResourceVersion,
				ResourceVersionMatch: metav1.ResourceVersionMatchExact,
			})
		wantError(t, err, "ResourceExpired")
		wantError(t, initialWatchError(t, client, metav1.ListOptions{ResourceVersion: page.ResourceVersion}),
			"ResourceExpired")
	})
}

// initialWatchError opens a watch of pods whose only event must be an error, and returns the error.
func initialWatchError(t *testing.T, client kubernetes.Interface, o metav1.ListOptions) error {
	t.Helper()
	w := testkit.Must(client.CoreV1().Pods(corev1.NamespaceDefault).Watch(t.Context(), o))(t)
	defer w.Stop()
	e := <-w.ResultChan()
	if e.Type != watch.Error {
		t.Fatalf("got %v, want ERROR", e)
	}
	if more, ok := <-w.ResultChan(); ok {
		t.Errorf("got %v after the error", more)
	}
	return apierrors.FromObject(e.Object)
}

// The server waits for a future version, and then responds with the error that a reflector expects.
func TestFutureVersionIsTooLarge(t *testing.T) {
	t.Parallel()
	s := testapi.Start(t)
	client := newClientset(t, s.Config(testapi.HTTP1))
	future := (s.DB.Version() + 1000).String()
	watched := make(chan error, 1)
	go func() {
		w, err := client.CoreV1().Pods("default").Watch(t.Context(), metav1.ListOptions{ResourceVersion: future})
		if err == nil {
			err = apierrors.FromObject((<-w.ResultChan()).Object)
		}
		watched <- err
	}()
	// By default client-go would retry ten times, because the response has a Retry-After.
	list := client.CoreV1().RESTClient().Get().AbsPath("/api/v1/pods").Param("resourceVersion",
		future).MaxRetries(0).Do(t.Context())
	for _, err := range []error{list.Error(), <-watched} {
		wantError(t, err, "Timeout")
		if !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
			t.Errorf("%v has no cause ResourceVersionTooLarge", err)
		}
		if seconds, ok := apierrors.SuggestsClientDelay(err); !ok || seconds < 1 {
			t.Errorf("%v suggests a delay of %d s, want at least 1", err, seconds)
		}
	}
}

// If the limit of open watches is reached, the server refuses the next watch with a Retry-After,
// and client-go retries after that delay.
func TestClientRetriesARefusedWatch(t *testing.T) {
	t.Parallel()
	s := testapi.Start(t)
	s.Restart(func() { s.API.Server.Limits.Watches = 1 })
	client := newClientset(t, s.Config(testapi.HTTP1))
	first := testkit.Must(client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{}))(t)
	_, err := client.CoreV1().RESTClient().Get().AbsPath("/api/v1/pods").Param("watch",
		"1").MaxRetries(0).Watch(t.Context())
	wantError(t, err, "TooManyRequests")
	if seconds, ok := apierrors.SuggestsClientDelay(err); !ok || seconds < 1 {
		t.Errorf("%v suggests a delay of %d s, want at least 1", err, seconds)
	}
	var recorder requestRecorder
	second := make(chan error, 1)
	refused := make(chan struct{})
	c := recorder.record(s.Config(testapi.HTTP1))
	c.Wrap(signalFirstResponse(refused))
	retrying := newClientset(t, c)
	go func() {
		w, err := retrying.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
		if err == nil {
			w.Stop()
		}
		second <- err
	}()
	<-refused
	first.Stop()
	if err := <-second; err != nil {
		t.Error(err)
	}
	if n := len(recorder.requests("/pods")); n < 2 {
		t.Errorf("got %d requests, want a refused one and a retry", n)
	}
}
