//go:build !race

package kubernetes

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An exception explains differences between the two servers' answers to a request. It concerns only
// requests with its verb and its trait. A subresource also counts as a trait; see concerns.
type exception struct {
	verb, trait      string
	kubernetes, ours int    // the codes of both answers
	part             string // if not empty, all differences must be in this part
	// quote is a sentence of docs/kubernetes.md.
	quote string
}

const (
	wrongTypes   = "with unknown fields, values of wrong types or repeated elements of a set** fails with 400."
	asWritten    = "**Objects are stored as they were written.**"
	unknownKept  = "Unknown fields are kept;"
	literal      = "**Numbers are stored literally**"
	otherFault   = "**Of several faults of a request**, one of which may be that the object does not exist, the server may report another one than Kubernetes."
	oneSchema    = "**A patch of the status that changes apiVersion** causes no warnings about unknown fields, because all versions have the same schema."
	noMethod     = "**A method that a path does not support** fails with 405."
	noCollector  = "propagation policies and grace periods are accepted, but they have no effect"
	tracked      = "**An object has managedFields from its first apply on**"
	versioned    = "**A create with a resourceVersion fails with 400.**"
	dryRunCounts = "**A delete with a body** ignores the query, except for `dryRun`."
	betterErrors = "for example 400 for an invalid `resourceVersion`"
)

// missingObject is a trait of requests for an object that one of the servers did not find.
const missingObject = "missing object"

// dryRunBesideBody is a trait of deletes with dryRun in the query and a body. Kubernetes ignores
// such a query, so only our server makes a dry run.
const dryRunBesideBody = "dryRun beside a body"

// exceptions explain all differences. No exception accepts that one server succeeds where the other
// one fails.
var exceptions = []*exception{
	{"create", "method", 400, 405, "", noMethod},
	{"update", "method", 400, 405, "", noMethod},
	{"patch", "method", 400, 405, "", noMethod},
	{"deletecollection", "no namespace", 404, 405, "", noMethod},
	{"create", "no namespace", 404, 405, "", noMethod},
	{"create", "version", 500, 400, "", versioned},
	{"create", "unknown field", 201, 201, "", unknownKept},
	{"update", "unknown field", 200, 200, "", unknownKept},
	{"patch", "unknown field", 200, 200, "", unknownKept},
	{"apply", "version bad", 500, 400, "", betterErrors},
	{"update", "version bad", 500, 400, "", betterErrors},
	{"patch", "version bad", 500, 400, "", betterErrors},
	{"patch", "value missing", 200, 200, "metadata.", asWritten},
	{"delete", "propagation", 200, 200, "", noCollector},
	{"delete", dryRunBesideBody, 200, 200, "", dryRunCounts},
	{"deletecollection", dryRunBesideBody, 200, 200, "", dryRunCounts},
	{"update", "scale", 200, 200, "metadata.resourceVersion", tracked},
	{"patch", "scale", 200, 200, "metadata.resourceVersion", tracked},
	{"patch", "managedFields {}", 200, 200, "metadata.resourceVersion", tracked},
	{"create", "numbers", 201, 201, "", literal},
	{"update", "numbers", 200, 200, "", literal},
	{"apply", "wrong type", 500, 400, "", wrongTypes},
	{"apply", "unknown field", 500, 400, "", wrongTypes},
	{"apply", "repeated element", 500, 400, "", wrongTypes},
	{"get", "resourceVersion=abc", 500, 400, "", betterErrors},
	{"watch", "resourceVersion=abc", 500, 400, "", betterErrors},
	{"watch", "sendInitialEvents=x", 422, 400, "", betterErrors},
	{"patch", "apiVersion null", 500, 422, "", betterErrors},
	{"patch", "apiVersion wrong", 200, 200, "warnings", oneSchema},
	{"patch", missingObject, 404, 422, "", otherFault},
	{"patch", missingObject, 404, 400, "", otherFault},
	{"apply", missingObject, 404, 400, "", otherFault},
	{"update", missingObject, 404, 400, "", otherFault},
}

