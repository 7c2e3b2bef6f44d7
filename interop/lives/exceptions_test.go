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
	"unicode/utf8"
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
	// quote is a difference of docs/kubetest.md, or a part of one of docs/kubernetes.md.
	quote string
}

// state is used instead of a verb if the objects differ, and not the answers to a request.
const state = "state"

// The differences that lives show, as docs/kubetest.md lists them.
const (
	fewDefaults = "**Built-in kinds have only a few of their defaults and checks**, which are in " +
		"[defaults.go](../kubeapi/kubetest/internal/rules/defaults.go). Values have the right types, but " +
		"a pod template may be incomplete, elements of lists have no defaults, services get no address, " +
		"and jobs no selector and labels."
	deletedAtOnce = "**A pod is deleted at once**, even if it is assigned to a node, because no kubelet confirms it. " +
		"The response and the last event do not show it as being deleted. Disruption budgets do not " +
		"prevent evictions."
	protection = "**Persistent volumes and their claims have no finalizer**, because no controller protects them."
	finalizer  = "**A namespace has its finalizer in metadata.finalizers**, and also in spec.finalizers."
	otherTexts = "**Some errors have other texts**, for example if the precondition of a delete of a namespace " +
		"does not hold."
	listKinds = "**The items of a list have kind and apiVersion**, also for built-in kinds. Typed clients then " +
		"see a TypeMeta that is not empty, unless they read Protobuf."
	undecodable = "**A stored object that cannot be converted** causes an error with the text of the conversion, without " +
		"the words of the storage around it."
	noReason = "**A webhook that refuses a request without a reason** causes an error with the reason of its code."
)

// Parts of the differences in docs/kubernetes.md.
const (
	betterErrors = "**An apply with unknown fields, values of wrong types or repeated elements of a set** " +
		"fails with 400."
	otherFault = "**Of several faults of a request**"
	firstApply = "The manager of all fields that existed before the first apply is `before-first-apply`."
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

// mentions accepts a difference if the value that Kubernetes has contains a text.
func mentions(text string) func(kubernetes, ours any) bool {
	return func(kubernetes, _ any) bool {
		s, _ := kubernetes.(string)
		return strings.Contains(s, text) || s == "namespaces"
	}
}

// hasScaled accepts entries of managedFields that differ only in the manager of the replicas:
// Kubernetes' scales give a custom resource replicas without a manager, and kubetest's first apply
// attributes them to before-first-apply. The manager of the spec as a whole has no effect.
func hasScaled(kubernetes, ours any) bool {
	others := func(v any) (entries []string) {
		for _, text := range v.([]string) {
			fields, isUpdate := strings.CutPrefix(text, "updates ")
			if !isUpdate {
				entries = append(entries, text)
				continue
			}
			entries = append(entries, slices.DeleteFunc(strings.Split(fields, "\n"), func(field string) bool {
				return field == ".spec" || field == ".spec.replicas"
			})...)
		}
		return entries
	}
	return slices.Equal(others(kubernetes), others(ours))
}

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
	return updater.ReplaceAllString(k, `"before-first-apply"`) == updater.ReplaceAllString(o, `"before-first-apply"`)
}

// updater matches the manager of earlier updates, and the version that it has used.
var updater = regexp.MustCompile(`"(lives|before-first-apply)"( using [^ :]+)?`)

// isStorageError accepts texts that differ only in the words that the storage of Kubernetes adds.
func isStorageError(kubernetes, ours any) bool {
	switch k := kubernetes.(type) {
	case string:
		o, _ := ours.(string)
		return k == "StorageReadError" ||
			strings.Contains(k, "object not decodable") && o != "" && strings.HasSuffix(k, o)
	case map[string]any:
		return ours == nil && strings.Contains(show(k), "object not decodable")
	}
	return false
}

// showsManagers accepts texts that differ only in the managedFields of an object that Kubernetes
// shows in the text.
func showsManagers(kubernetes, ours any) bool {
	k, _ := kubernetes.(string)
	return shownManagers.ReplaceAllString(k, "") == ours
}

