// Package listwatch is the vocabulary of list and watch: a versioned collection is listed once and then followed, every change, in
// order, exactly once.
//
// The type to start with is [Source]. A store is a Source; watchserver turns a Source into a URL, over HTTP/1.1, HTTP/2 and
// WebSocket; client turns the URL back into a Source. A transport is invisible: the same history, byte for byte, whatever carried it.
//
//	flags := memory.New[Flag]()                         // a Source, and a store to write to
//	http.Handle("/flags", &watchserver.Server{Source: flags})
//	go http.ListenAndServe("127.0.0.1:8080", nil)
//
//	source := &client.Remote{URL: "http://127.0.0.1:8080/flags"}
//	w, err := source.Watch(ctx, listwatch.Query{})      // the state now, then every change
//	for event, err := range listwatch.All(ctx, w) {
//		fmt.Println(event.Type, event.Object.Key, err)
//	}
//
// The protocol on the wire is that of Kubernetes, so kubectl, client-go, curl and browsers are clients too; docs/protocol.md says it
// rule by rule. This package imports nothing but the standard library and two leaves of its own.
package listwatch
