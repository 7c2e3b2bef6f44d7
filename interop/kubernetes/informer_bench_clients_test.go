package kubernetes

import (
	"context"
	"net"

	"github.com/go-json-experiment/json/v1"
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/transport"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// A benchClient follows the objects of a resource at url until ctx ends, and calls handle for each
// added and each updated object. It returns a value that references all memory that the client
// retains.
type benchClient func(ctx context.Context, url string, dial dialFunc, handle func()) (kept any, err error)

// A dialFunc opens a connection.
type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// benchClients returns the clients for a resource of the core group. T is Kubernetes' Go
// type, and Minimal a type that has only the members used by the objects. All clients use
// HTTP/1.1 in clear text, and JSON without compression.
func benchClients[T, Minimal any](resource string,
	typed func(informers.SharedInformerFactory) cache.SharedIndexInformer,
) map[string]benchClient {
	return map[string]benchClient{
		"typed/objects-only":        decodeOnly[T](resource),
		"typed/ours":                ourBenchClient[T](resource),
		"typed/client-go":           clientGoTyped(typed),
		"minimal-type/ours":         ourBenchClient[Minimal](resource),
		"unstructured/objects-only": decodeOnly[*unstructured.Unstructured](resource),
		"unstructured/ours":         ourBenchClient[*unstructured.Unstructured](resource),
		"unstructured/client-go":    clientGoDynamic(resource),
	}
}

func remote(resource, url string, dial dialFunc) *client.Remote {
	return &client.Remote{URL: url + "/api/v1/" + resource, Network: transport.Network{Dial: dial}}
}

func ourBenchClient[T any](resource string) benchClient {
	return func(ctx context.Context, url string, dial dialFunc, handle func()) (any, error) {
		i := &informer.Informer[T]{Source: remote(resource, url, dial)}
		i.Handle(informer.Handler[T]{OnAdd: func(T, bool) { handle() }, OnUpdate: func(_, _ T) { handle() }}, nil)
		go i.Run(ctx)
		return i, nil
	}
}

// decodeOnly returns a client that lists and decodes the objects and keeps only the values. The
// cost of this client is the minimum for any informer.
func decodeOnly[T any](resource string) benchClient {
	return func(ctx context.Context, url string, dial dialFunc, handle func()) (any, error) {
		page, err := remote(resource, url, dial).List(ctx, listwatch.Query{})
		values := make([]T, len(page.Items))
		for i, o := range page.Items {
			if err := json.Unmarshal(o.Data, &values[i]); err != nil {
				return nil, err
			}
			handle()
		}
		return values, err
	}
}

func benchConfig(url string, dial dialFunc) *rest.Config {
	c := &rest.Config{Host: url, QPS: 10000, Burst: 10000, Dial: dial, DisableCompression: true}
	c.ContentType = "application/json"
	return c
}

func clientGoTyped(informer func(informers.SharedInformerFactory) cache.SharedIndexInformer) benchClient {
	return func(ctx context.Context, url string, dial dialFunc, handle func()) (any, error) {
		c, err := kubernetes.NewForConfig(benchConfig(url, dial))
		if err != nil {
			return nil, err
		}
		return runClientGo(ctx, informer(informers.NewSharedInformerFactory(c, 0)), handle)
	}
}

func clientGoDynamic(resource string) benchClient {
	return func(ctx context.Context, url string, dial dialFunc, handle func()) (any, error) {
		c, err := dynamic.NewForConfig(benchConfig(url, dial))
		if err != nil {
			return nil, err
		}
		factory := dynamicinformer.NewDynamicSharedInformerFactory(c, 0)
		return runClientGo(ctx,
			factory.ForResource(corev1.SchemeGroupVersion.WithResource(resource)).Informer(), handle)
	}
}

func runClientGo(ctx context.Context, i cache.SharedIndexInformer, handle func()) (any, error) {
	_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { handle() },
		UpdateFunc: func(_, _ any) { handle() },
	})
	go i.RunWithContext(ctx)
	return i, err
}
