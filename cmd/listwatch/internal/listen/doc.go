// Package listen provides the listeners of the commands serve and relay: addresses, TLS,
// authentication, debugging and shutdown.
package listen
