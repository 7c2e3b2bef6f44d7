package clients

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
)

// TestKubectlExecAndLogsReachAKubelet runs kubectl exec and kubectl logs. In a cluster, the API
// server, and a relay in front of it, pass the connections of these commands on to a kubelet. Here,
// handlers stand in for the kubelet.
func TestKubectlExecAndLogsReachAKubelet(t *testing.T) {
	t.Parallel()
	s, u := startForKubectl(t)
	const pod = "/api/v1/namespaces/default/pods/one/"
	s.Handle("GET "+pod+"log", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for line := range 3 {
			fmt.Fprintln(w, "line", line, r.URL.Query().Get("container"))
			_ = http.NewResponseController(w).Flush() // kubectl has disconnected
		}
	}))
	s.Handle(pod+"exec", http.HandlerFunc(execInContainer))
	u.runWithInput(podOneManifest, "apply", "-f", "-")
	u.wantOutput("line 0 c\nline 1 c\nline 2 c\n", "logs", "one", "-c", "c", "-f")
	if out := u.runWithInput("some input", "exec", "-i", "one", "--", "cat", "a;b"); out != "cat a;b: some input" {
		t.Errorf("exec: got %q", out)
	}
	u.wantFailure("command terminated with exit code 7", "exec", "one", "--", "exit")
}

const podOneManifest = "apiVersion: v1\nkind: Pod\nmetadata: {name: one}\nspec: {containers: [{name: c, image: nginx}]}\n"

// The channels of Kubernetes' protocol for exec over WebSocket (v5.channel.k8s.io): the first byte
// of a message.
const (
	channelStdin  = 0
	channelStdout = 1
	channelStatus = 3
	channelClose  = 255 // followed by the channel that is closed
)

// execInContainer acts as a kubelet: it prints the command and its input, or fails.
func execInContainer(w http.ResponseWriter, r *http.Request) {
	upgrader := websocket.Upgrader{Subprotocols: []string{"v5.channel.k8s.io"}}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // Upgrade has responded
	}
	defer conn.Close()
	send := func(channel byte, text string) {
		// An error means that kubectl has disconnected.
		_ = conn.WriteMessage(websocket.BinaryMessage, append([]byte{channel}, text...))
	}
	defer func() {
		done := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
		_ = conn.WriteMessage(websocket.CloseMessage, done) // kubectl has disconnected
	}()
	query := r.URL.Query()
	command := strings.Join(query["command"], " ")
	if command == "exit" {
		send(channelStatus, exitStatus(7))
		return
	}
	send(channelStdout, command+": ")
	for query.Get("stdin") == "true" {
		_, data, err := conn.ReadMessage()
		if err != nil || len(data) > 0 && data[0] == channelClose {
			break
		}
		if len(data) > 0 && data[0] == channelStdin {
			send(channelStdout, string(data[1:]))
		}
	}
	send(channelStatus, `{"metadata":{},"status":"Success"}`)
}

// exitStatus returns the Status for an exit code.
func exitStatus(code int) string {
	text, err := json.Marshal(map[string]any{
		"status": "Failure", "reason": "NonZeroExitCode", "message": "command terminated with non-zero exit code",
		"details": map[string]any{"causes": []any{map[string]any{"reason": "ExitCode", "message": fmt.Sprint(code)}}},
	})
	if err != nil {
		panic(err)
	}
	return string(text)
}
