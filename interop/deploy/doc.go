// Package deploy contains only tests. They run the commands of docs/operations.md, restart the
// servers of that page under load, and check the files of the folder deploy: the units with
// systemd-analyze, the manifests with the types of client-go, and the compose file with the
// programs that it configures. Package observe/metrics checks the dashboard and the alerts.
package deploy
