// Package http2 contains only tests. They let real HTTP/2 clients call real handlers on our server
// and on net/http's, and compare what the clients see.
package http2
