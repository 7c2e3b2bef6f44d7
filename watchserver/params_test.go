package watchserver

import (
	"net/http/httptest"
	"testing"

	"github.com/listwatch/listwatch/internal/apihttp"
)

func TestEmptyBooleanMeansTrue(t *testing.T) {
	for query, want := range map[string]bool{
		"": false, "allowWatchBookmarks": true, "allowWatchBookmarks=": true, "allowWatchBookmarks=0": false, "allowWatchBookmarks=1": true,
	} {
		r := httptest.NewRequest("GET", "/?"+query, nil)
		asked := apihttp.Parse(r)
		q, err := parseRequest(r, asked, Endpoint{})
		if err != nil || q.Bookmarks != want {
			t.Errorf("%s: got %v, error %v, want %v", query, q.Bookmarks, err, want)
		}
	}
}
