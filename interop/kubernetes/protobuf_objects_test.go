package kubernetes

import (
	"fmt"
	"math"
	"math/rand"
	"reflect"
	"regexp"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"
)

// stableVersion matches the API versions that the server reads in Protocol Buffers. Other versions
// change often, and their clients can send JSON.
var stableVersion = regexp.MustCompile(`^v[0-9]+$`)

// stableKinds returns the Go types of the kinds that can be listed, and of the kinds that clients
// send only in requests: Scale, DeleteOptions, and the reviews of a client's own rights.
func stableKinds() map[schema.GroupVersionKind]reflect.Type {
	all := map[schema.GroupVersionKind]reflect.Type{
		autoscalingv1.SchemeGroupVersion.WithKind("Scale"): reflect.TypeFor[autoscalingv1.Scale](),
		{Version: "v1", Kind: "DeleteOptions"}:             reflect.TypeFor[metav1.DeleteOptions](),
		authorizationv1.SchemeGroupVersion.WithKind(
			"SelfSubjectAccessReview"): reflect.TypeFor[authorizationv1.SelfSubjectAccessReview](),
		authorizationv1.SchemeGroupVersion.WithKind(
			"SelfSubjectRulesReview"): reflect.TypeFor[authorizationv1.SelfSubjectRulesReview](),
	}
	known := scheme.Scheme.AllKnownTypes()
	for gvk, t := range known {
		if _, listed := known[gvk.GroupVersion().WithKind(gvk.Kind+"List")]; listed &&
			stableVersion.MatchString(gvk.Version) {
			all[gvk] = t
		}
	}
	return all
}

// newFiller returns a filler with random and unusual values. It uses nil instead of empty
// lists and maps, because Protocol Buffers do not distinguish them.
func newFiller(seed int64) *randfill.Filler {
	random := rand.New(rand.NewSource(seed))
	one := func(from ...string) string { return from[random.Intn(len(from))] }
	number := func() int64 {
		return []int64{
			0, 1, -1, random.Int63(), -random.Int63(), math.MaxInt64, math.MinInt64, math.MaxInt32,
			math.MinInt32,
		}[random.Intn(9)]
	}
	text := func() string {
		return one("", "", "a", "v1", "true", "0", `"`, `\`, "<&>", "\x00\n\r\t\x1f\x7f", "é\u2028\U0001F600\uFFFD",
			fmt.Sprint(random.Int()))
	}
	moment := func() time.Time {
		// A random time between the years 1 and 9999.
		return time.Unix(random.Int63n(315537897600)-62135596800, random.Int63n(1e9)).UTC()
	}
	return randfill.New().RandSource(rand.NewSource(seed)).NilChance(.6).NumElements(1, 3).MaxDepth(30).Funcs(
		func(s *string, _ randfill.Continue) { *s = text() },
		func(n *int64, _ randfill.Continue) { *n = number() },
		func(n *int32, _ randfill.Continue) { *n = int32(number()) },
		func(b *[]byte, _ randfill.Continue) {
			if s := text(); s != "" {
				*b = []byte(s)
			}
		},
		func(m *map[string][]byte, _ randfill.Continue) {
			for range random.Intn(3) {
				*m = map[string][]byte{text(): []byte(text()), text(): {}}
			}
		},
		func(t *metav1.Time, _ randfill.Continue) {
			if random.Intn(3) > 0 {
				t.Time = moment()
			}
		},
		func(t *metav1.MicroTime, _ randfill.Continue) {
			if random.Intn(3) > 0 {
				t.Time = moment()
			}
		},
		func(q *resource.Quantity, _ randfill.Continue) {
			*q = resource.MustParse(one("0", "1", "-1", "100m", "1.5Gi", "1024Ki", "1e3", "12345678901234567890",
				"0.000000001", "3E"))
		},
		func(v *intstr.IntOrString, _ randfill.Continue) {
			*v = intstr.FromString(text())
			if random.Intn(2) == 0 {
				*v = intstr.FromInt32(int32(number()))
			}
		},
		func(r *runtime.RawExtension, _ randfill.Continue) {
			if s := one("", "null", ` { "a" : [ 1.0 , "<" ] } `, `"text"`, "{}"); s != "" {
				r.Raw = []byte(s)
			}
		},
		func(f *metav1.FieldsV1, _ randfill.Continue) {
			if s := one("", `{"f:metadata":{"f:labels":{}}}`, "{}"); s != "" {
				f.SetRawBytes([]byte(s))
			}
		},
		func(v *authenticationv1.ExtraValue, _ randfill.Continue) { *v = authenticationv1.ExtraValue{text()} },
		func(v *authorizationv1.ExtraValue, _ randfill.Continue) {
			*v = authorizationv1.ExtraValue{text(), text()}
		},
		func(v *certificatesv1.ExtraValue, _ randfill.Continue) { *v = certificatesv1.ExtraValue{text()} },
		func(*metav1.TypeMeta, randfill.Continue) {}, // the encoder sets it
	)
}
