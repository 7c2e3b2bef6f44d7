// Package python has no code but a test: Kubernetes' client for Python, unmodified, against our server.
package python
