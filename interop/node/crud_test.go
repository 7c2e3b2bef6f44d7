package node

import (
	"net/http"
	"testing"

	"github.com/listwatch/listwatch/interop/internal/kubetest"
)

func TestClientsForPodsAndForAnyKindWriteAndRead(t *testing.T) {
	s := kubetest.Start(t, "widgets.v1.demo.example.com=Widget")
	run(t, s.Config(kubetest.HTTP2), "crud.mjs").wants(
		line{On: "create pod"},
		line{On: "create pod again", Code: http.StatusConflict, Reason: "AlreadyExists"},
		line{On: "create pod without a right name", Code: http.StatusUnprocessableEntity, Reason: "Invalid"},
		line{On: "dry run", Name: "dry"},
		line{On: "read pod", Shown: []string{"a", "i", "Date"}},
		line{On: "read no pod", Code: http.StatusNotFound, Reason: "NotFound"},
		line{On: "merge patch", Shown: []string{"tier=front"}},
		line{On: "JSON patch", Shown: []string{"tier=front", "x=y"}},
		line{On: "JSON patch that does not fit", Code: http.StatusUnprocessableEntity, Reason: "Invalid"},
		line{On: "replace pod as it was", Code: http.StatusConflict, Reason: "Conflict"},
		line{On: "replace pod", Shown: []string{"app=db"}},
		line{On: "replace status", Shown: []string{"Running"}},
		line{On: "list of a label", Shown: []string{"b", "c"}},
		line{On: "first page", Shown: []string{"a", "b"}, More: true},
		line{On: "list of no selector", Code: http.StatusBadRequest, Reason: "BadRequest"},
		line{On: "delete pod"},
		line{On: "delete pod again", Code: http.StatusNotFound, Reason: "NotFound"},
		line{On: "delete all of a label"},
		line{On: "list of what is left", Shown: []string{}},

		line{On: "create widget", Shown: []string{"w", "1"}},
		line{On: "create widget again", Code: http.StatusConflict, Reason: "AlreadyExists"},
		line{On: "read widget", Shown: []string{"w", "1"}},
		line{On: "merge patch of a widget", Shown: []string{"w", "2"}},
		line{On: "replace widget as it was", Code: http.StatusConflict, Reason: "Conflict"},
		line{On: "list widgets", Shown: []string{"w"}},
		line{On: "delete widget"},
		line{On: "read no widget", Code: http.StatusNotFound, Reason: "NotFound"},
		line{On: "done"},
	)
}
