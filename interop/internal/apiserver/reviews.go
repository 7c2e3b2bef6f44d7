//go:build !race

package apiserver

import (
	"context"
	"encoding/json"
	"net/http"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// token is the bearer token of the user who may do everything.
const token = "the-token-of-a-test"

// withAggregator serves what a server of custom resources leaves to other parts of a
// kube-apiserver: aggregated discovery, and TokenReviews and SubjectAccessReviews by the
// authenticator and the authorizer of the server. Only the user of [Server.Token] may create
// reviews.
func withAggregator(
	next, discovery http.Handler, tokens authenticator.Token, rights authorizer.Authorizer,
) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", next)
	mux.Handle("GET /apis", discovery)
	mux.HandleFunc("POST /apis/authentication.k8s.io/v1/tokenreviews", func(w http.ResponseWriter, r *http.Request) {
		serveReview(w, r, func(ctx context.Context, v *authentication.TokenReview) {
			u, ok, err := tokens.AuthenticateToken(ctx, v.Spec.Token)
			if v.Status.Authenticated = ok && err == nil; v.Status.Authenticated {
				v.Status.User = authentication.UserInfo{Username: u.User.GetName(), Groups: u.User.GetGroups()}
			}
		})
	})
	const rightsPath = "POST /apis/authorization.k8s.io/v1/subjectaccessreviews"
	mux.HandleFunc(rightsPath, func(w http.ResponseWriter, r *http.Request) {
		serveReview(w, r, func(ctx context.Context, v *authorization.SubjectAccessReview) {
			a := v.Spec.ResourceAttributes
			decision, _, err := rights.Authorize(ctx, authorizer.AttributesRecord{
				User: &user.DefaultInfo{Name: v.Spec.User, Groups: v.Spec.Groups}, ResourceRequest: true, Verb: a.Verb,
				Namespace: a.Namespace, APIGroup: a.Group, APIVersion: a.Version, Resource: a.Resource, Name: a.Name,
			})
			v.Status.Allowed = err == nil && decision == authorizer.DecisionAllow
		})
	})
	return mux
}

// serveReview decodes a review, calls decide, and responds with the review.
func serveReview[T any](w http.ResponseWriter, r *http.Request, decide func(context.Context, *T)) {
	review := new(T)
	if r.Header.Get("Authorization") != "Bearer "+token {
		http.Error(w, "only the user of the test may review", http.StatusForbidden)
		return
	}
	if err := json.NewDecoder(r.Body).Decode(review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	decide(r.Context(), review)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(review) // the client has disconnected
}
