// Package proxies contains only tests. They examine our server with "listwatch doctor" through
// nginx, HAProxy and Caddy, well configured and with one fault at a time.
package proxies
