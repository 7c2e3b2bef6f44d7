// Package servertest starts a watchserver over a Source for a test, and provides clients
// for it.
//
//	s := servertest.Start(t, source, servertest.Options{})
//	remote := &client.Remote{URL: s.URL("/things"), Network: s.Network}
//	request := &transport.Request{URL: s.WatchURL("/things", "resourceVersion=5")}
//	receiver, err := s.Client("h2").Dial(ctx, request)
//
// The server speaks HTTP/1.1, HTTP/2 and WebSocket on one address, in clear text or over
// TLS. The address is in memory or a port of 127.0.0.1. In memory, the server also works in
// a synctest bubble, and the test can reset and stall the connections
// ([testhttp.Server.Conns]). At the end of the test the watches are drained and the server
// is closed.
//
// Tests of any package that watchserver does not import can use this package. It does not
// import package client, so that tests inside package client can use it too.
package servertest
