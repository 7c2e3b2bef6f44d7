package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/watchserver"
)

const tenantLabel = "example.com/tenant"

// tenantOf returns the tenant of a user, or "" if there is none.
func tenantOf(user watchserver.User) string {
	for _, group := range user.Groups {
		if tenant, ok := strings.CutPrefix(group, "tenant:"); ok {
			return tenant
		}
	}
	return ""
}

// scope restricts each user to the flags of one tenant, for reads and for writes.
func scope(_ context.Context, user watchserver.User) (s listwatch.Selection, err error) {
	tenant := tenantOf(user)
	if tenant == "" {
		return s, listwatch.Cause{Message: "the user belongs to no tenant"}
	}
	s.Labels, err = listwatch.LabelEquals(tenantLabel, tenant)
	return s, err
}

// authorize lets every user read, and only writers write.
func authorize(_ context.Context, user watchserver.User, verb string, _ listwatch.Key) error {
	if slices.Contains([]string{"get", "list", "watch"}, verb) || slices.Contains(user.Groups, "writers") {
		return nil
	}
	return listwatch.Cause{Message: "only writers may " + verb}
}

// admit sets defaults and refuses invalid flags. old is nil for a create.
func admit(ctx context.Context, old, flag *Flag) error {
	if old == nil && flag.Labels[tenantLabel] == "" {
		if flag.Labels == nil {
			flag.Labels = map[string]string{}
		}
		flag.Labels[tenantLabel] = tenantOf(watchserver.UserOf(ctx))
	}
	if flag.Salt == "" {
		flag.Salt = flag.Name
	}
	var err error
	if flag.Percent < 0 || flag.Percent > 100 {
		err = listwatch.Cause{Reason: listwatch.CauseInvalid, Field: "percent", Message: "must be between 0 and 100"}
	}
	if old != nil && flag.Salt != old.Salt {
		err = errors.Join(err,
			listwatch.Cause{Reason: listwatch.CauseForbidden, Field: "salt", Message: "must not change"})
	}
	return err
}
