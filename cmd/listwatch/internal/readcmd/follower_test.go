package readcmd

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/listwatchtest"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

// wholeStates is a Source that never sends a difference.
type wholeStates struct{ listwatch.Source }

func (w wholeStates) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	q.Since = listwatch.State{}
	return w.Source.Watch(ctx, q)
}

// expire runs a follower of a collection whose history expires while it is disconnected. It returns
// the printed types and names, and the error of the follower.
func expire(t *testing.T, wrap func(listwatch.Source) listwatch.Source) (printed string, err error) {
	things, openErr := memory.Open(memory.Options{}).Collection(store.CollectionSpec{Kind: "Thing"})
	if openErr != nil {
		t.Fatal(openErr)
	}
	write := func(name string, n string) {
		t.Helper()
		data := []byte(`{"metadata":{"name":"` + name + `"},"n":` + n + `}`)
		_, err := things.Replace(t.Context(), listwatch.Key{Name: name}, data)
		if errors.Is(err, listwatch.NotFound) {
			_, err = things.Create(t.Context(), data)
		}
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
	}
	write("a", "1")
	write("b", "1")
	source := listwatchtest.New(wrap(things))
	var out strings.Builder
	f := &follower{source: source, out: bufio.NewWriter(&out), left: -1}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- f.run(ctx, io.Discard) }()
	synctest.Wait()
	write("b", "2")
	source.Delay(time.Minute) // the follower misses what follows
	write("b", "3")
	write("c", "1")
	if _, err := things.Delete(t.Context(), listwatch.Key{Name: "a"}, listwatch.Preconditions{}); err != nil {
		t.Fatal(err)
	}
	if err := source.Expire(); err != nil {
		t.Fatal(err)
	}
	source.Delay(0)
	time.Sleep(time.Hour)
	synctest.Wait()
	select {
	case err = <-ended:
	default:
		write("d", "1")
		cancel()
		<-ended
	}
	for line := range strings.Lines(out.String()) {
		printed += strings.Join(strings.Fields(line)[:2], " ") + "; "
	}
	return printed, err
}

func TestWatchContinuesWithTheDifference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got, err := expire(t, func(s listwatch.Source) listwatch.Source { return s })
		const want = "ADDED a; ADDED b; MODIFIED b; ADDED b; ADDED c; DELETED a; ADDED d; "
		if got != want || err != nil {
			t.Errorf("printed %q, %v, want %q", got, err, want)
		}
	})
}

// The command keeps no objects, so it cannot tell which objects a whole state lacks.
func TestWatchEndsWithoutTheDifference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got, err := expire(t, func(s listwatch.Source) listwatch.Source { return wholeStates{s} })
		const want = "ADDED a; ADDED b; MODIFIED b; "
		if got != want || !errors.Is(err, listwatch.Expired) {
			t.Errorf("printed %q, %v, want %q and Expired", got, err, want)
		}
	})
}
