package kubetest

import (
	"context"
	"net/http"
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/internal/accessreview"
	"github.com/listwatch/listwatch/watchserver"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A review is a resource whose objects are only created: the response to a create contains the
// result.
type review struct {
	group, plural string
	namespaced    bool
	// respond returns the review in body, which is JSON, with its result.
	respond func(a *authority, user kubeapi.User, namespace string, body []byte) (any, error)
}

// reviews are the reviews that kubeapi does not serve. The metrics of kubebuilder's projects need
// the first two.
var reviews = []review{
	{authenticationv1.GroupName, "tokenreviews", false, (*authority).reviewToken},
	{authorizationv1.GroupName, "subjectaccessreviews", false, (*authority).reviewSubject},
	{authorizationv1.GroupName, "localsubjectaccessreviews", true, (*authority).reviewSubject},
	{authenticationv1.GroupName, "selfsubjectreviews", false, (*authority).reviewSelf},
}

// serveReview serves the request if it creates a review.
func (a *authority) serveReview(w http.ResponseWriter, r *http.Request) (found bool) {
	t, ok := kubeapi.ParseRoute(r.URL.EscapedPath())
	i := slices.IndexFunc(reviews, func(v review) bool {
		return ok && r.Method == http.MethodPost && t.Name == "" && t.Version == "v1" &&
			v.group == t.Group && v.plural == t.Plural && v.namespaced == (t.Namespace != "")
	})
	if i < 0 {
		return false
	}
	user := watchserver.UserOf(r.Context())
	var err error
	if t.Plural != "selfsubjectreviews" { // which every user may create
		err = a.checkAction(r.Context(), "create", t)
	}
	var response any
	if err == nil {
		var body []byte
		if body, err = readJSON(w, r); err == nil {
			response, err = reviews[i].respond(a, user, t.Namespace, body)
		}
	}
	if err != nil {
		apihttp.WriteError(w, r, err)
		return true
	}
	apihttp.WriteJSON(w, r, http.StatusCreated, response)
	return true
}

// checkAction returns an error for the client if the user in ctx may not make a request for which
// only this package has code.
func (a *authority) checkAction(ctx context.Context, verb string, t kubeapi.Route) error {
	return a.api.handler.Load().CheckAccess(ctx, kubeapi.Attributes{
		Verb: verb, Resource: kubeapi.Resource{Group: t.Group, Version: t.Version, Plural: t.Plural},
		Namespace: t.Namespace, Name: t.Name, Subresource: t.Subresource,
	})
}

func (a *authority) reviewToken(_ kubeapi.User, _ string, body []byte) (any, error) {
	var review authenticationv1.TokenReview
	if err := decode(body, "TokenReview", &review); err != nil {
		return nil, err
	}
	if review.Spec.Token == "" {
		return nil, &listwatch.Error{
			Code: listwatch.Invalid, Message: "token is required for TokenReview in authentication",
		}
	}
	review.APIVersion, review.Kind = "authentication.k8s.io/v1", "TokenReview"
	audiences := review.Spec.Audiences
	if len(audiences) == 0 {
		audiences = []string{issuer}
	}
	t, found := a.find(review.Spec.Token)
	if !found {
		review.Status.Error = "invalid bearer token"
		return review, nil
	}
	if err := a.checkToken(t, audiences); err != nil {
		review.Status.Error = err.Error()
		return review, nil
	}
	review.Status = authenticationv1.TokenReviewStatus{
		Authenticated: true, User: userInfo(t.user), Audiences: audiences,
	}
	if t.audiences != nil {
		review.Status.Audiences = slices.DeleteFunc(slices.Clone(audiences),
			func(audience string) bool { return !slices.Contains(t.audiences, audience) })
	}
	return review, nil
}

// userInfo returns u in Kubernetes' form.
func userInfo(u kubeapi.User) authenticationv1.UserInfo {
	return authenticationv1.UserInfo{Username: u.Name, UID: u.UID, Groups: u.Groups}
}

func (a *authority) reviewSelf(user kubeapi.User, _ string, body []byte) (any, error) {
	var review authenticationv1.SelfSubjectReview
	if err := decode(body, "SelfSubjectReview", &review); err != nil {
		return nil, err
	}
	review.APIVersion, review.Kind = "authentication.k8s.io/v1", "SelfSubjectReview"
	review.CreationTimestamp, review.Status.UserInfo = metav1.Now(), userInfo(user)
	return review, nil
}

// reviewSubject serves SubjectAccessReviews and, in a namespace, LocalSubjectAccessReviews.
func (a *authority) reviewSubject(_ kubeapi.User, namespace string, body []byte) (any, error) {
	kind := accessreview.SubjectKind
	if namespace != "" {
		kind = accessreview.LocalKind
	}
	review, err := accessreview.Parse(kind, namespace, body)
	if err != nil {
		return nil, err
	}
	var attributes kubeapi.Attributes
	if path := review.Spec.NonResourceAttributes; path != nil {
		attributes = kubeapi.Attributes{Verb: path.Verb, Path: path.Path}
	} else {
		resource := review.Spec.ResourceAttributes
		attributes = kubeapi.Attributes{
			Verb: resource.Verb, Namespace: resource.Namespace, Name: resource.Name, Subresource: resource.Subresource,
			Resource: kubeapi.Resource{Group: resource.Group, Version: resource.Version, Plural: resource.Resource},
		}
	}
	user := kubeapi.User{Name: review.Spec.User, UID: review.Spec.UID, Groups: review.Spec.Groups}
	err = a.authorize(context.Background(), user, attributes)
	review.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: err == nil}
	if err != nil {
		review.Status.Reason = apihttp.Reason(err)
	}
	return review, nil
}
