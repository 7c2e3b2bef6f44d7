//go:build unix

package logical

import (
	"fmt"
	"testing"
	"time"

	"github.com/listwatch/listwatch/store/postgres"
)

// BenchmarkTransactions measures rows per second from the commit of large and small transactions to
// the tables.
func BenchmarkTransactions(b *testing.B) {
	for _, rows := range []int{1, 100, 100_000} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			d := newDatabase(b, "CREATE TABLE a (id int PRIMARY KEY, x text, n int)",
				"INSERT INTO a SELECT i, repeat('x', 300), 0 FROM generate_series(1, 100000) i")
			db := d.open(postgres.Options{}, postgres.Table{Name: "a"})
			source := db.Source("a")
			b.ResetTimer()
			n := 0
			for b.Loop() {
				d.exec(fmt.Sprintf("UPDATE a SET n = n + 1 WHERE id BETWEEN %d AND %d", n%1000, n%1000+rows-1))
				n++
				if rows > 1 || n%100 == 0 {
					begun := time.Now()
					d.list(source)
					b.ReportMetric(float64(time.Since(begun).Milliseconds()), "ms-behind")
				}
			}
			b.ReportMetric(float64(n*rows)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
