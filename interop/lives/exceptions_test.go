//go:build !race

package lives

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// An exception explains differences between the two sides.
type exception struct {
	// verb is the verb of the requests whose answers differ, or state if the objects differ. If it
	// is empty, both may.
	verb string
	// kind is the kind whose objects or answers differ. If it is empty, it is any built-in kind; an
	// asterisk stands for every kind.
	kind string
	// part matches the parts in which they differ.
	part string
	// only reports whether this difference of the values is allowed. If only is nil, every
	// difference is allowed.
	only func(kubernetes, ours any) bool
	// quote is a sentence of docs/kubetest.md or docs/kubernetes.md.
	quote string
}

// state is used instead of a verb if the objects differ, and not the answers to a request.
const state = "state"

const (
	fewDefaults   = "**Built-in kinds have only a few of their defaults and checks**"
	protection    = "**Persistent volumes and their claims have no finalizer**"
	finalizer     = "**A namespace has its finalizer in metadata.finalizers**, and also in spec.finalizers."
	listKinds     = "**The items of a list have kind and apiVersion**, also for built-in kinds."
	betterErrors  = "**An apply with unknown fields, values of wrong types or repeated elements of a set** fails with 400."
	otherTexts    = "**Some errors have other texts**"
	deletedAtOnce = "**A pod is deleted at once**"
	keptNames     = "**A definition that is being deleted** keeps its accepted names."
	otherFault    = "**Of several faults of a request**"
	firstApply    = "The manager of all fields that existed before the first apply is `before-first-apply`."
	noManager     = "**Defaults have no manager**"
	noWarnings    = "There are no warnings about deprecated kinds."
)

// oursIsAbsent accepts values that kubetest leaves out.
func oursIsAbsent(_, ours any) bool { return ours == nil }

// kubernetesIsAbsent accepts values that Kubernetes leaves out.
func kubernetesIsAbsent(kubernetes, _ any) bool { return kubernetes == nil }

// hasNamespaceFinalizer accepts one more finalizer, kubernetes.
func hasNamespaceFinalizer(kubernetes, ours any) bool {
	all, _ := ours.([]any)
	rest := slices.DeleteFunc(slices.Clone(all), func(f any) bool { return f == "kubernetes" })
	want, _ := kubernetes.([]any)
	return len(rest) == len(all)-1 && slices.Equal(rest, want)
}

// hasProtection accepts one more finalizer of Kubernetes: one that protects a volume.
func hasProtection(kubernetes, ours any) bool {
	all, _ := kubernetes.([]any)
	rest := slices.DeleteFunc(slices.Clone(all),
		func(f any) bool { return strings.HasSuffix(fmt.Sprint(f), "-protection") })
	want, _ := ours.([]any)
	return len(rest) == len(all)-1 && slices.Equal(rest, want)
}

// isDeprecated accepts one more warning of Kubernetes, about a deprecated kind.
func isDeprecated(kubernetes, ours any) bool {
	k, o := kubernetes.([]string), ours.([]string)
	rest := slices.DeleteFunc(slices.Clone(k), func(w string) bool { return strings.Contains(w, "is deprecated in") })
	return len(rest) == len(k)-1 && slices.Equal(rest, o)
}

// mentions accepts a difference if the value that Kubernetes has contains a text.
func mentions(text string) func(kubernetes, ours any) bool {
	return func(kubernetes, _ any) bool {
		s, _ := kubernetes.(string)
		return strings.Contains(s, text) || s == "namespaces"
	}
}

// differsInUpdates accepts entries of managedFields that differ only in the fields of updates:
// Kubernetes has more, because it counts defaults, and kubetest has finalizers and owner references
// that the garbage collection has removed, or the marks of a deletion.
func differsInUpdates(kubernetes, ours any) bool {
	split := func(v any) (applies, updates []string) {
		for _, text := range v.([]string) {
			fields, isUpdate := strings.CutPrefix(text, "updates ")
			if !isUpdate {
				applies = append(applies, text)
				continue
			}
			updates = slices.DeleteFunc(strings.Split(fields, "\n"), func(field string) bool {
				return collected.MatchString(field)
			})
		}
		return applies, updates
	}
	k, more := split(kubernetes)
	o, fewer := split(ours)
	return slices.Equal(k, o) &&
		!slices.ContainsFunc(fewer, func(field string) bool { return !slices.Contains(more, field) })
}

// collected matches the fields that the garbage collection, deletes and scales change.
var collected = regexp.MustCompile(`^\.metadata\.(finalizers|ownerReferences|deletion)|^\.spec\.replicas$`)

