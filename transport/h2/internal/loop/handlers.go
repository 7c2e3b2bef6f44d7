package loop

import "slices"

// A handlerLimit limits the handlers of a connection that run at once. The limit includes handlers
// that still run after their streams were reset, so a client cannot start more handlers by
// resetting streams. The mutex of the connection guards it.
type handlerLimit struct {
	limit   int
	running int
	waiting []*exchange // the open streams that wait for a handler to return
}

// start starts the handler of x, or makes x wait if too many handlers are running.
func (l *handlerLimit) start(x *exchange) {
	if l.running >= l.limit {
		l.waiting = append(l.waiting, x)
		return
	}
	l.running++
	x.started = true
	go x.serve() // ends when the handler returns
}

// returned records that a handler has returned, and starts one that waited for it.
func (l *handlerLimit) returned() {
	l.running--
	if len(l.waiting) > 0 {
		next := l.waiting[0]
		l.waiting = slices.Delete(l.waiting, 0, 1)
		l.start(next)
	}
}

// remove removes x, which waits.
func (l *handlerLimit) remove(x *exchange) {
	l.waiting = slices.DeleteFunc(l.waiting, func(o *exchange) bool { return o == x })
}
