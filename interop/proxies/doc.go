// Package proxies contains only tests. They examine our server with "listwatch doctor" through
// nginx, HAProxy and Caddy, well configured and with one fault at a time, and read compressed
// watches with many clients.
package proxies
