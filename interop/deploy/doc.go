// Package deploy contains only tests. They check the files of the folder deploy: the units with
// systemd-analyze, and the manifests with the types of client-go. Package observe/metrics checks
// the dashboard and the alerts.
package deploy
