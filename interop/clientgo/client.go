package main

import (
	"net/http"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// newClient returns a client for the collection of r, and the options that the URL of r contains.
func newClient(r request) (dynamic.ResourceInterface, metav1.ListOptions) {
	u, err := url.Parse(r.URL)
	if err != nil {
		panic(err) // the suite sends only valid URLs
	}
	c := &rest.Config{Host: u.Scheme + "://" + u.Host, QPS: -1}
	c.BearerToken = strings.TrimPrefix(r.Headers["Authorization"], "Bearer ")
	c.CAData, c.NextProtos = []byte(r.CA), []string{"http/1.1"}
	c.WrapTransport = func(next http.RoundTripper) http.RoundTripper { return &rewriter{next, r, u} }
	client, err := dynamic.NewForConfig(c)
	if err != nil {
		panic(err)
	}
	q := u.Query()
	o := metav1.ListOptions{
		LabelSelector: q.Get("labelSelector"), FieldSelector: q.Get("fieldSelector"),
		ResourceVersion: r.ResourceVersion, AllowWatchBookmarks: q.Has("allowWatchBookmarks"),
	}
	return client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "things"}), o
}

// A rewriter sends requests to the path of the suite, and reports each opened watch.
type rewriter struct {
	next    http.RoundTripper
	request request
	url     *url.URL
}

// RoundTrip implements http.RoundTripper.
func (r *rewriter) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	if req.URL.Path == "/api/v1/things" { // not the target of a redirect
		req.URL.Path = r.url.Path
		if !r.request.Resume {
			req.URL.RawQuery = r.url.RawQuery
		}
		for name, value := range r.request.Headers {
			if name != "Authorization" { // client-go adds it
				req.Header.Set(name, value)
			}
		}
	}
	response, err := r.next.RoundTrip(req)
	if err == nil && response.StatusCode/100 == 2 && req.URL.Query().Has("watch") {
		headers := map[string]string{}
		for name := range response.Header {
			headers[name] = response.Header.Get(name)
		}
		send(reply{"id": r.request.ID, "status": response.StatusCode, "headers": headers, "transport": "h1"})
	}
	return response, err
}
