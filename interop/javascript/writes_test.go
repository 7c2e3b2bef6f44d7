//go:build unix

package javascript

import (
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/store/memory"
)

// Package js tests the client against crudserver. Here the paths have namespaces, and the response
// to a delete is a Status.
func TestNodeWritesToKubernetesAPI(t *testing.T) {
	node := nodePath(t)
	things, err := kubeapi.ParseResource("things.v1.example.com=Thing")
	if err != nil {
		t.Fatal(err)
	}
	c, err := memory.Open(memory.Options{}).Collection(things.CollectionSpec())
	if err != nil {
		t.Fatal(err)
	}
	var api kubeapi.Handler
	if err := api.Add(things, c); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(&api)
	t.Cleanup(server.Close)
	out, err := exec.CommandContext(t.Context(), node, clientDir+"/test/writes/node.js",
		server.URL+"/apis/example.com/v1/things", "default/").CombinedOutput()
	const want = `create: value 0
create again: AlreadyExists 409
five concurrent updates: value 5
patch: value 7
patch of an old version: Conflict 409
delete an old version: Conflict 409
delete: value undefined
get: NotFound 404
update: NotFound 404`
	if got := strings.TrimSpace(string(out)); err != nil || got != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
	}
}