// shownManagers matches the managedFields of an object in a text. Fields have no brackets.
var shownManagers = regexp.MustCompile(`,?"managedFields":\[[^]]*\]`)

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
		"", "", `^(spec|status|template|webhooks|source|deprecatedSource|reporting[a-zA-Z]+|subsets|endpoints)\b`,
		oursIsAbsent, fewDefaults,
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
	{"", "*", `^(items\[\d+\]\.)?metadata\.managedFields$`, hasScaled, firstApply},
	{"patch", "Status", `^(message|details\.causes)$`, repeats, otherTexts},
	{"create", "Status", `^(message|details\.causes)$`, isTerminating, otherFault},
	{"apply", "Status", `^(message|details\.causes\[\d+\]\.message)$`, namesOtherManager, firstApply},
	{"", "Namespace", `^metadata\.finalizers$`, hasNamespaceFinalizer, finalizer},
	{"", "PersistentVolume", `^metadata\.finalizers$`, hasProtection, protection},
	{"", "PersistentVolumeClaim", `^metadata\.finalizers$`, hasProtection, protection},
	{"deletecollection", "", `^items\[\d+\]\.(kind|apiVersion)$`, kubernetesIsAbsent, listKinds},
	{
		// Kubernetes takes the verb for the user, and the user for the verb.
		"configure", "Status", `^(message|details\.causes\[0\]\.message)$`, mentions("user get does not have"),
		otherTexts,
	},
	{"review", "Status", `^(message|details\.causes\[\d+\]\.message)$`, showsManagers, otherTexts},
	{"apply", "Status", `^code$`, codes(500, 400), betterErrors},
	{"", "Status", `^(message|details|reason)$`, isStorageError, undecodable},
	{"", "Status", `^reason$`, kubernetesIsAbsent, noReason},
}

// The list of differences in docs/kubetest.md is between these lines.
const (
	listBegins = "<!-- Written by go test ./lives -run Documentation -lives.docs -->\n"
	listEnds   = "<!-- The end of what interop/lives has written -->\n"
)

// TestDocumentationListsTheExceptions compares the list of docs/kubetest.md with the exceptions, or
// writes it.
func TestDocumentationListsTheExceptions(t *testing.T) {
	const file = "../../docs/kubetest.md"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	quoted, err := os.ReadFile("../../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), listBegins)
	old, after, ended := strings.Cut(rest, listEnds)
	if !found || !ended {
		t.Fatalf("%s has no lines %q and %q", file, listBegins, listEnds)
	}
	var list strings.Builder
	var seen []string
	for _, e := range exceptions {
		if !slices.Contains(seen, e.quote) && !strings.Contains(flatten(string(quoted)), e.quote) {
			seen = append(seen, e.quote)
			list.WriteString(bullet(e.quote))
		}
	}
	switch {
	case list.String() == old:
	case *writeDocs:
		if err := os.WriteFile(file, []byte(before+listBegins+list.String()+listEnds+after), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s does not list the exceptions: run go test with -lives.docs", file)
	}
}

// flatten returns a text on one line.
func flatten(text string) string { return strings.Join(strings.Fields(text), " ") }

// bullet returns an item of a list in Markdown, with lines of at most 120 characters.
func bullet(text string) string {
	var b strings.Builder
	line := "-"
	for _, word := range strings.Fields(text) {
		if utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > 120 {
			b.WriteString(line + "\n")
			line = " "
		}
		line += " " + word
	}
	return b.String() + line + "\n"
}

// explains reports whether e explains a difference of the answers to a request, or of the states.
func (e *exception) explains(verb string, d difference) bool {
	isBuiltIn := !slices.Contains([]string{"Widget", "Gadget", "Thing", "CustomResourceDefinition", "Status"}, d.kind)
	return (e.verb == "" || e.verb == verb) && (e.kind == d.kind || e.kind == "*" || e.kind == "" && isBuiltIn) &&
		regexp.MustCompile(e.part).MatchString(d.part) && (e.only == nil || e.only(d.kubernetes, d.ours))
}
