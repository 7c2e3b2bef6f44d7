// Package h2spec contains only tests. They run the cases of h2spec
// (github.com/summerwind/h2spec) for HTTP/2 and HPACK against our connection loop, over TLS
// and in clear text with prior knowledge. The file known_failures.txt lists the cases
// that fail, with the reasons.
package h2spec
