package watchserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/watchserver"
)

// The same URL serves a list and a watch. Any HTTP client can read both.
func ExampleServer() {
	type Flag struct {
		listwatch.Metadata `json:"metadata"`
	}
	flags := memory.New[Flag]()
	server := httptest.NewServer(&watchserver.Server{Source: flags})
	defer server.Close()
	if _, err := flags.Create(context.Background(), Flag{listwatch.Metadata{Name: "dark-mode"}}); err != nil {
		fmt.Println(err)
		return
	}

	response, err := http.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	var list struct {
		Kind  string
		Items []Flag
	}
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(list.Kind, list.Items[0].Name)

	watch, err := http.Get(server.URL + "?watch=1")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer watch.Body.Close()
	line, err := bufio.NewReader(watch.Body).ReadBytes('\n') // each line is an event
	if err != nil {
		fmt.Println(err)
		return
	}
	var event struct {
		Type   string
		Object Flag
	}
	if err := json.Unmarshal(line, &event); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(event.Type, event.Object.Name)
	// Output:
	// FlagList dark-mode
	// ADDED dark-mode
}

// One handler serves all tenants. Each tenant sees only its own part of the collection.
func ExampleEndpoint() {
	type Flag struct {
		listwatch.Metadata `json:"metadata"`
	}
	flags := memory.New[Flag]()
	for name, tenant := range map[string]string{"dark-mode": "a", "beta": "b"} {
		labels := map[string]string{"tenant": tenant}
		if _, err := flags.Create(context.Background(),
			Flag{listwatch.Metadata{Name: name, Labels: labels}}); err != nil {
			fmt.Println(err)
			return
		}
	}
	server := &watchserver.Server{}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A real program takes the tenant from the credentials of the request.
		tenant, err := listwatch.LabelEquals("tenant", r.URL.Query().Get("tenant"))
		if err != nil {
			watchserver.WriteError(w, r, err)
			return
		}
		server.Serve(w, r, watchserver.Endpoint{Source: flags, Selection: listwatch.Selection{Labels: tenant}})
	})

	response := httptest.NewRecorder()
	handler.ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/flags?tenant=a&labelSelector=tenant", nil))
	var list struct{ Items []Flag }
	if err := json.Unmarshal(response.Body.Bytes(), &list); err != nil {
		fmt.Println(err)
		return
	}
	for _, flag := range list.Items {
		fmt.Println(flag.Name)
	}
	// Output: dark-mode
}

// Two collections of one database as one list.
func ExampleServer_Union() {
	db := memory.Open(memory.Options{})
	server, mux := &watchserver.Server{}, http.NewServeMux()
	for _, plural := range []string{"nodes", "pods"} {
		c, err := db.Collection(store.CollectionSpec{Kind: plural, Plural: plural})
		if err == nil {
			_, err = c.Create(context.Background(), []byte(`{"metadata": {"name": "one-of-the-`+plural+`"}}`))
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		mux.HandleFunc("GET /"+plural, func(w http.ResponseWriter, r *http.Request) {
			server.Serve(w, r, watchserver.Endpoint{Source: c})
		})
	}
	mux.Handle("GET /watch", server.Union(mux))

	// With watch=1, it would be one watch.
	response := httptest.NewRecorder()
	mux.ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/watch?of=/nodes&of=/pods", nil))
	var list struct {
		Kind  string
		Items []struct {
			Metadata struct{ Name string }
		}
	}
	if err := json.Unmarshal(response.Body.Bytes(), &list); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(list.Kind, list.Items)
	// Output: List [{{one-of-the-nodes}} {{one-of-the-pods}}]
}

// A watch ends when the credentials of its user expire.
func ExampleAuthenticator() {
	type Flag struct {
		listwatch.Metadata `json:"metadata"`
	}
	expires := time.Now().Add(50 * time.Millisecond)
	sessions := func(r *http.Request) (watchserver.User, error) {
		if c, err := r.Cookie("session"); err != nil || c.Value != "secret" {
			return watchserver.User{}, nil // the request has no credentials
		}
		return watchserver.User{Name: "ada", Groups: []string{"editors"}, Expires: expires}, nil
	}
	server := &watchserver.Server{Source: memory.New[Flag](), Access: watchserver.Access{Authenticator: sessions}}
	for _, cookie := range []string{"", "session=secret"} {
		r, w := httptest.NewRequest(http.MethodGet, "/?watch=1", nil), httptest.NewRecorder()
		r.Header.Set("Cookie", cookie)
		server.ServeHTTP(w, r)
		var event struct {
			Message string                   // the message of a Status
			Object  struct{ Message string } // the Status in an ERROR event
		}
		if err := json.NewDecoder(w.Body).Decode(&event); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(event.Message + event.Object.Message)
	}
	// Output:
	// the request has no credentials
	// the credentials have expired; use new ones
}
