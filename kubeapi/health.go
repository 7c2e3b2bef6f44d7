package kubeapi

import (
	"cmp"
	"fmt"
	"net/http"
	"path"
	"runtime"
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
)

// healthPaths are the paths of health checks, which send no credentials (Kubernetes, "Kubernetes
// API health endpoints").
var healthPaths = []string{"/healthz", "/livez", "/readyz"}

const versionPath = "/version"

// isProbe reports whether requests for path need no credentials.
func isProbe(path string) bool { return path == versionPath || slices.Contains(healthPaths, path) }

// serveHealth serves the paths that need no credentials.
func (h *Handler) serveHealth(w http.ResponseWriter, r *http.Request, _ *apihttp.Admitted) (found bool, err error) {
	if !isProbe(r.URL.Path) {
		return false, nil
	}
	if err := requireGet(r); err != nil {
		return true, err
	}
	if r.URL.Path == versionPath {
		apihttp.WriteJSON(w, r, http.StatusOK, versionInfo())
		return true, nil
	}
	head := w.Header()
	head.Set("Content-Type", "text/plain; charset=utf-8")
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Cache-Control", "no-cache, private")
	if r.URL.Path == "/readyz" {
		if err := h.checkReady(); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintln(w, cmp.Or(apihttp.Reason(err), "the server is not ready"))
			return true, nil
		}
	}
	fmt.Fprint(w, "ok")
	return true, nil
}

var errDraining = &listwatch.Error{Code: listwatch.Unavailable, Message: "the server is shutting down"}

func (h *Handler) checkReady() error {
	switch {
	case h.draining.Load():
		return errDraining
	case h.Ready != nil:
		return h.Ready()
	}
	return nil
}

// versionInfo reports the version of Kubernetes that this server is compatible with.
// Clients compare it with their own version.
func versionInfo() map[string]string {
	return map[string]string{
		"major": "1", "minor": "36", "gitVersion": "v1.36.0+listwatch",
		"gitCommit": "", "gitTreeState": "", "buildDate": "1970-01-01T00:00:00Z",
		"goVersion": runtime.Version(), "compiler": runtime.Compiler, "platform": runtime.GOOS + "/" + runtime.GOARCH,
	}
}

// serveIndex responds with a list of all paths, as kube-apiserver does at /.
func (h *Handler) serveIndex(w http.ResponseWriter, r *http.Request, _ *apihttp.Admitted) (found bool, err error) {
	if r.URL.Path != "/" {
		return false, nil
	}
	if err := requireGet(r); err != nil {
		return true, err
	}
	paths := append(slices.Clone(healthPaths), versionPath, "/api", "/apis", "/openapi/v2", "/openapi/v3")
	for _, s := range h.discovered() {
		resource := s.Path("")
		paths = append(paths, resource, path.Dir(resource))
		if s.Group != "" {
			paths = append(paths, "/apis/"+s.Group)
		}
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	apihttp.WriteJSON(w, r, http.StatusOK, map[string][]string{"paths": paths})
	return true, nil
}

func requireGet(r *http.Request) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	return apihttp.MethodNotAllowed(r, "GET, HEAD")
}
