// Package accessreview reads and checks the reviews of the group authorization.k8s.io. With these,
// a client finds out what its user or another user may do (Kubernetes, "Authorization", Checking
// API access).
package accessreview

import (
	"encoding/json"
	"fmt"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi/internal/apistatus"
	authorizationv1 "k8s.io/api/authorization/v1"
)

// The types of reviews.
const (
	Group       = authorizationv1.GroupName
	Version     = "v1"
	Kind        = "SelfSubjectAccessReview"
	SubjectKind = "SubjectAccessReview"
	LocalKind   = "LocalSubjectAccessReview"
	RulesKind   = "SelfSubjectRulesReview"
)

// Parse reads and checks a review of the given kind, which is Kind, SubjectKind or LocalKind, from
// JSON. namespace is the namespace in the path of a LocalSubjectAccessReview. In the spec of the
// result, either ResourceAttributes or NonResourceAttributes is set. A SelfSubjectAccessReview has
// no user. The errors are for the client.
func Parse(kind, namespace string, data []byte) (*authorizationv1.SubjectAccessReview, error) {
	r := new(authorizationv1.SubjectAccessReview)
	if err := parse(kind, data, r); err != nil {
		return nil, err
	}
	if kind == Kind {
		r.Spec = authorizationv1.SubjectAccessReviewSpec{
			ResourceAttributes: r.Spec.ResourceAttributes, NonResourceAttributes: r.Spec.NonResourceAttributes,
		}
	}
	switch {
	case namespace == "" || r.Namespace == "":
		r.Namespace = namespace // as in Kubernetes, the other kinds ignore a namespace
	case r.Namespace != namespace:
		return nil, &listwatch.Error{
			Code:    listwatch.Invalid,
			Message: "the namespace of the provided object does not match the namespace sent on the request",
		}
	}
	r.APIVersion, r.Kind = Group+"/"+Version, kind
	if err := check(r); err != nil {
		return nil, err
	}
	return r, nil
}

// ParseRules reads a SelfSubjectRulesReview from JSON, and returns its namespace. The errors are
// for the client.
func ParseRules(data []byte) (namespace string, err error) {
	var r authorizationv1.SelfSubjectRulesReview
	if err := parse(RulesKind, data, &r); err != nil {
		return "", err
	}
	if r.Spec.Namespace == "" {
		return "", &listwatch.Error{Code: listwatch.Invalid, Message: "no namespace on request"}
	}
	return r.Spec.Namespace, nil
}

// parse decodes an object of the given kind from JSON.
func parse(kind string, data []byte, into any) error {
	var o struct{ APIVersion, Kind string }
	err := json.Unmarshal(data, &o)
	if err == nil && (o.Kind != "" && o.Kind != kind || o.APIVersion != "" && o.APIVersion != Group+"/"+Version) {
		err = fmt.Errorf("kind %q of %q", o.Kind, o.APIVersion)
	}
	if err != nil {
		return &listwatch.Error{
			Code:    listwatch.Invalid,
			Message: fmt.Sprintf("the request body must be a %s of %s/%s: %v", kind, Group, Version, err),
		}
	}
	if err := json.Unmarshal(data, into); err != nil {
		return apistatus.Undecodable(kind, Version, err.Error())
	}
	return nil
}

// RulesResponse returns the response to a review of all rules. evaluationError is the reason why
// resources and paths are incomplete, and may be empty.
func RulesResponse[R, P any](resources []R, paths []P, incomplete bool, evaluationError string) any {
	type status struct {
		Resources  []R    `json:"resourceRules"`
		Paths      []P    `json:"nonResourceRules"`
		Incomplete bool   `json:"incomplete"`
		Error      string `json:"evaluationError,omitempty"`
	}
	s := status{Resources: resources, Paths: paths, Incomplete: incomplete, Error: evaluationError}
	return struct {
		Kind       string   `json:"kind"`
		APIVersion string   `json:"apiVersion"`
		Metadata   struct{} `json:"metadata"`
		Spec       struct{} `json:"spec"` // empty, as in Kubernetes
		Status     status   `json:"status"`
	}{Kind: RulesKind, APIVersion: Group + "/" + Version, Status: s}
}
