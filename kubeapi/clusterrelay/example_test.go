package clusterrelay_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"time"

	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/clusterrelay"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/watchserver"
)

// A relay passes on what it does not cache, such as the version of the API server.
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
	h, err := clusterrelay.New(clusterrelay.Options{
		URL: base,
		Own: http.DefaultClient, // should add the credentials of the relay
		Caches: clusterrelay.CacheOptions{
			Open: func(r kubeapi.Resource, t *relay.Trace) (*relay.Relay, func()) {
				opened := relay.Open(&client.Remote{URL: base.JoinPath(r.Path("")).String()}, relay.Options{Trace: t})
				return opened, func() { opened.Close() }
			},
			Idle: time.Hour,
		},
		Server: new(watchserver.Server), Recheck: 5 * time.Minute, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(h) // run h.Run too, which finds the resources to cache
	defer server.Close()
	request, err := http.NewRequest("GET", server.URL+"/version", http.NoBody)
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
