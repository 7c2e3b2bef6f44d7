//go:build !race

package components

import (
	"context"
	"fmt"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// The names of the steps that delete a namespace: the namespace with all objects, in which the
// kubelets end the pods first, and a namespace without pods. The controller begins a deletion after
// five seconds.
const (
	deletion      = "delete the namespace"
	quickDeletion = "delete a namespace without pods"
)

// quickDeletions is the number of namespaces without pods. The fastest deletion counts, because the
// machine may be busy during the others.
const quickDeletions = 3

// A scenario creates objects in a namespace and waits for the reactions of the components.
type scenario struct {
	*testing.T
	client    kubernetes.Interface
	namespace string
}

func pointer[T any](v T) *T { return &v }

func template(policy core.RestartPolicy) core.PodTemplateSpec {
	return core.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a"}},
		Spec:       core.PodSpec{RestartPolicy: policy, Containers: []core.Container{{Name: "c", Image: "i"}}},
	}
}

// must fails the test if a request fails.
func must[T any](s *scenario) func(T, error) T {
	return func(v T, err error) T {
		s.Helper()
		if err != nil {
			s.Fatal(err)
		}
		return v
	}
}

// run takes all steps. It returns how long each took.
func (s *scenario) run() map[string]time.Duration {
	times := map[string]time.Duration{}
	ctx, o := s.Context(), metav1.CreateOptions{}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}
	must[*core.Namespace](s)(s.client.CoreV1().Namespaces().Create(ctx,
		&core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, o))
	times["create the service account of a namespace"] = eventually(s.T, "a service account",
		func(ctx context.Context) (bool, error) {
			_, err := s.client.CoreV1().ServiceAccounts(s.namespace).Get(ctx, "default", metav1.GetOptions{})
			return err == nil, err
		})
	named := metav1.ObjectMeta{Name: "a"}
	deployments, jobs := s.client.AppsV1().Deployments(s.namespace), s.client.BatchV1().Jobs(s.namespace)
	must[*apps.Deployment](s)(deployments.Create(ctx, &apps.Deployment{
		ObjectMeta: named, Spec: apps.DeploymentSpec{
			Replicas: pointer(int32(3)), Selector: selector,
			Template: template(core.RestartPolicyAlways),
		},
	}, o))
	available := func(ctx context.Context) (bool, error) {
		d, err := deployments.Get(ctx, "a", metav1.GetOptions{})
		return err == nil && d.Status.ObservedGeneration == d.Generation &&
			d.Status.UpdatedReplicas == *d.Spec.Replicas &&
			d.Status.AvailableReplicas == *d.Spec.Replicas && d.Status.Replicas == *d.Spec.Replicas, err
	}
	times["make a deployment available"] = eventually(s.T, "an available deployment", available)
	must[*apps.Deployment](s)(deployments.Patch(ctx, "a", types.StrategicMergePatchType,
		[]byte(`{"spec":{"replicas":5,"template":{"metadata":{"annotations":{"a":"b"}}}}}`), metav1.PatchOptions{}))
	times["roll out a deployment"] = eventually(s.T, "the new replicas", available)
	must[*apps.DaemonSet](s)(s.client.AppsV1().DaemonSets(s.namespace).Create(ctx, &apps.DaemonSet{
		ObjectMeta: named, Spec: apps.DaemonSetSpec{Selector: selector, Template: template(core.RestartPolicyAlways)},
	}, o))
	times["run a daemon set"] = eventually(s.T, "an available daemon set", func(ctx context.Context) (bool, error) {
		d, err := s.client.AppsV1().DaemonSets(s.namespace).Get(ctx, "a", metav1.GetOptions{})
		return err == nil && d.Status.NumberAvailable == nodes, err
	})
	must[*apps.StatefulSet](s)(s.client.AppsV1().StatefulSets(s.namespace).Create(ctx, &apps.StatefulSet{
		ObjectMeta: named, Spec: apps.StatefulSetSpec{
			Replicas: pointer(int32(3)), Selector: selector,
			Template: template(core.RestartPolicyAlways),
		},
	}, o))
	times["run a stateful set"] = eventually(s.T, "an available stateful set", func(ctx context.Context) (bool, error) {
		d, err := s.client.AppsV1().StatefulSets(s.namespace).Get(ctx, "a", metav1.GetOptions{})
		return err == nil && d.Status.AvailableReplicas == 3, err
	})
	must[*batch.Job](s)(jobs.Create(ctx, &batch.Job{
		ObjectMeta: named, Spec: batch.JobSpec{
			Completions: pointer(int32(3)), Parallelism: pointer(int32(3)),
			Template: template(core.RestartPolicyNever),
		},
	}, o))
	times["complete a job"] = eventually(s.T, "a complete job", func(ctx context.Context) (bool, error) {
		j, err := jobs.Get(ctx, "a", metav1.GetOptions{})
		return err == nil && j.Status.Succeeded == 3 && j.Status.CompletionTime != nil, err
	})
	times[deletion] = s.deleteNamespace(s.namespace)
	times[quickDeletion] = s.deleteQuickly()
	return times
}

// deleteQuickly deletes several namespaces, one after the other. It returns the shortest time that
// a deletion took.
func (s *scenario) deleteQuickly() (fastest time.Duration) {
	ctx, o := s.Context(), metav1.CreateOptions{}
	for n := range quickDeletions {
		name := fmt.Sprint(s.namespace, "-", n)
		must[*core.Namespace](s)(s.client.CoreV1().Namespaces().Create(ctx,
			&core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, o))
		must[*core.ConfigMap](s)(s.client.CoreV1().ConfigMaps(name).Create(ctx,
			&core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, o))
		must[*core.Secret](s)(s.client.CoreV1().Secrets(name).Create(ctx,
			&core.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, o))
		eventually(s.T, "a service account", func(ctx context.Context) (bool, error) {
			_, err := s.client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
			return err == nil, err
		})
		if took := s.deleteNamespace(name); n == 0 || took < fastest {
			fastest = took
		}
	}
	return fastest
}

// deleteNamespace deletes a namespace. It returns how long this took.
func (s *scenario) deleteNamespace(name string) time.Duration {
	s.Helper()
	namespaces := s.client.CoreV1().Namespaces()
	if err := namespaces.Delete(s.Context(), name, metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
	return eventually(s.T, "the deletion of namespace "+name, func(ctx context.Context) (bool, error) {
		_, err := namespaces.Get(ctx, name, metav1.GetOptions{})
		return errors.IsNotFound(err), err
	})
}
