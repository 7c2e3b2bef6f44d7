//go:build !race

package kubernetes

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"pgregory.net/rapid"
)

const (
	cborType           = "application/cbor"
	cborSeqType        = "application/cbor-seq"
	applyCBORPatchType = "application/apply-patch+cbor"
	selfDescribed      = "\xd9\xd9\xf7" // the tag 55799, rfc8949#section-3.4.6
)

func TestCBORIsAnsweredAsInKubernetes(t *testing.T) {
	enable := func(enabled bool) {
		if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(
			map[string]bool{string(features.CBORServingAndStorage): enabled}); err != nil {
			t.Fatal(err)
		}
	}
	enable(true)
	defer enable(false)
	c := newComparison(startKubernetes(t), startOurs(t), exceptions)
	c.kubernetes.cbor, c.ours.cbor = true, true
	steps := rapid.SliceOfN(genRequest(), 1, 30)
	for i := range 60 {
		if _, err := c.run(t.Context(), steps.Example(i)); err != nil {
			t.Fatalf("sequence %d: %v", i, err)
		}
	}
	t.Logf("%d requests, %d events", c.requests, c.events)
	c.report(t)
}

// inCBOR returns a copy of r with its body in CBOR, if the body is a JSON object. The copy accepts
// a response in CBOR, unless r already has an Accept header.
func (r request) inCBOR() request {
	if r.accept == "" {
		r.accept = cborType
	}
	mediaType, ok := map[string]string{jsonType: cborType, applyPatchType: applyCBORPatchType}[r.contentType]
	var v map[string]any
	if !ok || utiljson.Unmarshal([]byte(r.body), &v) != nil || v == nil {
		return r
	}
	body, err := direct.Marshal(v)
	if err != nil {
		panic(err) // v is decoded JSON
	}
	r.body, r.contentType = selfDescribed+string(body), mediaType
	return r
}

// readJSON reads a body and converts it to JSON if it is CBOR.
func readJSON(res *http.Response) ([]byte, error) {
	body, err := io.ReadAll(res.Body)
	if err != nil || res.Header.Get("Content-Type") != cborType {
		return body, err
	}
	return cborToJSON(body)
}

func cborToJSON(data []byte) ([]byte, error) {
	var v any
	if err := direct.Unmarshal(data, &v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// eventReader returns a function that reads the next event of a watch, as JSON.
func eventReader(res *http.Response) func() (json.RawMessage, error) {
	if res.Header.Get("Content-Type") != cborSeqType {
		d := json.NewDecoder(res.Body)
		return func() (e json.RawMessage, err error) {
			err = d.Decode(&e)
			return e, err
		}
	}
	frames, buffer := cbor.NewFramer().NewFrameReader(res.Body), make([]byte, 1<<20)
	return func() (json.RawMessage, error) {
		n, err := frames.Read(buffer)
		if err != nil {
			return nil, err
		}
		return cborToJSON(buffer[:n])
	}
}
