// Package h2spec has tests alone: the cases of h2spec (github.com/summerwind/h2spec) for HTTP/2 and HPACK, run against our server as
// net/http serves it, over TLS and in clear text with prior knowledge. What is known to fail is in known.txt, with its reason.
package h2spec
