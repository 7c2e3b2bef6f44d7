//go:build !race

package lives

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch/kubeapi/kubetest"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestConversionsActAsInACluster leads lives of definitions whose objects a webhook converts. The
// same function serves both sides: the cluster over the network, and kubetest in memory.
func TestConversionsActAsInACluster(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/", serveReview)
	mux.HandleFunc("/convert", serveConversion)
	server := httptest.NewTLSServer(mux)
	defer server.Close()
	k, _ := startAPIServer(t)
	k.fill = strings.NewReplacer("HOOKS", server.URL, "BUNDLE", bundle(server),
		"CONVERTER", `{"url":"`+server.URL+`/convert","caBundle":`+bundle(server)+`}`)
	env := kubetest.New(t, kubetest.Options{})
	env.WebhookMux().HandleFunc("/convert", serveConversion)
	o := newSide(t, "kubetest", env.Config())
	o.fill = strings.NewReplacer("HOOKS", server.URL, "BUNDLE", bundle(server),
		"CONVERTER", `{"service":{"namespace":"system","name":"webhook","path":"/convert"}}`)
	c := &comparison{kubernetes: k, ours: o, classes: map[string]*class{}}
	all := maps.Clone(conversions)
	for i := range uint64(*number) {
		seed := *first + i
		all[fmt.Sprint("conversions-", seed)] = generateConversions(seed)
	}
	chosen := regexp.MustCompile(*only)
	maps.DeleteFunc(all, func(name string, _ []step) bool { return !chosen.MatchString(name) })
	begin := time.Now()
	c.leadAll(t.Context(), all)
	c.report(t)
	t.Logf("%d lives, %d requests, %v", len(all), c.requests, time.Since(begin).Round(time.Second))
}

// serveConversion converts gears: v1beta1 has the material in upper case, and the color in the
// member old. Some materials make it fail.
func serveConversion(w http.ResponseWriter, r *http.Request) {
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	response := &apiextensionsv1.ConversionResponse{UID: review.Request.UID}
	response.Result.Status = metav1.StatusSuccess
	for _, o := range review.Request.Objects {
		var u unstructured.Unstructured
		if err := json.Unmarshal(o.Raw, &u.Object); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		material := convertGear(&u, review.Request.DesiredAPIVersion)
		switch material {
		case "crash":
			http.Error(w, "oops", http.StatusInternalServerError)
			return
		case "refused":
			response.Result = metav1.Status{Status: metav1.StatusFailure, Message: "no such material"}
		case "silent":
			response.Result = metav1.Status{Status: metav1.StatusFailure}
		case "lost":
			continue
		case "same":
			u.SetAPIVersion(strings.Replace(u.GetAPIVersion(), "/", "/v1", 1))
		case "moved":
			u.SetName("other")
		case "kind":
			u.SetKind("Other")
		case "label":
			u.SetLabels(map[string]string{"converted": "yes"})
		}
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Object: &u})
	}
	review.Request, review.Response = nil, response
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(mustJSON(review))
}

// convertGear converts a gear to a version, and returns its material in lower case.
func convertGear(u *unstructured.Unstructured, apiVersion string) string {
	material, _, _ := unstructured.NestedString(u.Object, "spec", "material")
	from, to, change := "color", "old", strings.ToUpper
	if strings.HasSuffix(apiVersion, "/v1") {
		from, to, change = to, from, strings.ToLower
	}
	if spec, ok := u.Object["spec"].(map[string]any); ok {
		if value, ok := spec[from]; ok {
			spec[to] = value
			delete(spec, from)
		}
		if material != "" {
			spec["material"] = change(material)
		}
	}
	u.SetAPIVersion(apiVersion)
	return strings.ToLower(material)
}

// converted is the definition of gears with a webhook. v1 also has the member color.
var converted = strings.NewReplacer(`"scope":"Namespaced",`, `"scope":"Namespaced","conversion":{"strategy":"Webhook",`+
	`"webhook":{"conversionReviewVersions":["v1"],"clientConfig":CONVERTER}},`,
	`"material":{"type":"string","default":"steel"}`,
	`"material":{"type":"string","default":"steel"},"color":{"type":"string"}`).Replace(gears)

// definedGears returns steps that define gears, and wait until both versions are served.
func definedGears(steps ...step) []step {
	return slices.Concat([]step{define(converted), await(getGears("v1")), await(getGears("v1beta1"))}, steps)
}

