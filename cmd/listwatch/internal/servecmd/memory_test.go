package servecmd

import (
	"testing"

	"github.com/listwatch/listwatch/watchserver"
)

func TestHistoryIsNotDroppedInVain(t *testing.T) {
	limit := watchserver.Usage{StoredBytes: 800}
	tests := []struct {
		name          string
		objects, hist int64
		left          int64 // of the history after the last drop
		want          bool
	}{
		{"room", 300, 499, 0, false},
		{"full of history", 300, 500, 0, true},
		{"full of objects", 750, 50, 0, false},
		{"full of what a drop leaves", 300, 500, 450, false},
		{"more history since the last drop", 300, 600, 450, true},
	}
	for _, tt := range tests {
		used := watchserver.Usage{StoredBytes: tt.objects + tt.hist, HistoryBytes: tt.hist}
		d := droppedHistory{left: tt.left}
		if got := d.isWorthwhile(used, limit); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
	d := droppedHistory{left: 500}
	d.isWorthwhile(watchserver.Usage{StoredBytes: 400, HistoryBytes: 100}, limit)
	if !d.isWorthwhile(watchserver.Usage{StoredBytes: 900, HistoryBytes: 600}, limit) {
		t.Error("the history is not dropped again, although what was left has gone")
	}
	if d.isWorthwhile(watchserver.Usage{StoredBytes: 900, HistoryBytes: 600}, watchserver.Usage{}) {
		t.Error("the history is dropped without a limit")
	}
}
