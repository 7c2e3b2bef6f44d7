package oidc

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/listwatch/listwatch"
)

// issuerOf returns the claim iss of a token that has not been verified, or "" if the token is not a
// JSON Web Token (rfc7519).
func issuerOf(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var c struct {
		Issuer string `json:"iss"`
	}
	if json.Unmarshal(payload, &c) != nil {
		return ""
	}
	return c.Issuer
}

// claims are the claims of a verified token.
type claims map[string]json.RawMessage

// name returns the name of the user.
func (c claims) name(o Options) (string, error) {
	claim := o.UserClaim
	if claim == "" {
		claim = "sub"
	}
	var name string
	if json.Unmarshal(c[claim], &name) != nil || name == "" {
		return "", unauthorized("the token has no claim " + claim + " with the name of the user")
	}
	if verified, ok := c["email_verified"]; ok && claim == "email" && string(verified) != "true" {
		return "", unauthorized("the provider has not verified the email address of the user")
	}
	name = o.UserPrefix + name
	return name, checkName(name)
}

// groups returns the groups of the user.
func (c claims) groups(o Options) (groups []string, err error) {
	claim := o.GroupsClaim
	if claim == "" {
		claim = "groups"
	}
	value, ok := c[claim]
	if !ok || string(value) == "null" {
		return nil, nil
	}
	if json.Unmarshal(value, &groups) != nil {
		var group string
		if json.Unmarshal(value, &group) != nil {
			return nil, unauthorized("the claim " + claim + " must be a string or a list of strings")
		}
		groups = []string{group}
	}
	for i := range groups {
		groups[i] = o.GroupsPrefix + groups[i]
		if err := checkName(groups[i]); err != nil {
			return nil, err
		}
	}
	return groups, nil
}

// checkName refuses the names that Kubernetes reserves for users and groups of the system.
func checkName(name string) error {
	if strings.HasPrefix(name, "system:") {
		return unauthorized("the name " + name + " of the token is reserved")
	}
	return nil
}

func unauthorized(message string) error {
	return &listwatch.Error{Code: listwatch.Unauthorized, Message: message}
}