// broken are the materials that make a conversion fail. None contains the placeholder NAME.
var broken = []string{"crash", "refused", "silent", "lost", "same", "moved", "kind"}

// conversions are the written lives.
var conversions = func() map[string][]step {
	all := map[string][]step{
		"conversion-of-writes": definedGears(
			createGear("v1beta1", "a", `{"teeth":7,"old":"red","material":"BRASS"}`),
			createGear("v1", "b", `{"teeth":7,"color":"red"}`),
			createGear("v1beta1", "c", `{"teeth":10}`), createGear("v1beta1", "c", `{"teeth":"x"}`),
			getGears("v1"), getGears("v1beta1"),
			gear(http.MethodPatch, "v1beta1", "b", `{"spec":{"old":"blue"}}`),
			gear(http.MethodPatch, "v1", "a", `{"spec":{"color":null,"material":"iron"}}`),
			gear(http.MethodPatch, "v1beta1", "a", `{"spec":{"color":"green"}}`),
			gear(http.MethodPatch, "v1beta1", "a", `{"spec":{"old":null}}`),
			gear(http.MethodPut, "v1beta1", "a", gearBody("v1beta1", "a", `{"teeth":3,"old":"red"}`)),
			gear(http.MethodPatch, "v1", "a/status", `{"status":{"turns":1}}`),
			gear(http.MethodGet, "v1beta1", "a", ""),
			gear(http.MethodPatch, "v1", "a/scale", `{"spec":{"replicas":5}}`),
			gear(http.MethodDelete, "v1beta1", "a", ""), gear(http.MethodDelete, "v1beta1", "", ""), getGears("v1"),
		),
		"conversion-of-applies": definedGears(
			applyGear("v1beta1", "old", `{"teeth":7,"old":"red"}`), applyGear("v1", "new", `{"material":"brass"}`),
			applyGear("v1", "new", `{"teeth":8}`), applyGear("v1beta1", "old", `{"teeth":8,"old":"red"}`),
			applyGear("v1", "new", `{"color":"blue"}`), applyGear("v1", "old", `{"teeth":9,"color":"red"}`),
			applyGear("v1beta1", "new", `{"material":"IRON"}`), gear(http.MethodGet, "v1", "a", ""),
			gear(http.MethodPatch, "v1beta1", "a", `{"spec":{"old":"green"}}`),
			applyGear("v1beta1", "old", `{}`), gear(http.MethodGet, "v1", "a", ""),
			applyGear("v1", "new", `{}`), gear(http.MethodGet, "v1beta1", "a", ""),
		),
		"conversion-after-the-storage-version-changes": definedGears(
			createGear("v1", "a", `{"teeth":7,"color":"red"}`),
			createGear("v1beta1", "b", `{"old":"red","material":"X"}`),
			storedInBeta, await(createGear("v1beta1", "c", `{"teeth":7,"old":"x"}`)),
			getGears("v1"), getGears("v1beta1"), gear(http.MethodPatch, "v1beta1", "a", `{"spec":{"old":"z"}}`),
			gear(http.MethodGet, "v1", "a", ""), applyGear("v1", "m", `{"material":"brass"}`),
			applyGear("v1beta1", "n", `{"old":"y"}`), gear(http.MethodGet, "v1", "a", ""),
			gear(http.MethodDelete, "v1", "a", ""),
		),
		"conversion-changes-labels": definedGears(
			createGear("v1", "a", `{"material":"label"}`), createGear("v1beta1", "b", `{"material":"LABEL"}`),
			gear(http.MethodGet, "v1beta1", "a", ""), gear(http.MethodGet, "v1", "b", ""),
			gear(http.MethodPatch, "v1beta1", "a", `{"spec":{"teeth":2}}`), gear(http.MethodGet, "v1", "a", ""),
		),
	}
	forWebhooks := mutating(`"gears"`, [][2]string{{"/echo", notSecrets}})
	forWebhooks[0].body = strings.Replace(forWebhooks[0].body, `"apiVersions":["*"]`, `"apiVersions":["v1"]`, 1)
	all["conversion-for-webhooks"] = definedGears(append(forWebhooks,
		createGear("v1beta1", "a", `{"material":"REFUSED"}`), createGear("v1", "a", `{"material":"refused"}`),
		createGear("v1beta1", "b", `{"old":"red","material":"BRASS"}`),
		gear(http.MethodPatch, "v1beta1", "b", `{"spec":{"old":"blue"}}`),
		applyGear("v1beta1", "m", `{"material":"CRASH"}`),
		gear(http.MethodDelete, "v1beta1", "b", ""))...)
	for _, material := range broken {
		all["conversion-is-"+material] = definedGears(failing(material)...)
	}
	return all
}()