// repeats accepts a cause that Kubernetes reports twice.
func repeats(kubernetes, ours any) bool {
	if causes, ok := kubernetes.([]any); ok {
		return len(causes) == 2 && reflect.DeepEqual(causes[:1], ours) && reflect.DeepEqual(causes[1:], ours)
	}
	k, _ := kubernetes.(string)
	return strings.Count(k, "no new finalizers can be added") == 2
}

// isTerminating accepts a create that fails for different reasons: in kubetest because its
// namespace is being deleted, in Kubernetes because its definition is being deleted.
func isTerminating(kubernetes, ours any) bool {
	k, _ := kubernetes.(string)
	return strings.HasSuffix(k, "while custom resource definition is terminating") &&
		strings.Contains(ours.(string), "in namespace") ||
		kubernetes == nil && strings.Contains(fmt.Sprint(ours), "NamespaceTerminating")
}

// namesOtherManager accepts texts that differ only in the manager of earlier updates.
func namesOtherManager(kubernetes, ours any) bool {
	k, _ := kubernetes.(string)
	o, _ := ours.(string)
	return strings.ReplaceAll(k, `"lives"`, `"before-first-apply"`) == o
}

// codes accepts the codes of two answers.
func codes(kubernetes, ours int) func(k, o any) bool {
	return func(k, o any) bool {
		return strings.HasPrefix(k.(string), fmt.Sprint(kubernetes, " ")) &&
			strings.HasPrefix(o.(string), fmt.Sprint(ours, " "))
	}
}

// exceptions explain all differences.
var exceptions = []*exception{
	{
		"", "", `^(spec|status|template|webhooks|source|reporting[a-zA-Z]+|subsets|endpoints)\b`, oursIsAbsent,
		fewDefaults,
	},
	{
		"", "", `^items\[\d+\]\.(spec|status|template|source|reporting[a-zA-Z]+|subsets|endpoints)\b`, oursIsAbsent,
		fewDefaults,
	},
	{"", "DaemonSet", `^(items\[\d+\]\.)?metadata\.annotations\b`, oursIsAbsent, fewDefaults},
	{"", "Job", `^(items\[\d+\]\.)?metadata\.labels\b`, oursIsAbsent, fewDefaults},
	{"delete", "Pod", `^metadata\.(deletion[a-zA-Z]+|generation)$`, nil, deletedAtOnce},
	{"delete", "Pod", `^metadata\.finalizers$`, kubernetesIsAbsent, deletedAtOnce},
	{
		"delete", "Status", `^(message|details\.kind)$`, mentions(`Operation cannot be fulfilled on namespaces`),
		otherTexts,
	},
	{"", "*", `^(items\[\d+\]\.)?metadata\.managedFields$`, differsInUpdates, noManager},
	{"patch", "Status", `^(message|details\.causes)$`, repeats, otherTexts},
	{"", "CustomResourceDefinition", `^status\.acceptedNames\.`, oursIsAbsent, keptNames},
	{"create", "Status", `^(message|details\.causes)$`, isTerminating, otherFault},
	{"apply", "Status", `^(message|details\.causes\[\d+\]\.message)$`, namesOtherManager, firstApply},
	{"", "Namespace", `^metadata\.finalizers$`, hasNamespaceFinalizer, finalizer},
	{"", "PersistentVolume", `^metadata\.finalizers$`, hasProtection, protection},
	{"", "PersistentVolumeClaim", `^metadata\.finalizers$`, hasProtection, protection},
	{"deletecollection", "", `^items\[\d+\]\.(kind|apiVersion)$`, kubernetesIsAbsent, listKinds},
	{"apply", "Status", `^code$`, codes(500, 400), betterErrors},
	{"", "*", `^warnings$`, isDeprecated, noWarnings},
}

func TestExceptionsQuoteDocumentation(t *testing.T) {
	var text string
	for _, name := range []string{"kubetest.md", "kubernetes.md"} {
		page, err := os.ReadFile("../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		text += strings.Join(strings.Fields(string(page)), " ")
	}
	for _, e := range exceptions {
		if !strings.Contains(text, e.quote) {
			t.Errorf("no page contains %q", e.quote)
		}
	}
}

// explains reports whether e explains a difference of the answers to a request, or of the states.
func (e *exception) explains(verb string, d difference) bool {
	isBuiltIn := !slices.Contains([]string{"Widget", "Gadget", "Thing", "CustomResourceDefinition", "Status"}, d.kind)
	return (e.verb == "" || e.verb == verb) && (e.kind == d.kind || e.kind == "*" || e.kind == "" && isBuiltIn) &&
		regexp.MustCompile(e.part).MatchString(d.part) && (e.only == nil || e.only(d.kubernetes, d.ours))
}
