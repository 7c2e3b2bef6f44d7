package kubectl

import "testing"

func TestDeploymentsAreScaledAndRolledOut(t *testing.T) {
	t.Parallel()
	_, u := start(t)
	u.run("create", "-f", u.file(manifest))
	wanted := func(n string) {
		t.Helper()
		u.prints(n, "get", "deploy", "web", "-o", "jsonpath={.spec.replicas}")
	}
	u.prints("deployment.apps/web scaled\n", "scale", "deploy/web", "--replicas=5")
	wanted("5")
	u.prints("deployment.apps/web scaled\n", "scale", "deploy", "web", "--replicas=4", "--current-replicas=5")
	wanted("4")
	u.refused("Expected replicas to be 5, was 4", "scale", "deploy", "web", "--replicas=3", "--current-replicas=5")
	u.refused("Error from server (NotFound)", "scale", "widget/w1", "--replicas=3")
	wanted("4")

	u.prints("deployment.apps/web image updated\n", "set", "image", "deploy/web", "c=nginx:2")
	u.prints("nginx:2 redis:1", "get", "deploy", "web", "-o", "jsonpath={.spec.template.spec.containers[*].image}")
	u.prints("deployment.apps/web restarted\n", "rollout", "restart", "deploy/web")

	// There is no controller: the test is one.
	status := u.follow("rollout", "status", "deploy/web")
	status.shows("Waiting for deployment spec update to be observed...")
	u.run("patch", "deploy", "web", "--subresource=status", "--type=merge", "-p",
		`{"status":{"observedGeneration":9,"replicas":4,"updatedReplicas":4,"readyReplicas":4,"availableReplicas":4}}`)
	status.ends("Waiting for deployment spec update to be observed...\ndeployment \"web\" successfully rolled out\n")
	u.rows([]string{"NAME READY UP-TO-DATE AVAILABLE AGE", "web 4/4 4 4 AGE"}, "get", "deploy", "web")
}
