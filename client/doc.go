// Package client turns a URL into a Source: it lists and watches a collection that watchserver,
// or any other server that speaks Kubernetes' list-watch, serves over HTTP/1.1, HTTP/2 or
// WebSocket.
//
// Start with [Remote]. Only its URL must be set:
//
//	flags := &client.Remote{URL: "https://flags.example.com/flags"}
//	w, err := flags.Watch(ctx, listwatch.Query{Bookmarks: true})
//
// # Recovery
//
// When a connection ends, the Watcher reconnects after a delay with jitter, over any transport
// that works, and resumes at the last complete version. The reader sees one history without
// gaps or repetitions. It gets an error only if it must act:
//
//   - [listwatch.Expired]: list again, or watch again with initial events. The reasons: the
//     server no longer has the history, or its state was replaced (its epoch changed, or
//     its versions decreased), or the connection ended within the initial events after the
//     reader had received some of them.
//   - [listwatch.Unauthorized], [listwatch.Forbidden], [listwatch.Invalid], [listwatch.NotFound]:
//     the server no longer serves the watch. After a 401 the Watcher first retries with fresh
//     credentials. It retries once, or any number of times if the server served the watch for at
//     least a second before each 401.
//   - [listwatch.Unsupported]: the server sent an unknown event type, or a resourceVersion
//     that is not a decimal number. The Watcher never skips an event.
//   - [listwatch.Corrupt]: the server violated the protocol twice at the same version.
//
// # Writing
//
// A Remote is also a [listwatch.Store]: it reads and writes single objects. Package typed does so
// with Go values. The server checks the writes:
//
//	flags := typed.Collection[Flag]{Store: remote}
//	_, err := flags.Update(ctx, key, func(f *Flag) error { f.Enabled = true; return nil })
//
// # Source files
//
// connect.go opens single connections: response.go reads one response, fallback.go chooses the
// transport, idle.go detects a silent server, and policy.go decides which failures a new
// connection can repair. remote.go follows the connections with the loop of internal/reflector.
// The goroutine of the loop fills the queue in watcher.go and ends after Close of the Watcher.
//
// exchange.go performs requests that are not watches, and chooses the clients of net/http: list.go
// and listbody.go read lists, and objects.go reads and writes single objects. query.go writes URLs.
package client
