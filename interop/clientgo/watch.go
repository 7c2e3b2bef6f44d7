package main

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// single reports one stream.
func single(ctx context.Context, r request) {
	client, o := newClient(r)
	w, err := client.Watch(ctx, o)
	if err != nil {
		fail(r.ID, err)
		return
	}
	report(r, w)
}

// retryWatch watches until the suite closes the watch.
func retryWatch(ctx context.Context, r request) {
	client, o := newClient(r)
	w, err := watchtools.NewRetryWatcherWithContext(ctx, r.ResourceVersion, watcher(client, o))
	if err != nil {
		fail(r.ID, err)
		return
	}
	report(r, w)
}

func watcher(client dynamic.ResourceInterface, o metav1.ListOptions) *cache.ListWatch {
	return &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, own metav1.ListOptions) (watch.Interface, error) {
			own.LabelSelector, own.FieldSelector = o.LabelSelector, o.FieldSelector
			return client.Watch(ctx, own)
		},
	}
}

// report reports the events of w.
func report(r request, w watch.Interface) {
	for e := range w.ResultChan() {
		if e.Type != watch.Error {
			send(reply{"id": r.ID, "event": reply{"type": e.Type, "object": e.Object}})
			continue
		}
		err := apierrors.FromObject(e.Object)
		switch cause, _ := apierrors.StatusCause(err, "ClientWatchDecoding"); {
		case cause.Type != "": // made by client-go, not by the server
			send(reply{"id": r.ID, "error": err.Error(), "code": "Corrupt"})
		case r.Resume:
			fail(r.ID, err)
		default:
			send(reply{"id": r.ID, "event": reply{"type": e.Type, "object": statusOf(e.Object)}})
			send(reply{"id": r.ID, "end": true})
		}
	}
	send(reply{"id": r.ID, "end": true})
}

func statusOf(o runtime.Object) any {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return u.Object
	}
	return o
}

// fail reports that a watch was refused, or that the connection failed.
func fail(id int, err error) {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		body := status.Status()
		body.Kind, body.APIVersion = "Status", "v1"
		send(reply{"id": id, "status": body.Code, "body": body})
		return
	}
	send(reply{"id": id, "error": err.Error()})
}
