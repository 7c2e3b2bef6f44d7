// Package wsprotocol tests the WebSocket server and client of this module in more detail than
// package cases does, in the manner of the Autobahn suite: fragments, control frames between them,
// UTF-8 split at every byte, close codes and lengths. Its mutants show that the cases can fail. The
// file known_failures.txt lists the known deviations of the WebSocket libraries, with the reasons.
package wsprotocol
