package clients

import (
	"net/http"
	"testing"

	"github.com/listwatch/listwatch/interop/internal/testapi"
)

func TestNodeClientsWriteAndRead(t *testing.T) {
	s := testapi.Start(t, "widgets.v1.demo.example.com=Widget")
	runScript(t, s.Config(testapi.HTTP2), "crud.mjs").wantLines(
		scriptLine{On: "create pod"},
		scriptLine{On: "create pod again", Code: http.StatusConflict, Reason: "AlreadyExists"},
		scriptLine{On: "create pod with an invalid name", Code: http.StatusUnprocessableEntity, Reason: "Invalid"},
		scriptLine{On: "dry run", Name: "dry"},
		scriptLine{On: "read pod", Shown: []string{"a", "i", "Date"}},
		scriptLine{On: "read missing pod", Code: http.StatusNotFound, Reason: "NotFound"},
		scriptLine{On: "merge patch", Shown: []string{"tier=front"}},
		scriptLine{On: "JSON patch", Shown: []string{"tier=front", "x=y"}},
		scriptLine{On: "JSON patch with a failing test", Code: http.StatusUnprocessableEntity, Reason: "Invalid"},
		scriptLine{On: "replace pod at its old version", Code: http.StatusConflict, Reason: "Conflict"},
		scriptLine{On: "replace pod", Shown: []string{"app=db"}},
		scriptLine{On: "replace status", Shown: []string{"Running"}},
		scriptLine{On: "list by label", Shown: []string{"b", "c"}},
		scriptLine{On: "first page", Shown: []string{"a", "b"}, More: true},
		scriptLine{On: "list with an invalid selector", Code: http.StatusBadRequest, Reason: "BadRequest"},
		scriptLine{On: "delete pod"},
		scriptLine{On: "delete pod again", Code: http.StatusNotFound, Reason: "NotFound"},
		scriptLine{On: "delete by label"},
		scriptLine{On: "list remaining pods", Shown: []string{}},

		scriptLine{On: "create widget", Shown: []string{"w", "1"}},
		scriptLine{On: "create widget again", Code: http.StatusConflict, Reason: "AlreadyExists"},
		scriptLine{On: "read widget", Shown: []string{"w", "1"}},
		scriptLine{On: "merge patch of widget", Shown: []string{"w", "2"}},
		scriptLine{On: "replace widget at its old version", Code: http.StatusConflict, Reason: "Conflict"},
		scriptLine{On: "list widgets", Shown: []string{"w"}},
		scriptLine{On: "delete widget"},
		scriptLine{On: "read missing widget", Code: http.StatusNotFound, Reason: "NotFound"},
		scriptLine{On: "done"},
	)
}
