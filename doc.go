// Package listwatch is the vocabulary of list and watch: a client lists a versioned collection
// once and then receives every change, in order and exactly once.
//
// Start with [Source]. A store is a Source. Package watchserver serves a Source at a URL, over
// HTTP/1.1, HTTP/2 and WebSocket, and package client makes the URL a Source again. All transports
// deliver the same history, byte for byte.
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
// The protocol is Kubernetes' list-watch, so kubectl, client-go, curl and browsers are clients too.
// docs/protocol.md specifies it rule by rule. This package imports only the standard library and
// two small internal packages.
package listwatch
