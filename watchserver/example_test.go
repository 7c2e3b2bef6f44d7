package watchserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/listwatch/listwatch"
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
