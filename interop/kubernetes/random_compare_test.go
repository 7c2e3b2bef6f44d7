//go:build !race

package kubernetes

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/listwatch/listwatch/interop/internal/jsontree"
)

// A difference is one part in which two answers to a request differ.
type difference struct {
	part string // code, reason, details or warnings, or else the path of a field
	// kubernetes and ours are the values of the part in the two answers.
	kubernetes, ours any
}

func (d difference) String() string {
	return fmt.Sprintf("%s: Kubernetes has %s, ours has %s", d.part, show(d.kubernetes), show(d.ours))
}

func show(v any) string {
	text := fmt.Sprint(v)
	if len(text) > 600 {
		text = text[:600] + "…"
	}
	return text
}

// compareAnswers returns the differences of two answers. If the codes differ, it returns only this
// difference.
func compareAnswers(kubernetes, ours answer) []difference {
	if kubernetes.code != ours.code {
		show := func(a answer) string { return fmt.Sprint(a.code, " ", a.message, " ", a.body) }
		return []difference{{"code", show(kubernetes), show(ours)}}
	}
	if kubernetes.body == "text" {
		return nil // Kubernetes has no Status for paths that it does not know
	}
	all := compareTrees("", kubernetes.body, ours.body)
	if kubernetes.code < 300 && kubernetes.mediaType != ours.mediaType {
		all = append(all, difference{"Content-Type", kubernetes.mediaType, ours.mediaType})
	}
	k := kubernetes.warnings
	if kubernetes.code == http.StatusOK { // Kubernetes tries a create only once
		k = withoutRepeatedTry(k, ours.warnings)
	}
	if kubernetes.code < 300 && !slices.Equal(k, ours.warnings) {
		all = append(all, difference{"warnings", k, ours.warnings})
	}
	return all
}

// withoutRepeatedTry returns the warnings of Kubernetes without any warning that mentions
// finalizers and that our server did not send. Kubernetes tries an update with the object in its
// cache first. If that object was too old, Kubernetes tries again, but keeps the warnings of the
// first try.
func withoutRepeatedTry(kubernetes, ours []string) []string {
	return slices.DeleteFunc(slices.Clone(kubernetes), func(w string) bool {
		return strings.Contains(w, "metadata.finalizers") && !slices.Contains(ours, w)
	})
}

// compareTrees returns the differences of two normalized JSON values at a path.
func compareTrees(path string, kubernetes, ours any) (all []difference) {
	jsontree.Walk(path, kubernetes, ours, func(path string, k, o any) {
		switch {
		case strings.HasSuffix(path, ".managedFields"):
			all = append(all, compareManagers(path, k, o)...)
		case !reflect.DeepEqual(k, o):
			all = append(all, difference{strings.TrimPrefix(path, "."), k, o})
		}
	})
	return all
}

// compareManagers compares managedFields. An object of our server has no managedFields before the
// first apply. The first apply adds one entry for all earlier updates.
func compareManagers(path string, kubernetes, ours any) []difference {
	k, _ := kubernetes.([]manager)
	o, ok := ours.([]manager)
	if !ok {
		return nil
	}
	if slices.ContainsFunc(o, func(m manager) bool { return m.name == "before-first-apply" }) {
		k, o = foldUpdates(k), foldUpdates(o)
	}
	if fmt.Sprint(k) == fmt.Sprint(o) {
		return nil
	}
	return []difference{{strings.TrimPrefix(path, "."), k, o}}
}
