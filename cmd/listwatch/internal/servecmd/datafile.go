package servecmd

import (
	"context"
	"log/slog"
	"time"

	"github.com/listwatch/listwatch/store/bolt"
)

// readinessInterval is the time between two checks of the data file.
const readinessInterval = 2 * time.Second

// logReadiness logs when the data file of db becomes unusable, for example because it was deleted,
// and when it is usable again. It returns when ctx ends.
func logReadiness(ctx context.Context, db *bolt.DB, log *slog.Logger) {
	states := failureLog{
		log: log.With("file", db.Path()), message: "the data file is unusable, and writes are refused",
		success: "the data file can be written again",
	}
	every(ctx, readinessInterval, func() { states.report(db.Ready(ctx)) })
}

// A failureLog logs the first of several equal failures, and the success after them. It must be
// used by one goroutine only.
type failureLog struct {
	log     *slog.Logger
	message string
	success string
	failure string // "" after a success
}

func (l *failureLog) report(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == l.failure {
		return
	}
	l.failure = text
	if err != nil {
		l.log.Error(l.message, "error", text)
		return
	}
	l.log.Info(l.success)
}
