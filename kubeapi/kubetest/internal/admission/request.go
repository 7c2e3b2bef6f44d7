package admission

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rest"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/watchserver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/warning"
)

// A request is the part of an HTTP request that admission depends on.
type request struct {
	subresource string
	key         listwatch.Key // as in the path
	query       url.Values    // nil if the Env itself writes
}

// isInternal reports whether the Env itself writes, and no client.
func (r request) isInternal() bool { return r.query == nil }

type requestKey struct{}

// Handler returns a handler whose writes pass through the chain of the Env. Writes that next does
// not receive from it are internal, and are not admitted, unless their context is one of
// [WithUser].
func Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t, ok := kubeapi.ParseRoute(r.URL.EscapedPath())
		if verb := rest.VerbOf(r.Method, t.Name != "", t.Watch); !ok || verb == "" || rest.IsRead(verb) {
			next.ServeHTTP(w, r)
			return
		}
		q := request{t.Subresource, listwatch.Key{Namespace: t.Namespace, Name: t.Name}, r.URL.Query()}
		ctx := context.WithValue(WithWarnings(r.Context(), w), requestKey{}, q)
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// WithWarnings returns a context for requests whose response w shows the warnings.
func WithWarnings(ctx context.Context, w http.ResponseWriter) context.Context {
	return warning.WithWarningRecorder(ctx, &recorder{w: w})
}

// WithUser returns a context for writes that a controller of a cluster makes, as the given user.
func WithUser(ctx context.Context, name string, groups ...string) context.Context {
	ctx = watchserver.WithUser(ctx, watchserver.User{Name: name, Groups: groups})
	return context.WithValue(ctx, requestKey{}, request{})
}

// A recorder adds the warnings of webhooks and policies to a response.
type recorder struct {
	mu sync.Mutex
	w  http.ResponseWriter // guarded by mu
}

// AddWarning implements [warning.Recorder].
func (r *recorder) AddWarning(agent, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	value, err := utilnet.NewWarningHeader(299, agent, text)
	if err == nil && !slices.Contains(r.w.Header()["Warning"], value) {
		r.w.Header().Add("Warning", value)
	}
}

// options returns the options of an operation.
func (r request) options(o admission.Operation) runtime.Object {
	dryRun, manager, validation := r.query["dryRun"], r.query.Get("fieldManager"), r.query.Get("fieldValidation")
	if o == admission.Create {
		return &metav1.CreateOptions{
			TypeMeta: optionsType("CreateOptions"), DryRun: dryRun, FieldManager: manager, FieldValidation: validation,
		}
	}
	return &metav1.UpdateOptions{
		TypeMeta: optionsType("UpdateOptions"), DryRun: dryRun, FieldManager: manager, FieldValidation: validation,
	}
}

func optionsType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: kind}
}

// userOf returns the user who sends the request.
func userOf(ctx context.Context) user.Info {
	u := watchserver.UserOf(ctx)
	return &user.DefaultInfo{Name: u.Name, UID: u.UID, Groups: u.Groups}
}
