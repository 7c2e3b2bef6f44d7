//go:build unix

package logical

import (
	"net/http/httptest"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/store/postgres"
	"github.com/listwatch/listwatch/watchserver"
)

// A watch of a relay in front of the server of a table goes on after the server has lost
// PostgreSQL, and after the relay has lost the server.
func TestRelayFollowsATable(t *testing.T) {
	d := newDatabase(t, "CREATE TABLE a (id int PRIMARY KEY)", "INSERT INTO a VALUES (1)")
	db := d.open(postgres.Options{}, postgres.Table{Name: "a"})
	server := httptest.NewServer(&watchserver.Server{Source: db.Source("a")})
	defer server.Close()
	upstream := &client.Remote{URL: server.URL}
	defer upstream.Close()
	r := relay.Open(upstream, relay.Options{})
	defer r.Close()
	w, err := r.Watch(t.Context(), listwatch.Query{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	next := func(want string) {
		t.Helper()
		var batch [1]listwatch.Event
		if _, err := w.Next(t.Context(), batch[:]); err != nil || batch[0].Object.Key.Name != want {
			t.Fatalf("got %v and %v, want row %s", batch[0], err, want)
		}
	}
	next("1")
	d.exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND application_name = 'listwatch'",
		"INSERT INTO a VALUES (2)")
	next("2")
	server.CloseClientConnections()
	d.exec("INSERT INTO a VALUES (3)")
	next("3")
}