// normalizations lists the functions that hide differences between the servers from the comparison,
// with sentences that document these differences. A sentence with a URL is from Kubernetes'
// documentation.
var normalizations = []struct{ code, quote, url string }{
	{"compareManagers", "**An object has managedFields from its first apply on**", ""},
	{"compareManagers", "The manager of all fields that existed before the first apply is `before-first-apply`.", ""},
	{"isEmpty", asWritten, ""},
	{"addFault", asWritten, ""},
	{
		"withoutRepeatedTry",
		"GuaranteedUpdate keeps calling 'tryUpdate()' to update key 'key' (of type 'destination')",
		"https://github.com/kubernetes/apiserver/blob/master/pkg/storage/interfaces.go",
	},
	{
		"normalizeMetadata",
		"**A write that removes the last finalizer of a marked object** responds with the version of the deletion.",
		"",
	},
	{"endWatch", "Some rules of the watch protocol are better defined than in Kubernetes", ""},
	{
		"compareAnswers", "Kubernetes will always return the `Status` kind from any API endpoint when an error occurs.",
		"https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md#response-status-kind",
	},
	{
		"normalizeStatus", "A human-readable description of the status of this operation.",
		"https://pkg.go.dev/k8s.io/apimachinery/pkg/apis/meta/v1#Status",
	},
	{
		"answer", "Field validation is performed, but errors are exposed as warnings rather than failing the request",
		"https://kubernetes.io/docs/concepts/overview/working-with-objects/#server-side-field-validation",
	},
	{
		"normalize", "description is a human readable description of this column.",
		"https://pkg.go.dev/k8s.io/apimachinery/pkg/apis/meta/v1#TableColumnDefinition",
	},
}

func TestExceptionsQuoteDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(page)), " ")
	for _, e := range exceptions {
		if !strings.Contains(text, e.quote) {
			t.Errorf("%v: docs/kubernetes.md does not contain %q", e, e.quote)
		}
		if (e.kubernetes < 300) != (e.ours < 300) {
			t.Errorf("%v excuses a success against an error", e)
		}
	}
	published := []string{
		metav1.Status{}.SwaggerDoc()["message"],
		metav1.TableColumnDefinition{}.SwaggerDoc()["description"],
	}
	for _, n := range normalizations {
		if strings.HasPrefix(n.url, "https://pkg.go.dev/") && !slices.Contains(published, n.quote) {
			t.Errorf("%s: the documentation of Kubernetes' types does not contain %q", n.code, n.quote)
		}
		if n.url == "" && !strings.Contains(text, n.quote) {
			t.Errorf("%s: docs/kubernetes.md does not contain %q", n.code, n.quote)
		}
	}
}

func (e *exception) String() string {
	return fmt.Sprintf("%s, %s: %d, ours %d", e.verb, e.trait, e.kubernetes, e.ours)
}

// explains reports whether e explains all differences of two answers to r.
func (e *exception) explains(r request, kubernetes, ours answer, all []difference) bool {
	missing := kubernetes.code == 404 || ours.code == 404
	return e.concerns(r) && (missing || e.trait != missingObject) && e.kubernetes == kubernetes.code &&
		e.ours == ours.code &&
		!slices.ContainsFunc(all, func(d difference) bool { return !strings.HasPrefix(d.part, e.part) })
}

// concerns reports whether e may explain answers to r.
func (e *exception) concerns(r request) bool {
	verb, subresource, _ := strings.Cut(r.verb, "/")
	return e.verb == verb && (slices.Contains(r.traits, e.trait) || e.trait == missingObject || e.trait == subresource)
}

const legend = "# $S is the URL of the server, for example of listwatch serve --crd " + definitionsFile + ".\n" +
	"# @rv, @old and @uid stand for the version, the version before and the UID of an object,\n" +
	"# @list and @continue for the version and the token of the last list."

var listIndex = regexp.MustCompile(`\[\d+\]`)

// explain reports whether the sequence can continue after two answers to r, or returns an error if
// no exception explains how they differ.
func (c *comparison) explain(r request, kubernetes, ours answer, all []difference, lines []string) (bool, error) {
	diverges := slices.Contains(r.traits, dryRunBesideBody) && kubernetes.code < 300
	if all == nil && !diverges {
		return true, nil
	}
	if i := slices.IndexFunc(c.exceptions,
		func(e *exception) bool { return e.explains(r, kubernetes, ours, all) }); i >= 0 {
		c.used[c.exceptions[i]]++
		return kubernetes.code >= 300, nil // the objects are the same if nothing was written
	}
	if !*allDifferences {
		return false, fmt.Errorf("%v\n%s\n%s", all, strings.Join(lines, "\n"), legend)
	}
	key := fmt.Sprintf("%s %v %d/%d %s", r.verb, r.traits, kubernetes.code, ours.code,
		listIndex.ReplaceAllString(all[0].part, "[]"))
	e := c.classes[key]
	if e == nil {
		e = &class{}
		c.classes[key] = e
	}
	e.count++
	if e.example == nil || len(lines) < len(e.example) {
		e.example, e.differences = slices.Clone(lines), all
	}
	return false, nil
}
