package kubeapi

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/kubeapi/internal/accessreview"
	"github.com/listwatch/listwatch/watchserver"
	authorizationv1 "k8s.io/api/authorization/v1"
)

// A User is the sender of a request.
type User = watchserver.User

// Anonymous returns the user for requests without credentials, with the names that
// Kubernetes uses.
func Anonymous() User {
	return User{Name: "system:anonymous", Groups: []string{"system:unauthenticated"}}
}

// ClientCertificate is a [watchserver.Authenticator] for TLS client certificates: the common name
// is the user, and the organizations are the groups (Kubernetes, "Authenticating", X.509
// client certificates). It uses only certificates that the TLS server has verified:
// tls.Config.ClientAuth must be VerifyClientCertIfGiven or stricter.
func ClientCertificate(r *http.Request) (User, error) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return User{}, nil
	}
	subject := r.TLS.VerifiedChains[0][0].Subject
	if subject.CommonName == "" {
		return User{}, &listwatch.Error{
			Code:    listwatch.Unauthorized,
			Message: fmt.Sprintf("the client certificate (%s) has no common name, which must be the user's name", subject),
		}
	}
	return User{Name: subject.CommonName, Groups: subject.Organization}, nil
}

// An Authorizer returns nil if the user is allowed to make the request that the Attributes
// describe, and otherwise an error. The error is sent with status 403 unless it has another code.
// The client receives the reason if the error is a [listwatch.Cause]; the text of any other error
// without a code is not sent. A Handler accepts requests for discovery and OpenAPI,
// SelfSubjectAccessReviews and SelfSubjectRulesReviews without calling the Authorizer first,
// because every authenticated user may use these. An Authorizer must be safe for concurrent use.
// Package abac has one that reads a policy from a file.
type Authorizer func(ctx context.Context, user User, a Attributes) error

// Attributes describe a request to an [Authorizer].
type Attributes struct {
	// Verb is Kubernetes' verb: get, list, watch, create, update, patch, delete or
	// deletecollection. A SelfSubjectAccessReview may name any other verb, too.
	Verb string
	// Resource is the requested resource. If a SelfSubjectAccessReview names one that is not
	// served, only its Group, Version and Plural are set.
	Resource Resource
	// Namespace and Name are taken from the path. An empty Namespace means all namespaces or a
	// cluster-scoped resource. For a Namespace object it is the name of the object, as in
	// Kubernetes. An empty Name means all objects. For a list or watch,
	// Name is also set if the field selector requires a metadata.name, as in Kubernetes,
	// because kubectl sends such a request to wait for one object.
	Namespace, Name string
	// Subresource is the requested part of the object, such as "status". If empty, the
	// whole object is requested.
	Subresource string
	// Path is the path of a request that is not for a resource. If it is set, all other fields
	// except Verb are empty. A Handler sets it only for a SelfSubjectAccessReview of such a path.
	Path string
}

// attributes describes the request for the Authorizer.
func (c call) attributes() *Attributes {
	a := &Attributes{
		Verb: c.Verb, Resource: c.Resource, Namespace: c.Namespace, Name: c.Name, Subresource: c.Subresource,
	}
	if c.Group == "" && c.Plural == "namespaces" {
		a.Namespace = c.Name
	}
	return a
}

// authorize returns an error for the client if the Authorizer does not allow the request.
func (h *Handler) authorize(ctx context.Context, user User, a *Attributes) error {
	if h.Authorize == nil {
		return nil
	}
	err := h.Authorize(ctx, user, *a)
	if err == nil || listwatch.CodeOf(err) != listwatch.Unknown {
		return err
	}
	where := "at the cluster scope"
	if a.Namespace != "" {
		where = fmt.Sprintf("in the namespace %q", a.Namespace)
	}
	what := a.Resource.QualifiedName()
	if a.Name != "" {
		what = fmt.Sprintf("%s %q", what, a.Name)
	}
	resource := a.Resource.Plural
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	message := fmt.Sprintf("%s is forbidden: User %q cannot %s resource %q in API group %q %s",
		what, user.Name, a.Verb, resource, a.Resource.Group, where)
	if reason := apihttp.Reason(err); reason != "" {
		message += ": " + reason
	}
	return &listwatch.Error{
		Code: listwatch.Forbidden, Message: message, Err: err,
		Details: &listwatch.Details{Name: a.Name, Group: a.Resource.Group, Kind: a.Resource.Plural},
	}
}

// CheckAccess returns an error for the client if the user in ctx, the context of a request, may not
// make the request that a describes. Handlers of paths that h does not serve call it, with
// watchserver.WithUser for ctx.
func (h *Handler) CheckAccess(ctx context.Context, a Attributes) error {
	return h.authorize(ctx, watchserver.UserOf(ctx), &a)
}

// Rules describe what a user may do in a namespace. In all their lists, "*" means everything.
type Rules struct {
	// Resources allow requests for resources of the namespace.
	Resources []ResourceRule
	// Paths allow requests for other paths. A path that ends with "*" is a prefix.
	Paths []PathRule
	// Incomplete is true if the user may be allowed to do more.
	Incomplete bool
}

// A ResourceRule allows each of its verbs for each of its resources in each of its API groups. If
// Names is not empty, it allows them only for the objects with these names.
type ResourceRule struct {
	Verbs     []string `json:"verbs"`
	Groups    []string `json:"apiGroups"`
	Resources []string `json:"resources"`
	Names     []string `json:"resourceNames,omitempty"`
}

