//go:build !race

package suites

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch/kubeapi/kubetest"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// configMapWebhook refuses config maps with the key bad, and adds a label to the others.
type configMapWebhook struct{}

func (configMapWebhook) Default(_ context.Context, c *corev1.ConfigMap) error {
	c.Labels = map[string]string{"default": "yes"}
	return nil
}

func (configMapWebhook) ValidateCreate(_ context.Context, c *corev1.ConfigMap) (admission.Warnings, error) {
	if _, bad := c.Data["bad"]; bad {
		return nil, errors.New("the key bad is not allowed")
	}
	return admission.Warnings{"be careful"}, nil
}

func (w configMapWebhook) ValidateUpdate(ctx context.Context, _, c *corev1.ConfigMap) (admission.Warnings, error) {
	return w.ValidateCreate(ctx, c)
}

func (configMapWebhook) ValidateDelete(context.Context, *corev1.ConfigMap) (admission.Warnings, error) {
	return nil, nil
}

// newWebhookManager returns a manager that serves the webhook.
func newWebhookManager(t testing.TB, env *kubetest.Env) ctrl.Manager {
	t.Helper()
	m, err := ctrl.NewManager(env.Config(), ctrl.Options{
		Metrics:       metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Port: -1, WebhookMux: env.WebhookMux()}),
	})
	if err != nil {
		t.Fatal(err)
	}
	var w configMapWebhook
	webhooks := ctrl.NewWebhookManagedBy(m, &corev1.ConfigMap{}).WithDefaulter(w).WithValidator(w)
	if err := webhooks.Complete(); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestManagerServesWebhooksInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := kubetest.New(t, kubetest.Options{Webhooks: []string{"testdata/webhooks"}})
		m := newWebhookManager(t, env)
		env.Run(m)

		bad := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Data: map[string]string{"bad": ""},
		}
		err := m.GetClient().Create(t.Context(), bad)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "the key bad is not allowed") {
			t.Errorf("got %v, want a refusal", err)
		}
		good := &corev1.ConfigMap{ObjectMeta: bad.ObjectMeta}
		if err := m.GetClient().Create(t.Context(), good); err != nil || good.Labels["default"] != "yes" {
			t.Errorf("got %v, %v, want the label", good, err)
		}
	})
}
