package kubeapi

import (
	"slices"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/kubeapi/protobody"
)

// part encodes a field of at most 127 bytes.
func part(number byte, values ...string) string {
	const lengthDelimited = 2
	value := strings.Join(values, "")
	return string([]byte{number<<3 | lengthDelimited, byte(len(value))}) + value
}

// inProtobuf encodes an object in the way client-go does by default.
func inProtobuf(apiVersion, kind string, fields ...string) string {
	return "k8s\x00" + part(1, part(1, apiVersion), part(2, kind)) + part(2, fields...) + part(3) + part(4)
}

func TestWritesAcceptProtobuf(t *testing.T) {
	a := startServer(t, nil)
	write := func(code int, method, path, body string) string {
		t.Helper()
		return a.want(t, code, method, path, body, "Content-Type", protobody.MediaType)
	}
	contains := func(got, want string) {
		t.Helper()
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want it to contain %s", got, want)
		}
	}
	deployment := func(fields ...string) string {
		return inProtobuf("apps/v1", "Deployment", append([]string{part(1, part(1, "web"))}, fields...)...)
	}
	replicas := func(n string) string { return "\x08" + n }
	contains(write(201, "POST", deployments, deployment(part(2, replicas("\x02")))), `"spec":{"replicas":2,`)
	contains(write(200, "PUT", deployments+"/web", deployment(part(2, replicas("\x03")))), `"spec":{"replicas":3,`)
	contains(write(200, "PUT", deployments+"/web/status", deployment(part(2, replicas("\x09")), part(3, "\x10\x01"))),
		`"status":{"replicas":1}`)
	scale := inProtobuf("autoscaling/v1", "Scale", part(1, part(1, "web")), part(2, replicas("\x04")))
	contains(write(200, "PUT", deployments+"/web/scale", scale), `"spec":{"replicas":4}`)
	contains(a.want(t, 200, "GET", deployments+"/web", ""), `"spec":{"replicas":4,`)

	uid := metadata(t, a.want(t, 200, "GET", deployments+"/web", "")).UID
	remove := func(uid string, more ...string) string {
		return inProtobuf("apps/v1", "DeleteOptions", slices.Concat([]string{part(2, part(1, uid))}, more)...)
	}
	write(409, "DELETE", deployments+"/web", remove("another"))
	write(200, "DELETE", deployments+"/web", remove(uid, part(5, "All")))
	write(200, "DELETE", deployments+"/web", remove(uid, part(4, "Background")))
	a.want(t, 404, "GET", deployments+"/web", "")
}

func TestUnsupportedProtobufIsRejected(t *testing.T) {
	a := startServer(t, func(h *Handler) { h.MaxBodyBytes = 300 })
	refused := func(code int, reason, path, body string) string {
		t.Helper()
		return a.wantError(t, code, reason, "POST", path, body, "Content-Type", protobody.MediaType).Message
	}
	refused(400, "BadRequest", pods, inProtobuf("v1", "ConfigMap", part(1, part(1, "a"))))
	refused(400, "BadRequest", pods, inProtobuf("v1", "Pod", "\x0a\x7f"))
	larger := inProtobuf("v1", "Pod", part(1, part(1, "a")), part(2, strings.Repeat(part(2), 20)))
	if message := refused(413, "RequestEntityTooLarge", pods, larger); !strings.Contains(message, "300") {
		t.Errorf("got %q, want it to contain the limit", message)
	}
	for _, body := range []string{
		inProtobuf("demo.example.com/v1", "Gadget", part(1, part(1, "a"))),
		inProtobuf("v1", "Pod", part(1, part(1, "a")), part(15, "from the future")),
	} {
		message := refused(415, "UnsupportedMediaType", pods, body)
		for _, remedy := range []string{
			"application/json", "ContentType of rest.Config",
			"kubectl create ... --dry-run=client -o yaml | kubectl create -f -",
		} {
			if !strings.Contains(message, remedy) {
				t.Errorf("the message does not contain the remedy %q: %s", remedy, message)
			}
		}
	}
}
