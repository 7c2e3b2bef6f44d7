package metrics_test

import (
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/observe/metrics"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/watchserver"
)

func Example() {
	type flag struct {
		listwatch.Metadata `json:"metadata"`
	}
	flags := memory.New[flag]()
	m := metrics.New()
	server := &watchserver.Server{Source: flags, Trace: m.Trace()}
	m.AddServer(server)
	m.AddCollection(watchserver.Resource{Version: "v1", Name: "flag"}, store.CollectionOf(flags))

	server.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))

	scrape := httptest.NewRecorder()
	m.Handler().ServeHTTP(scrape, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(scrape.Body.String()) {
		if strings.HasPrefix(line, "listwatch_lists_total") {
			fmt.Print(line)
		}
	}
	// Output: listwatch_lists_total{group="",resource="flag",version="v1"} 1
}
