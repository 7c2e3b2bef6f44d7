package examples

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// FollowPods prints the names of all existing and new pods until ctx ends.
func FollowPods(ctx context.Context, url string, out io.Writer) error {
	client, err := kubernetes.NewForConfig(&rest.Config{Host: url})
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	defer factory.Shutdown()
	_, err = factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(pod any) { fmt.Fprintln(out, pod.(*corev1.Pod).Name) },
	})
	factory.Start(ctx.Done())
	<-ctx.Done()
	return err
}
