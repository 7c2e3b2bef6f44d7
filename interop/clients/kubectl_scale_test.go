package clients

import "testing"

func TestKubectlScalesAndRollsOut(t *testing.T) {
	t.Parallel()
	_, u := startForKubectl(t)
	u.run("create", "-f", u.file(objectManifest))
	wantReplicas := func(n string) {
		t.Helper()
		u.wantOutput(n, "get", "deploy", "web", "-o", "jsonpath={.spec.replicas}")
	}
	u.wantOutput("deployment.apps/web scaled\n", "scale", "deploy/web", "--replicas=5")
	wantReplicas("5")
	u.wantOutput("deployment.apps/web scaled\n", "scale", "deploy", "web", "--replicas=4", "--current-replicas=5")
	wantReplicas("4")
	u.wantFailure("Expected replicas to be 5, was 4", "scale", "deploy", "web", "--replicas=3", "--current-replicas=5")
	u.wantFailure("Error from server (NotFound)", "scale", "widget/w1", "--replicas=3")
	wantReplicas("4")

	u.wantOutput("deployment.apps/web image updated\n", "set", "image", "deploy/web", "c=nginx:2")
	u.wantOutput("nginx:2 redis:1", "get", "deploy", "web", "-o", "jsonpath={.spec.template.spec.containers[*].image}")
	u.wantOutput("deployment.apps/web restarted\n", "rollout", "restart", "deploy/web")

	// The test acts as the deployment controller, because the server has none.
	status := u.start("rollout", "status", "deploy/web")
	status.waitForLines("Waiting for deployment spec update to be observed...")
	u.run("patch", "deploy", "web", "--subresource=status", "--type=merge", "-p",
		`{"status":{"observedGeneration":9,"replicas":4,"updatedReplicas":4,"readyReplicas":4,"availableReplicas":4}}`)
	status.waitForExit(
		"Waiting for deployment spec update to be observed...\ndeployment \"web\" successfully rolled out\n")
	u.wantTable([]string{"NAME READY UP-TO-DATE AVAILABLE AGE", "web 4/4 4 4 AGE"}, "get", "deploy", "web")
}
