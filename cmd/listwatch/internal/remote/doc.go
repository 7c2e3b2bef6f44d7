// Package remote connects the commands to a server: flags for the connection, resources and
// their URLs, and advice for connection errors.
package remote
