// Package clients contains only tests. They run Kubernetes' own clients, unmodified,
// against our server:
//
//   - clientgo_*: client-go, its clientsets, informers, watchers and leader election;
//   - controllerruntime_*: the clients, caches and managers of controller-runtime;
//   - kubectl_*: kubectl, each command in a process of its own;
//   - node_*, python_*: the clients for JavaScript and Python, with their scripts in testdata;
//   - outage_*: informers of client-go while servers restart, connections break and history
//     is lost.
package clients
