// Package postgres tests examples/postgres with a real PostgreSQL, which the tests start.
package postgres
