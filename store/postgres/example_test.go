package postgres_test

import (
	"context"
	"fmt"
	"log"
	"net/http"

	"github.com/listwatch/listwatch/store/postgres"
	"github.com/listwatch/listwatch/watchserver"
)

// The rows of a table at a path of their own.
func Example() {
	ctx := context.Background()
	db, err := postgres.Open(ctx, "postgres://localhost/shop", postgres.Options{}, postgres.Table{
		Name: "orders", Namespace: "tenant", Labels: []string{"status"}, Fields: []string{"spec.total"},
	})
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("/orders", &watchserver.Server{Source: db.Source("orders")})
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", nil))
}

// A program that writes by SQL tells its client which version to wait for.
func ExampleVersion() {
	v, err := postgres.Version("0/1566E00") // from SELECT pg_current_wal_insert_lsn(), after COMMIT
	fmt.Println(v, err)
	// Output: 5745016832 <nil>
}
