//go:build unix

package logical

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/store/postgres"
)

// BenchmarkDocuments measures how many objects of 1 KiB concurrent writers create per second, as
// documents, and by SQL without rules and events.
func BenchmarkDocuments(b *testing.B) {
	d := newDatabase(b)
	_, flags := d.flags(postgres.Options{})
	pool := testkit.Must(pgxpool.New(b.Context(), d.url))(b)
	b.Cleanup(pool.Close)
	var last atomic.Int64
	document := func() (name string, data []byte) {
		name = fmt.Sprint("f-", last.Add(1))
		return name, flagNamed(name, fmt.Sprintf(`"x":%q`, strings.Repeat("x", 900)))
	}
	create := map[string]func(context.Context) error{
		"documents": func(ctx context.Context) error {
			_, data := document()
			_, err := flags.Create(ctx, data)
			return err
		},
		"sql": func(ctx context.Context) error {
			name, data := document()
			_, err := pool.Exec(ctx, "INSERT INTO listwatch_objects VALUES ('raw', 'a', $1, $2)", name, string(data))
			return err
		},
	}
	for _, by := range []string{"sql", "documents"} {
		for _, writers := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("by=%s/writers=%d", by, writers), func(b *testing.B) {
				var left atomic.Int64
				left.Store(int64(b.N))
				var running sync.WaitGroup
				for range writers {
					running.Go(func() {
						for left.Add(-1) >= 0 {
							if err := create[by](b.Context()); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				running.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "creates/s")
			})
		}
	}
}
