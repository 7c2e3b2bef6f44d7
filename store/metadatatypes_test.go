package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/store"
)

func TestWrongMetadataTypeIsNamedInTheError(t *testing.T) {
	pods, backend := newPods()
	long := strings.Repeat("x", 60)
	for meta, want := range map[string]string{
		`"ownerReferences":"x"`:                        `metadata.ownerReferences: want a list, got "x"`,
		`"ownerReferences":[7]`:                        `metadata.ownerReferences[0]: want an object, got 7`,
		`"ownerReferences":[null,{"uid":{}}]`:          `metadata.ownerReferences[1].uid: want a string, got an object`,
		`"ownerReferences":[{"controller":"yes"}]`:     `metadata.ownerReferences[0].controller: want true or false, got "yes"`,
		`"ownerReferences":[{"blockOwnerDeletion":0}]`: `metadata.ownerReferences[0].blockOwnerDeletion: want true or false, got 0`,
		`"managedFields":{}`:                           `metadata.managedFields: want a list, got an object`,
		`"managedFields":[{"time":"soon"}]`:            `metadata.managedFields[0].time: want a time such as "2006-01-02T15:04:05Z", got "soon"`,
		`"managedFields":[{"manager":true}]`:           `metadata.managedFields[0].manager: want a string, got true`,
		`"generateName":7`:                             `metadata.generateName: want a string, got 7`,
		`"labels":[]`:                                  `metadata.labels: want an object of strings, got a list`,
		`"labels":{"a.b/c":7}`:                         `metadata.labels["a.b/c"]: want a string, got 7`,
		`"annotations":{"a":["` + long + `"]}`:         `metadata.annotations["a"]: want a string, got a list`,
		`"finalizers":"x"`:                             `metadata.finalizers: want a list, got "x"`,
		`"finalizers":["x",7]`:                         `metadata.finalizers[1]: want a string, got 7`,
		`"generation":"1"`:                             `metadata.generation: want a 64-bit integer, got "1"`,
		`"generation":1.0`:                             `metadata.generation: want a 64-bit integer, got 1.0`,
		`"deletionGracePeriodSeconds":1e99`:            `metadata.deletionGracePeriodSeconds: want a 64-bit integer, got 1e99`,
		`"creationTimestamp":""`:                       `metadata.creationTimestamp: want a time such as "2006-01-02T15:04:05Z", got ""`,
		`"deletionTimestamp":12`:                       `metadata.deletionTimestamp: want a time such as "2006-01-02T15:04:05Z", got 12`,
		`"deletionTimestamp":"` + long +
			`"`: `metadata.deletionTimestamp: want a time such as "2006-01-02T15:04:05Z", got "` + long[:39] + `…`,
		`"selfLink":{}`: `metadata.selfLink: want a string, got an object`,
		`"uid":[]`:      `metadata.uid: want a string, got a list`,
	} {
		_, err := pods.Create(t.Context(), []byte(`{"metadata":{"name":"a","namespace":"n",`+meta+`}}`))
		if e := testkit.WantStatus(t, meta, err, 400); e.Message != want {
			t.Errorf("%s: got %q, want %q", meta, e.Message, want)
		}
	}
	if backend.commits != 0 {
		t.Errorf("%d commits, want none", backend.commits)
	}
}

func TestValidMetadataIsKept(t *testing.T) {
	pods, _ := newPods()
	const meta = `"finalizers":["x.io/y"],"generateName":null,"mine":{"labels":7},` +
		`"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"1","controller":true,"blockOwnerDeletion":null,"more":1}],` +
		`"managedFields":[null,{"manager":"m","operation":"Update","apiVersion":"v1","time":"2026-01-02T15:04:05.5+01:00","fieldsType":"FieldsV1","fieldsV1":[7],"subresource":""}]`
	o := mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n",`+meta+`}}`)
	if !strings.Contains(string(o.Data), meta) {
		t.Errorf("got %s, want it to contain %s", o.Data, meta)
	}
}

