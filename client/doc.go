// Package client turns a URL back into a Source: it lists and follows a collection that watchserver, or any server that speaks
// Kubernetes' list-watch, serves over HTTP/1.1, HTTP/2 or WebSocket.
//
// The type to start with is [Remote], whose zero value but for URL is ready:
//
//	flags := &client.Remote{URL: "https://flags.example.com/flags"}
//	w, err := flags.Watch(ctx, listwatch.Query{Bookmarks: true})
//
// # What a Watcher does by itself
//
// A stream that ends is followed by another one, from the last version that is complete, on whatever transport works, after a pause
// with jitter. Its reader sees one history without gaps or repeats. The reader gets an error only where it has to act:
//
//   - [listwatch.Expired]: list again, or watch again with initial events. The history is gone, or the server's state is another
//     one (its epoch changed, or its versions went back), or the stream was cut off within the initial events, of which the reader had
//     taken some: what it has is no state of the collection.
//   - [listwatch.Unauthorized], [listwatch.Forbidden], [listwatch.Invalid], [listwatch.NotFound]: the server doesn't serve this any
//     more. A 401 is tried once more with fresh credentials first.
//   - [listwatch.Unsupported]: the server says what this package can't know: an event type of the future, a resourceVersion that is
//     no decimal number. Nothing is skipped.
//   - [listwatch.Corrupt]: what the server sent is no protocol, twice from the same version.
//
// # Where to look
//
// query.go writes URLs, list.go and body.go read lists. watch.go opens streams and ladder.go chooses their transport. watcher.go is
// what the reader holds; follow.go is the goroutine behind it, and retry.go decides
// whether and when. Each watcher has that one goroutine, which ends after Close.
package client
