// Package logical tests store/postgres with a PostgreSQL.
package logical
