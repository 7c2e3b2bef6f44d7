package workqueue

import "testing"

// One operation is an Add, a Get and a Done.
func BenchmarkQueue(b *testing.B) {
	var q Queue[int]
	ctx := b.Context()
	b.ReportAllocs()
	for n := range b.N {
		q.Add(n % 1000)
		key, err := q.Get(ctx)
		if err != nil {
			b.Fatal(err)
		}
		q.Done(key)
	}
}
