// Package wsprotocol tests both ends of this module's WebSockets beyond the rules of package cases, in the
// manner of the Autobahn suite: fragments, control frames between them, UTF-8 at every split, close codes,
// lengths. Its mutants show that the cases can fail. What the libraries are known to do otherwise is in
// known_failures.txt, with the reason.
package wsprotocol
