package crd_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch/kubeapi/crd"
	"github.com/listwatch/listwatch/store/memory"
)

// twoVersions is a definition whose storage version is v1.
const twoVersions = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gears.demo.example.com}
spec:
  group: demo.example.com
  scope: Namespaced
  names: {plural: gears, kind: Gear}
  versions:
  - name: v1beta1
    served: true
    storage: false
    deprecated: true
    deprecationWarning: Gears of v1beta1 squeak
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {teeth: {type: integer}}}}}}
  - name: v1
    served: true
    storage: true
    selectableFields: [{jsonPath: .spec.teeth}]
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {teeth: {type: integer, maximum: 9}}}}}}
`

func gears(version string) string { return "/apis/demo.example.com/" + version + "/namespaces/n/gears" }

func gear(version, name, teeth string) string {
	return `{"apiVersion":"demo.example.com/` + version + `","kind":"Gear","metadata":{"name":"` + name +
		`"},"spec":{"teeth":` + teeth + `}}`
}

func TestAllVersionsAreServed(t *testing.T) {
	a := newAPI(t, twoVersions)
	const jsonType = "application/json"
	a.want(t, 201, "POST", gears("v1"), jsonType, gear("v1", "a", "7"))
	a.want(t, 422, "POST", gears("v1"), jsonType, gear("v1", "b", "10"))
	wantText(t, a.want(t, 201, "POST", gears("v1beta1"), jsonType, gear("v1beta1", "b", "10")),
		`"apiVersion":"demo.example.com/v1beta1"`)
	if got := strings.Join(a.warnings, ""); got != `299 - "Gears of v1beta1 squeak"` {
		t.Errorf("got the warnings %s", got)
	}
	a.want(t, 400, "POST", gears("v1beta1"), jsonType, gear("v1", "c", "1"))
	for _, version := range []string{"v1", "v1beta1"} {
		got := a.want(t, 200, "GET", gears(version), "", "")
		if n := strings.Count(got, `"apiVersion":"demo.example.com/`+version+`"`); n != 3 {
			t.Errorf("got %s, want a list and two objects of %s", got, version)
		}
		got = a.want(t, 200, "GET", gears(version)+"?watch=1&timeoutSeconds=1", "", "")
		if n := strings.Count(got, `"apiVersion":"demo.example.com/`+version+`"`); n != 2 {
			t.Errorf("got %s, want two events with objects of %s", got, version)
		}
	}
	wantText(t, a.want(t, 200, "GET", gears("v1")+"?fieldSelector=spec.teeth%3D10", "", ""), `"name":"b"`)
	a.want(t, 400, "GET", gears("v1beta1")+"?fieldSelector=spec.teeth%3D10", "", "")
	wantText(t, a.want(t, 200, "GET", gears("v1beta1")+"?fields=spec.teeth", "", ""), `"spec":{"teeth":7}`)
	wantText(t, a.want(t, 200, "PATCH", gears("v1beta1")+"/a", mergePatch, `{"spec":{"teeth":8}}`), `"generation":2`)
	wantText(t, a.want(t, 200, "GET", gears("v1")+"/a", "", ""), `"teeth":8`)
	a.want(t, 200, "DELETE", gears("v1beta1")+"/a", "", "")
	a.want(t, 404, "GET", gears("v1")+"/a", "", "")
}

func TestViewsRenewTheTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := crd.Parse([]byte(twoVersions))
		if err != nil {
			t.Fatal(err)
		}
		spec := d[0].CollectionSpec()
		spec.TTL = func([]byte) time.Duration { return time.Minute }
		stored, err := memory.Open(memory.Options{}).Collection(spec)
		if err != nil {
			t.Fatal(err)
		}
		a := &api{}
		if err := d[0].AddTo(&a.handler, stored); err != nil {
			t.Fatal(err)
		}
		a.want(t, 201, "POST", gears("v1beta1"), "application/json", gear("v1beta1", "a", "7"))
		time.Sleep(40 * time.Second)
		a.want(t, 200, "PATCH", gears("v1beta1")+"/a", mergePatch, `{}`)
		time.Sleep(40 * time.Second)
		a.want(t, 200, "GET", gears("v1")+"/a", "", "")
		time.Sleep(40 * time.Second)
		a.want(t, 404, "GET", gears("v1beta1")+"/a", "", "")
	})
}

func TestUnionsShowOnlyTheStorageVersion(t *testing.T) {
	a := newAPI(t, twoVersions)
	a.want(t, 200, "GET", "/watch?watch=1&timeoutSeconds=1&of="+gears("v1"), "", "")
	wantText(t, a.want(t, 400, "GET", "/watch?watch=1&timeoutSeconds=1&of="+gears("v1beta1"), "", ""),
		"a union needs collections of one database")
}

func TestManagersApplyTheirVersions(t *testing.T) {
	a := newAPI(t, twoVersions)
	apply := func(code int, version, manager, teeth string) string {
		path := gears(version) + "/a?fieldManager=" + manager
		return a.want(t, code, "PATCH", path, applyPatch, gear(version, "a", teeth))
	}
	apply(201, "v1beta1", "old", "7")
	wantText(t, apply(409, "v1", "new", "8"), ".spec.teeth")
	wantText(t, apply(200, "v1", "new", "7"), `"manager":"old"`, `"manager":"new"`,
		`"apiVersion":"demo.example.com/v1beta1"`)
}

// TestWebhooksConvertNothing reads a definition whose versions a webhook converts.
func TestWebhooksConvertNothing(t *testing.T) {
	text := strings.Replace(twoVersions, "  versions:", "  conversion: {strategy: Webhook, "+
		"webhook: {conversionReviewVersions: [v1], clientConfig: {url: 'https://example.com/'}}}\n  versions:", 1)
	a := newAPI(t, text)
	a.want(t, 200, "GET", gears("v1"), "", "")
	a.want(t, 404, "GET", gears("v1beta1"), "", "")
	all, err := crd.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, strings.Join(all[0].Ignored, "\n"), "version v1beta1 is not served, only version v1",
		"spec.conversion: the webhook is never called")
}