// A PathRule allows each of its verbs for each of its paths.
type PathRule struct {
	Verbs []string `json:"verbs"`
	Paths []string `json:"nonResourceURLs"`
}

func (h *Handler) serveReviews(w http.ResponseWriter, r *http.Request, a *apihttp.Admitted) (found bool, err error) {
	switch r.URL.Path {
	case accessReviews.Path(""):
		return true, serveReview(h, w, r, a, accessReviews, parseAccessReview, h.reviewAccess)
	case rulesReviews.Path(""):
		return true, serveReview(h, w, r, a, rulesReviews, accessreview.ParseRules, h.reviewRules)
	}
	return false, nil
}

// serveReview serves a POST of a review, which every user may send. respond returns the response to
// the result of parse.
func serveReview[R any](h *Handler, w http.ResponseWriter, r *http.Request, a *apihttp.Admitted, reviews Resource,
	parse func(body []byte) (R, error), respond func(context.Context, User, R) (any, error),
) error {
	if r.Method != http.MethodPost {
		return apihttp.MethodNotAllowed(r, http.MethodPost)
	}
	a.Resource = reviews.described()
	if _, err := apihttp.BodyType(r); err != nil {
		return err
	}
	body, endTurn, err := h.readObject(w, r, a)
	if err != nil {
		return err
	}
	review, err := parse(body)
	if endTurn(); err != nil {
		return err
	}
	response, err := respond(r.Context(), watchserver.UserOf(r.Context()), review)
	if err != nil {
		return err
	}
	apihttp.WriteObject(w, r, http.StatusCreated, response)
	return nil
}

func parseAccessReview(body []byte) (*authorizationv1.SubjectAccessReview, error) {
	return accessreview.Parse(accessreview.Kind, "", body)
}

// reviewAccess returns the review with the Authorizer's decision about the request that the review
// describes.
func (h *Handler) reviewAccess(
	ctx context.Context, user User, review *authorizationv1.SubjectAccessReview,
) (any, error) {
	err := h.evaluate(ctx, user, &review.Spec)
	if err != nil && listwatch.CodeOf(err) != listwatch.Unknown && listwatch.CodeOf(err) != listwatch.Forbidden {
		return nil, err
	}
	if review.Status.Allowed = err == nil; err != nil {
		review.Status.Reason = apihttp.Reason(err)
	}
	return review, nil
}

// reviewRules returns a review with the rules that apply to the user in a namespace.
func (h *Handler) reviewRules(ctx context.Context, user User, namespace string) (any, error) {
	rules := Rules{
		Resources: []ResourceRule{{everything, everything, everything, nil}},
		Paths:     []PathRule{{everything, everything}},
	}
	var failure error
	switch {
	case h.RulesFor != nil:
		rules, failure = h.RulesFor(ctx, user, namespace)
	case h.Authorize != nil:
		rules, failure = Rules{Incomplete: true},
			listwatch.Cause{Message: "the authorizer of this server cannot list its rules"}
	}
	rules.Resources = append(
		[]ResourceRule{
			{reviewVerbs, []string{accessreview.Group}, []string{accessReviews.Plural, rulesReviews.Plural}, nil},
		}, rules.Resources...)
	rules.Paths = append([]PathRule{{[]string{"get"}, openPaths()}}, rules.Paths...)
	evaluationError := ""
	if failure != nil {
		evaluationError = cmp.Or(apihttp.Reason(failure), "internal error")
	}
	incomplete := rules.Incomplete || failure != nil
	return accessreview.RulesResponse(rules.Resources, rules.Paths, incomplete, evaluationError), nil
}

var everything = []string{"*"}

// openPaths returns the paths for which isOpen is true, as patterns.
func openPaths() []string {
	return append([]string{"/", "/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", versionPath, UnionPath},
		healthPaths...)
}

// evaluate returns nil if the user may make the request that a review describes.
func (h *Handler) evaluate(ctx context.Context, user User, review *authorizationv1.SubjectAccessReviewSpec) error {
	if h.Authorize == nil {
		return nil
	}
	if p := review.NonResourceAttributes; p != nil {
		if isOpen(p.Path) && (p.Verb == "get" || p.Verb == "head") {
			return nil
		}
		return h.Authorize(ctx, user, Attributes{Verb: p.Verb, Path: p.Path})
	}
	at := review.ResourceAttributes
	if (Resource{Group: at.Group, Plural: at.Resource}).isReview() && at.Verb == "create" {
		return nil
	}
	a := Attributes{
		Verb: at.Verb, Resource: Resource{Group: at.Group, Version: at.Version, Plural: at.Resource},
		Namespace: at.Namespace, Name: at.Name, Subresource: at.Subresource,
	}
	for _, r := range h.resources {
		if r.Group == at.Group && r.Plural == at.Resource &&
			(r.Version == at.Version || at.Version == "" || at.Version == "*") {
			a.Resource = r.Resource
			break
		}
	}
	return h.Authorize(ctx, user, a)
}

// isOpen reports whether every authenticated user may read path: the index, discovery, OpenAPI, the
// version, the path of unions or a path of health checks.
func isOpen(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch parts[0] {
	case "", "openapi":
		return true
	case "api":
		return len(parts) <= 2
	case "apis":
		return len(parts) <= 3
	}
	return path == versionPath || path == UnionPath || slices.Contains(healthPaths, path)
}
