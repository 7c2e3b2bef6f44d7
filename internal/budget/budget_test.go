package budget

import "testing"

func TestTakeRefusesWhatExceedsALimit(t *testing.T) {
	limit := Amount{Requests: 4, Writes: 2, Bytes: 100}
	var b Budget
	for _, tt := range []struct {
		client string
		more   Amount
		want   string
	}{
		{"a", Amount{Requests: 2, Bytes: 50}, ""},
		{"a", Amount{Requests: 1}, "requests"}, // half of the limit
		{"a", Amount{Bytes: 1}, "memory"},
		{"a", Amount{Writes: 1}, ""},
		{"a", Amount{Writes: 1}, "writes"},
		{"b", Amount{Requests: 2, Writes: 1, Bytes: 50}, ""},
		{"c", Amount{Requests: 1}, "requests"},
		{"c", Amount{Writes: 1}, "writes"},
		{"c", Amount{Bytes: 1}, "memory"},
		{"c", Amount{}, ""},
	} {
		if got := b.Take(tt.client, tt.more, limit); got != tt.want {
			t.Errorf("%s takes %+v: got %q, want %q", tt.client, tt.more, got, tt.want)
		}
	}
	b.Return("a", Amount{Requests: 2, Writes: 1, Bytes: 50})
	b.Return("b", Amount{Requests: 2, Writes: 1, Bytes: 50})
	if b.used != (Amount{}) || len(b.clients) != 0 {
		t.Errorf("%+v and %d clients are left, want nothing", b.used, len(b.clients))
	}
	if got := b.Take("a", Amount{1000, 1000, 1000}, Amount{}); got != "" {
		t.Errorf("got %q, want no limit", got)
	}
}