func TestUpdateChecksMetadataTypes(t *testing.T) {
	pods, backend := newPods()
	mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n"}}`)
	before := backend.commits
	for _, meta := range []string{`"generation":"x"`, `"managedFields":7`, `"labels":{"a":1}`} {
		data := `{"metadata":{"name":"a","namespace":"n",` + meta + `}}`
		if _, err := pods.Replace(t.Context(), keyA, []byte(data)); listwatch.AsError(err).HTTPStatus() != 400 {
			t.Errorf("replace with %s: got %v, want 400", meta, err)
		}
		if _, err := pods.Update(context.Background(), keyA, listwatch.Preconditions{},
			replaceWith(data)); listwatch.AsError(err).HTTPStatus() != 400 {
			t.Errorf("update with %s: got %v, want 400", meta, err)
		}
	}
	if backend.commits != before {
		t.Errorf("%d commits, want %d", backend.commits, before)
	}
}

func TestCheckTypes(t *testing.T) {
	spec := store.CollectionSpec{Kind: "Pod"}
	for object, want := range map[string]string{
		`{}`:                                 "",
		`{"kind":"Pod","metadata":null}`:     "",
		`{"metadata":{"name":"not a name"}}`: "",
		`{"kind":"Node"}`:                    "kind",
		`{"apiVersion":7}`:                   "apiVersion",
		`{"metadata":7}`:                     "metadata: want an object, got 7",
		`{"metadata":{"uid":7}}`:             "metadata.uid: want a string, got 7",
	} {
		d, err := store.ParseDocument([]byte(object))
		if err != nil {
			t.Fatal(err)
		}
		err = spec.CheckTypes(d)
		if want == "" && err != nil ||
			want != "" && (!errors.Is(err, listwatch.Invalid) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", object, err, want)
		}
	}
}

func TestEachBrokenMetadataRuleIsACause(t *testing.T) {
	pods, _ := newPods()
	annotations := func(size int) string { return `"annotations":{"a":"` + strings.Repeat("x", size-1) + `"}` }
	for meta, want := range map[string]string{
		annotations(256<<10 + 1):         "FieldValueTooLong metadata.annotations",
		annotations(256 << 10):           "",
		`"annotations":{"A.b/C_d":"!"}`:  "",
		`"annotations":{"a b":""}`:       "FieldValueInvalid metadata.annotations",
		`"finalizers":["X.io/y","kube"]`: "",
		`"finalizers":["", "x y"]`: "FieldValueInvalid metadata.finalizers, " +
			"FieldValueInvalid metadata.finalizers",
		`"ownerReferences":[{"apiVersion":"v1","kind":"Pod"}]`: "FieldValueRequired metadata.ownerReferences[0].name" +
			", FieldValueRequired metadata.ownerReferences[0].uid",
		`"ownerReferences":[` + owner + "," + owner + `]`: "FieldValueInvalid metadata.ownerReferences",
	} {
		_, err := pods.Create(t.Context(), []byte(`{"metadata":{"generateName":"a","namespace":"n",`+meta+`}}`))
		var got []string
		if e := listwatch.AsError(err); e != nil && e.HTTPStatus() == 422 {
			for _, c := range e.Details.Causes {
				got = append(got, c.Reason+" "+c.Field)
			}
		}
		if strings.Join(got, ", ") != want || (err == nil) != (want == "") {
			t.Errorf("%.60s: got %v, want causes %q", meta, err, want)
		}
	}
}

const owner = `{"apiVersion":"v1","kind":"Pod","name":"p","uid":"1","controller":true}`

func FuzzCheckTypes(f *testing.F) {
	f.Add([]byte(`{"metadata":{"labels":{"a":1},"managedFields":[{"time":"x"}],"generation":1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := store.ParseDocument(data)
		if err != nil || (store.CollectionSpec{}).CheckTypes(d) != nil {
			return
		}
		var typed struct{ Metadata listwatch.Metadata }
		if json.Unmarshal(d.JSON(), &typed) != nil &&
			!strings.ContainsAny(string(d.JSON()), `\ABCDEFGHIJKLMNOPQRSTUVWXYZ`) {
			t.Errorf("%s is accepted but cannot be decoded", d.JSON())
		}
	})
}
