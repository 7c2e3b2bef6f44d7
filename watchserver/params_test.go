package watchserver

import (
	"net/http/httptest"
	"testing"
)

func TestEmptyBooleanMeansTrue(t *testing.T) {
	for query, want := range map[string]bool{
		"": false, "allowWatchBookmarks": true, "allowWatchBookmarks=": true, "allowWatchBookmarks=0": false, "allowWatchBookmarks=1": true,
	} {
		q, err := parseRequest(httptest.NewRequest("GET", "/?"+query, nil), Endpoint{})
		if err != nil || q.Bookmarks != want {
			t.Errorf("%s: got %v, error %v, want %v", query, q.Bookmarks, err, want)
		}
	}
}
