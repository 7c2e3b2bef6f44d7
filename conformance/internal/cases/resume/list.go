package resume

import (
	"bufio"
	"encoding/json"
	"net/http"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
)

// A listPage is a decoded page of a list.
type listPage struct {
	version            listwatch.Version
	items              map[string]listwatch.Version
	continueToken      string
	remainingItemCount *int
}

// readPage decodes a response, which must be a list.
func readPage(r *harness.Response) listPage {
	r.Helper()
	r.WantStatus(http.StatusOK)
	var body struct {
		Kind, APIVersion string
		Metadata         struct {
			ResourceVersion, Continue string
			RemainingItemCount        *int
		}
		Items []struct {
			Metadata struct{ Name, Namespace, ResourceVersion string }
		}
	}
	text := r.ReadAll()
	if err := json.Unmarshal(text, &body); err != nil || body.Kind != r.Kind+"List" || body.Items == nil {
		r.Fatalf("got %s, want a %sList: %v", text, r.Kind, err)
	}
	p := listPage{
		version: parseVersion(r, body.Metadata.ResourceVersion), items: map[string]listwatch.Version{},
		continueToken: body.Metadata.Continue, remainingItemCount: body.Metadata.RemainingItemCount,
	}
	for _, item := range body.Items {
		name := item.Metadata.Name
		if namespace := r.CaseNamespace(item.Metadata.Namespace); namespace != harness.DefaultNamespace {
			name = namespace + "/" + name
		}
		p.items[name] = parseVersion(r, item.Metadata.ResourceVersion)
	}
	return p
}

func parseVersion(r *harness.Response, rv string) listwatch.Version {
	r.Helper()
	v, err := listwatch.ParseVersion(rv)
	if err != nil || v == 0 {
		r.Fatalf("got resourceVersion %q, want a positive decimal number: %v", rv, err)
	}
	return v
}

// newLister returns a function that lists the whole collection. It uses net/http with a
// connection that stays open between calls.
func newLister(e *harness.Env) func() listPage {
	c := e.HTTPClient()
	return func() listPage {
		e.Helper()
		req := &http.Request{Method: http.MethodGet, URL: e.WatchURL(""), Header: e.WithHeader(http.Header{})}
		resp, err := c.Do(req.WithContext(e.Context()))
		if err != nil {
			e.Fatal(err)
		}
		defer resp.Body.Close()
		return readPage(&harness.Response{
			Env: e, Status: resp.StatusCode, Headers: resp.Header, Body: bufio.NewReader(resp.Body),
		})
	}
}
