package clusterrelay_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"

	"github.com/listwatch/listwatch/kubeapi/clusterrelay"
)

// A relay passes on what it does not cache, such as the version of the API server, with the
// credentials of the client.
func Example() {
	apiServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s for %s", r.URL.Path, r.Header.Get("Authorization"))
	}))
	defer apiServer.Close()
	base, err := url.Parse(apiServer.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	h, err := clusterrelay.New(clusterrelay.Options{URL: base})
	if err != nil {
		fmt.Println(err)
		return
	}
	relay := httptest.NewServer(h) // also run h.Run, which finds the resources to cache
	defer relay.Close()
	request, err := http.NewRequest("GET", relay.URL+"/version", http.NoBody)
	if err != nil {
		fmt.Println(err)
		return
	}
	request.Header.Set("Authorization", "Bearer of-ann")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	fmt.Println(string(body), err)
	// Output: /version for Bearer of-ann <nil>
}
