package echo_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/listwatch/listwatch/watchserver"
	"github.com/listwatch/listwatch/watchserver/echo"
)

// With the handler in its mux, a server can be examined with "listwatch doctor".
func Example() {
	mux := http.NewServeMux()
	mux.Handle(echo.Path, &echo.Handler{Server: &watchserver.Server{}})
	server := httptest.NewServer(mux)
	defer server.Close()

	response, err := http.Get(server.URL + echo.Path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	var report echo.Report
	err = json.NewDecoder(response.Body).Decode(&report)
	fmt.Println(report.Protocol, report.Header["Accept-Encoding"], err)
	// Output: HTTP/1.1 [gzip] <nil>
}
