//go:build !race

package kubernetes

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A comparedServer is one of the two servers that receive the same requests.
type comparedServer struct {
	name, url string
	client    *http.Client
	// cbor is true if bodies and responses are CBOR, where Kubernetes supports it.
	cbor bool
	// values holds the versions and UIDs that the server has sent in the current sequence.
	// Requests refer to them, for example as @uid(widgets/n/a).
	values map[string]string
	// symbols are the names under which versions and UIDs are compared.
	symbols map[string]string
	counts  map[string]int // the number of symbols of each kind
}

// begin forgets the values and symbols of the sequence before.
func (s *comparedServer) begin() {
	s.values, s.symbols, s.counts = map[string]string{}, map[string]string{}, map[string]int{}
}

// reference matches a part of a request that stands for a value that the server has sent.
var reference = regexp.MustCompile(`@(uid|rv|old|list|continue)\(([a-z/0-9-]*)\)`)

// resolve replaces the references in text by values that the server has sent. If the server has not
// sent a value, resolve uses 1.
func (s *comparedServer) resolve(text string) string {
	return reference.ReplaceAllStringFunc(text, func(r string) string {
		if v, ok := s.values[r[1:]]; ok {
			return v
		}
		return "1"
	})
}

// open sends a request and returns the response, whose body is not read yet.
func (s *comparedServer) open(ctx context.Context, r request) (*http.Response, error) {
	url := s.url + r.path
	if r.query != "" {
		url += "?" + s.resolve(r.query)
	}
	r.body = s.resolve(r.body)
	if s.cbor {
		r = r.inCBOR()
	}
	q, err := http.NewRequestWithContext(ctx, r.method, url, strings.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	q.Header.Set("User-Agent", "random/1.0")
	for name, value := range map[string]string{"Content-Type": r.contentType, "Accept": r.accept} {
		if value != "" {
			q.Header.Set(name, value)
		}
	}
	return s.client.Do(q)
}

// send sends a request and returns the normalized response.
func (s *comparedServer) send(ctx context.Context, r request) (answer, error) {
	res, err := s.open(ctx, r)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	body, err := readJSON(res)
	if err != nil {
		return answer{}, err
	}
	return s.answer(r, res, body)
}

// clean deletes all objects, even if they have finalizers.
func (s *comparedServer) clean(ctx context.Context) error {
	for _, plural := range []string{"widgets", "gadgets", "cogs"} {
		var list struct {
			Items []metav1.PartialObjectMetadata
		}
		if err := s.decode(ctx, request{method: "GET", path: collectionPath(plural, "")}, &list); err != nil {
			return err
		}
		for _, o := range list.Items {
			path := collectionPath(plural, o.Namespace) + "/" + o.Name
			if len(o.Finalizers) > 0 {
				r := request{
					method: "PATCH", path: path, contentType: mergePatchType,
					body: `{"metadata":{"finalizers":null}}`,
				}
				if err := s.decode(ctx, r, nil); err != nil {
					return err
				}
			}
			if o.DeletionTimestamp == nil {
				if err := s.decode(ctx, request{method: "DELETE", path: path}, nil); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// decode sends a request, which must succeed, and decodes the response into v.
func (s *comparedServer) decode(ctx context.Context, r request, v any) error {
	res, err := s.open(ctx, r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := readJSON(res)
	if err == nil && res.StatusCode > 299 {
		err = fmt.Errorf("%s: %s %s: %s %s", s.name, r.method, r.path, res.Status, body)
	}
	if err == nil && v != nil {
		err = decodeExact(body, v)
	}
	return err
}
