package clientgo

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/listwatch/listwatch/interop/internal/kubetest"
	"github.com/listwatch/listwatch/store"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
)

const (
	paged    = 2500
	pageSize = 500
)

// A book is read page by page; after each page, turned is called.
type book struct {
	turned   func(page int)
	pages    int
	versions []string // of the pages
}

func (b *book) pager(t *testing.T, s *kubetest.Server) *pager.ListPager {
	maps := typed(t, s.Config(kubetest.HTTP1)).CoreV1().ConfigMaps("one")
	p := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		list, err := maps.List(ctx, o)
		if err == nil {
			b.pages++
			b.versions = append(b.versions, list.ResourceVersion)
			b.turned(b.pages)
		}
		return list, err
	})
	p.PageSize = pageSize
	return p
}

// change updates, deletes and creates what the pages to come would show.
func change(t *testing.T, s *kubetest.Server, page int) {
	t.Helper()
	update(t, s, paged-page)
	c := s.Collection("configmaps")
	if _, err := c.Delete(t.Context(), keyOf(paged-100-page), store.Preconditions{}); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"zz", "a"} {
		if _, err := c.CreateIn(t.Context(), "one", fmt.Appendf(nil, `{"metadata":{"name":"%s%d"}}`, name, page)); err != nil {
			t.Error(err)
		}
	}
}

func TestPagersReadOneSnapshot(t *testing.T) {
	for name, read := range map[string]func(*pager.ListPager, func(runtime.Object) error) error{
		"List": func(p *pager.ListPager, each func(runtime.Object) error) error {
			list, paginated, err := p.List(t.Context(), metav1.ListOptions{})
			if err != nil || !paginated {
				return fmt.Errorf("in pages: %t: %w", paginated, err)
			}
			return meta.EachListItem(list, each)
		},
		"EachListItem": func(p *pager.ListPager, each func(runtime.Object) error) error {
			return p.EachListItem(t.Context(), metav1.ListOptions{}, each)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := kubetest.Start(t)
			fill(t, s, paged)
			b := book{turned: func(page int) { change(t, s, page) }}
			var got []string
			err := read(b.pager(t, s), func(o runtime.Object) error {
				m := o.(*corev1.ConfigMap)
				if m.Labels["letter"] == "e" {
					return fmt.Errorf("%s is as it was written after the first page", m.Name)
				}
				got = append(got, m.Name)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != paged || got[0] != nameOf(0) || got[paged-1] != nameOf(paged-1) || !slices.IsSorted(got) {
				t.Errorf("%d items from %s to %s, want all %d in order", len(got), got[0], got[len(got)-1], paged)
			}
			if versions := slices.Compact(b.versions); b.pages != paged/pageSize || len(versions) != 1 {
				t.Errorf("%d pages of versions %s, want %d of one", b.pages, versions, paged/pageSize)
			}
		})
	}
}

// Where the snapshot is lost between two pages, a pager lists everything again, unless it may not.
func TestAPagerWhoseTokenExpires(t *testing.T) {
	s := kubetest.Start(t)
	fill(t, s, paged)
	writes := 0
	b := book{turned: func(page int) {
		if page == 2 {
			writes++
			change(t, s, writes)
			s.DB.Compact()
		}
	}}
	list, _, err := b.pager(t, s).List(t.Context(), metav1.ListOptions{})
	if err != nil || meta.LenList(list) != paged+1 || b.pages != 3 {
		t.Errorf("%d items by %d pages, %v; want %d by two pages and a list of all", meta.LenList(list), b.pages, err, paged+1)
	}

	b.pages = 0
	strict := b.pager(t, s)
	strict.FullListIfExpired = false
	_, _, err = strict.List(t.Context(), metav1.ListOptions{})
	// The rest can be had, as it is now: what came after the second page, with what has been written since.
	token := wantKind(t, err, "ResourceExpired").Continue
	rest := must(typed(t, s.Config(kubetest.HTTP1)).CoreV1().ConfigMaps("one").List(t.Context(), metav1.ListOptions{Continue: token}))(t)
	if first, last := rest.Items[0].Name, rest.Items[len(rest.Items)-1].Name; first <= nameOf(2*pageSize-3) || last != "zz2" {
		t.Errorf("the rest is from %s to %s, want what came after the second page", first, last)
	}
}
