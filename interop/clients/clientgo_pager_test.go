package clients

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/interop/internal/testapi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
)

const (
	objectCount = 2500
	pageSize    = 500
)

// A pageReader lists configmaps page by page and calls afterPage after each.
type pageReader struct {
	afterPage func(page int)
	pages     int
	versions  []string // the versions of the pages
}

func (r *pageReader) pager(t *testing.T, s *testapi.Server) *pager.ListPager {
	maps := newClientset(t, s.Config(testapi.HTTP1)).CoreV1().ConfigMaps("one")
	p := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		list, err := maps.List(ctx, o)
		if err == nil {
			r.pages++
			r.versions = append(r.versions, list.ResourceVersion)
			r.afterPage(r.pages)
		}
		return list, err
	})
	p.PageSize = pageSize
	return p
}

// changeRemainingPages updates, deletes and creates objects that belong to the remaining
// pages.
func changeRemainingPages(t *testing.T, s *testapi.Server, page int) {
	t.Helper()
	updateConfigMap(t, s, objectCount-page)
	c := s.Collection("configmaps")
	if _, err := c.Delete(t.Context(), configMapKey(objectCount-100-page), listwatch.Preconditions{}); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"zz", "a"} {
		if _, err := c.CreateIn(t.Context(), "one",
			fmt.Appendf(nil, `{"metadata":{"name":"%s%d"}}`, name, page)); err != nil {
			t.Error(err)
		}
	}
}

func TestPagersReadOneSnapshot(t *testing.T) {
	for name, read := range map[string]func(*pager.ListPager, func(runtime.Object) error) error{
		"List": func(p *pager.ListPager, each func(runtime.Object) error) error {
			list, paginated, err := p.List(t.Context(), metav1.ListOptions{})
			if err != nil || !paginated {
				return fmt.Errorf("paginated: %t: %w", paginated, err)
			}
			return meta.EachListItem(list, each)
		},
		"EachListItem": func(p *pager.ListPager, each func(runtime.Object) error) error {
			return p.EachListItem(t.Context(), metav1.ListOptions{}, each)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := testapi.Start(t)
			createConfigMaps(t, s, objectCount)
			b := pageReader{afterPage: func(page int) { changeRemainingPages(t, s, page) }}
			var got []string
			err := read(b.pager(t, s), func(o runtime.Object) error {
				m := o.(*corev1.ConfigMap)
				if m.Labels["letter"] == "e" {
					return fmt.Errorf("%s has a value that was written after the first page", m.Name)
				}
				got = append(got, m.Name)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != objectCount || got[0] != configMapName(0) ||
				got[objectCount-1] != configMapName(objectCount-1) || !slices.IsSorted(got) {
				t.Errorf("got %d items from %s to %s, want all %d in order", len(got), got[0], got[len(got)-1],
					objectCount)
			}
			if versions := slices.Compact(b.versions); b.pages != objectCount/pageSize || len(versions) != 1 {
				t.Errorf("got %d pages of versions %s, want %d of the same version", b.pages, versions,
					objectCount/pageSize)
			}
		})
	}
}

// If the snapshot is lost between two pages, a pager lists everything again, unless
// FullListIfExpired is false.
func TestPagerHandlesAnExpiredToken(t *testing.T) {
	s := testapi.Start(t)
	createConfigMaps(t, s, objectCount)
	writes := 0
	b := pageReader{afterPage: func(page int) {
		if page == 2 {
			writes++
			changeRemainingPages(t, s, writes)
			s.DB.Compact()
		}
	}}
	list, _, err := b.pager(t, s).List(t.Context(), metav1.ListOptions{})
	if err != nil || meta.LenList(list) != objectCount+1 || b.pages != 3 {
		t.Errorf("got %d items after %d pages, error %v; want %d after two pages and a full list", meta.LenList(list),
			b.pages, err, objectCount+1)
	}

	b.pages = 0
	strict := b.pager(t, s)
	strict.FullListIfExpired = false
	_, _, err = strict.List(t.Context(), metav1.ListOptions{})
	// With the token in the error, the list continues after the second page, but in the newest
	// state.
	token := wantError(t, err, "ResourceExpired").Continue
	rest := testkit.Must(newClientset(t, s.Config(testapi.HTTP1)).CoreV1().ConfigMaps("one").List(t.Context(),
		metav1.ListOptions{Continue: token}))(t)
	if first, last := rest.Items[0].Name, rest.Items[len(rest.Items)-1].Name; first <= configMapName(2*pageSize-3) ||
		last != "zz2" {
		t.Errorf("the token returned the items from %s to %s, want those after the second page up to zz2", first, last)
	}
}