// failing are requests for gears of a material that makes conversions fail.
func failing(material string) []step {
	upper := strings.ToUpper(material)
	return []step{
		createGear("v1beta1", "a", `{"material":"`+upper+`"}`), createGear("v1", "a", `{"material":"`+material+`"}`),
		gear(http.MethodGet, "v1", "a", ""), gear(http.MethodGet, "v1beta1", "a", ""), getGears("v1beta1"),
		gear(http.MethodPatch, "v1beta1", "a", `{"spec":{"teeth":2}}`), applyGear("v1beta1", "m", `{"teeth":2}`),
		applyGear("v1", "m", `{"teeth":2}`), gear(http.MethodPut, "v1beta1", "a", gearBody("v1beta1", "a", `{}`)),
		gear(http.MethodPatch, "v1", "a", `{"spec":{"teeth":3}}`), gear(http.MethodDelete, "v1beta1", "a", ""),
		gear(http.MethodDelete, "v1beta1", "", ""), gear(http.MethodDelete, "v1", "a", ""),
		createGear("v1", "b", `{}`), gear(http.MethodPatch, "v1beta1", "b", `{"spec":{"material":"`+upper+`"}}`),
		applyGear("v1beta1", "m", `{"material":"`+upper+`"}`),
	}
}

// generateConversions returns the steps of the random life with the given seed. There are three
// sorts of lives. In the first one, objects are created without an apply. In the others, they are
// created only by applies, because kubetest knows managers from the first apply on. In the third
// one, the storage version changes, and no conversion fails, because a cluster cannot serve a
// resource again if it has objects that it cannot read.
func generateConversions(seed uint64) []step {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 2))}
	g.steps = definedGears()
	sort := seed % 3
	n := 10 + g.IntN(8)
	for i := range n {
		if sort == 2 && i == n/2 {
			g.add(storedInBeta)
		}
		g.conversionStep(sort > 0, sort < 2)
	}
	g.add(getGears("v1"))
	g.add(getGears("v1beta1"))
	return g.steps
}

// gearSpec returns the spec of a gear in a version. It has at most one fault, because the order of
// several faults is random in a cluster. It can make a conversion fail if fails is true.
func (g *generator) gearSpec(version string, fails bool) string {
	color, change := "color", strings.ToLower
	if version != "v1" {
		color, change = "old", strings.ToUpper
	}
	var all []string
	if !g.chance(3) {
		all = append(all, `"teeth":`+oneOf(g, "1", "2", "9", "10"))
	}
	if g.chance(2) {
		all = append(all, `"`+color+`":"`+oneOf(g, "red", "blue")+`"`)
	}
	if g.chance(2) {
		material := oneOf(g, "brass", "iron", "")
		if fails && g.chance(8) {
			material = oneOf(g, broken...)
		}
		all = append(all, `"material":"`+change(material)+`"`)
	}
	return "{" + strings.Join(all, ",") + "}"
}

// conversionStep adds a step, which is an apply or not a create if applies is true.
func (g *generator) conversionStep(applies, fails bool) {
	version, name := oneOf(g, "v1", "v1beta1"), oneOf(g, "a", "b")
	spec := g.gearSpec(version, fails)
	switch g.IntN(12) {
	case 0, 1, 2, 3, 4:
		if !applies {
			g.add(createGear(version, name, spec))
			return
		}
		s := applyGear(version, oneOf(g, "m", "n"), spec)
		s.query += oneOf(g, "", "", "&force=true", "&dryRun=All")
		g.add(s)
	case 5, 6:
		g.add(gear(http.MethodPatch, version, name,
			`{"spec":`+oneOf(g, spec, spec, spec, `{"color":null}`, `{"old":null,"material":null}`)+`}`))
	case 7, 8:
		g.add(gear(http.MethodPut, version, name, gearBody(version, name, spec)))
	case 9:
		g.add(gear(http.MethodGet, version, name, ""))
	case 10:
		g.add(getGears(version))
	case 11:
		g.add(gear(http.MethodDelete, version, oneOf(g, name, name, ""), ""))
	}
}
