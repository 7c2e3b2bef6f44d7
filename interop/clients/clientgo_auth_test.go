package clients

import (
	"context"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/interop/internal/testapi"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/tokenfile"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	watchtools "k8s.io/client-go/tools/watch"
)

// startWithUsers starts a server with two users: ann is allowed everything, and bob is
// allowed to read in namespace one.
func startWithUsers(t *testing.T) *testapi.Server {
	t.Helper()
	tokens := testkit.Must(tokenfile.Read(strings.NewReader("ann-token,ann,1\nbob-token,bob,2,\"readers\"\n")))(t)
	s := testapi.Start(t)
	s.Restart(func() {
		s.API.Server.Access.Authenticator = tokens.Authenticate
		s.API.Authorize = func(_ context.Context, u kubeapi.User, a kubeapi.Attributes) error {
			reads := a.Verb == "get" || a.Verb == "list" || a.Verb == "watch"
			if u.Name == "ann" || a.Namespace == "one" && reads {
				return nil
			}
			return listwatch.Cause{Message: "readers may only read in namespace one"}
		}
	})
	return s
}

// clientsetWithToken returns a clientset that sends token.
func clientsetWithToken(t *testing.T, s *testapi.Server, p testapi.Protocol, token string) kubernetes.Interface {
	t.Helper()
	c := s.Config(p)
	c.BearerToken = token
	return newClientset(t, c)
}

func TestBearerTokensGrantPermissions(t *testing.T) {
	forEachProtocol(t, func(t *testing.T, p testapi.Protocol) {
		s := startWithUsers(t)
		ctx := t.Context()
		for _, token := range []string{"", "wrong"} {
			pods := clientsetWithToken(t, s, p, token).CoreV1().Pods("one")
			_, err := pods.List(ctx, metav1.ListOptions{})
			wantError(t, err, "Unauthorized")
			_, err = pods.Watch(ctx, metav1.ListOptions{})
			wantError(t, err, "Unauthorized")
			_, err = pods.Create(ctx, pod("a", nil), metav1.CreateOptions{})
			wantError(t, err, "Unauthorized")
			if _, err = clientsetWithToken(t, s, p, token).Discovery().ServerGroups(); !apierrors.IsUnauthorized(err) {
				t.Errorf("discovery: got %v, want Unauthorized", err)
			}
		}

		bob := clientsetWithToken(t, s, p, "bob-token").CoreV1()
		testkit.Must(clientsetWithToken(t, s, p, "ann-token").CoreV1().Pods("one").Create(ctx, pod("a", nil),
			metav1.CreateOptions{}))(t)
		testkit.Must(bob.Pods("one").Get(ctx, "a", metav1.GetOptions{}))(t)
		w := testkit.Must(bob.Pods("one").Watch(ctx, metav1.ListOptions{}))(t)
		defer w.Stop()
		if e := <-w.ResultChan(); e.Type != watch.Added {
			t.Errorf("bob received %v, want ADDED", e)
		}
		_, err := bob.Pods("").List(ctx, metav1.ListOptions{})
		wantError(t, err, "Forbidden")
		_, err = bob.Pods("two").Watch(ctx, metav1.ListOptions{})
		wantError(t, err, "Forbidden")
		err = bob.Pods("one").Delete(ctx, "a", metav1.DeleteOptions{})
		status := wantError(t, err, "Forbidden")
		if d := status.Details; d == nil || d.Kind != "pods" || d.Name != "a" {
			t.Errorf("got details %+v, want pods a", d)
		}
		for _, part := range []string{`"bob"`, "delete", `"pods"`, `"one"`, "readers may only read"} {
			if !strings.Contains(status.Message, part) {
				t.Errorf("the message does not contain %s: %s", part, status.Message)
			}
		}
	})
}

// A RetryWatcher without permission must end instead of retrying forever.
func TestRetryWatcherEndsWithoutPermission(t *testing.T) {
	s := startWithUsers(t)
	for token, wanted := range map[string]func(error) bool{
		"wrong":     apierrors.IsUnauthorized,
		"bob-token": apierrors.IsForbidden,
	} {
		c := s.Config(testapi.HTTP1)
		c.BearerToken = token
		w := testkit.Must(watchtools.NewRetryWatcherWithContext(t.Context(), s.DB.Version().String(),
			listWatchIn(t, c, "two")))(t)
		if e := <-w.ResultChan(); e.Type != watch.Error || !wanted(apierrors.FromObject(e.Object)) {
			t.Errorf("with token %s: got %v", token, e)
		}
		<-w.Done()
	}
}
