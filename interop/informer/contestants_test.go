package informer

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

// A contestant follows the objects of a resource at url until ctx ends, and calls handle for each add and each update. What it returns holds on to what
// it keeps.
type contestant func(ctx context.Context, url string, dial dialer, handle func()) (keeps any, err error)

// A dialer makes connections.
type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// contestantsOf are those for a resource of the core group, its Go type, and one that has only what the objects have. They have the same type two by two, and all speak HTTP/1.1 in
// clear text and JSON without compression.
func contestantsOf[T, Own any](resource string, typed func(informers.SharedInformerFactory) cache.SharedIndexInformer) map[string]contestant {
	return map[string]contestant{
		"typed/objects-alone":        decoded[T](resource),
		"typed/ours":                 ours[T](resource),
		"typed/client-go":            clientGoTyped(typed),
		"own-type/ours":              ours[Own](resource),
		"unstructured/objects-alone": decoded[*unstructured.Unstructured](resource),
		"unstructured/ours":          ours[*unstructured.Unstructured](resource),
		"unstructured/client-go":     clientGoDynamic(resource),
	}
}

func remote(resource, url string, dial dialer) *client.Remote {
	return &client.Remote{URL: url + "/api/v1/" + resource, Network: transport.Network{Dial: dial}}
}

func ours[T any](resource string) contestant {
	return func(ctx context.Context, url string, dial dialer, handle func()) (any, error) {
		i := &informer.Informer[T]{Source: remote(resource, url, dial)}
		i.Handle(informer.Handler[T]{OnAdd: func(T, bool) { handle() }, OnUpdate: func(_, _ T) { handle() }}, nil)
		go i.Run(ctx)
		return i, nil
	}
}

// decoded keeps the values alone, as our informer's decoder makes them: what it must keep at least.
func decoded[T any](resource string) contestant {
	return func(ctx context.Context, url string, dial dialer, handle func()) (any, error) {
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

func config(url string, dial dialer) *rest.Config {
	c := &rest.Config{Host: url, QPS: 10000, Burst: 10000, Dial: dial, DisableCompression: true}
	c.ContentType = "application/json"
	return c
}

func clientGoTyped(informer func(informers.SharedInformerFactory) cache.SharedIndexInformer) contestant {
	return func(ctx context.Context, url string, dial dialer, handle func()) (any, error) {
		c, err := kubernetes.NewForConfig(config(url, dial))
		if err != nil {
			return nil, err
		}
		return run(ctx, informer(informers.NewSharedInformerFactory(c, 0)), handle)
	}
}

func clientGoDynamic(resource string) contestant {
	return func(ctx context.Context, url string, dial dialer, handle func()) (any, error) {
		c, err := dynamic.NewForConfig(config(url, dial))
		if err != nil {
			return nil, err
		}
		factory := dynamicinformer.NewDynamicSharedInformerFactory(c, 0)
		return run(ctx, factory.ForResource(corev1.SchemeGroupVersion.WithResource(resource)).Informer(), handle)
	}
}

func run(ctx context.Context, i cache.SharedIndexInformer, handle func()) (any, error) {
	_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { handle() }, UpdateFunc: func(_, _ any) { handle() }})
	go i.RunWithContext(ctx)
	return i, err
}
