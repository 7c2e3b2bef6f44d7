// Package servertest starts a watchserver over a Source for a test, and gives the test clients
// of it.
//
//	s := servertest.Start(t, source, servertest.Options{})
//	remote := &client.Remote{URL: s.URL("/things"), Network: s.Network}
//	request := &transport.Request{URL: s.WatchURL("/things", "resourceVersion=5")}
//	receiver, err := s.Client("h2").Dial(ctx, request)
//
// The server speaks HTTP/1.1, HTTP/2 and WebSocket on one address: in memory, where it also
// works in a synctest bubble and the test can reset and stall the connections
// ([testhttp.Server.Conns]), or on a port of 127.0.0.1; in clear text or over TLS. At the end
// of the test the watches are drained and the server is closed.
//
// The package is for tests of any package that watchserver does not import. It does not import
// package client, so that the tests inside package client can use it.
package servertest
