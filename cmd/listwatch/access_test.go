package main

import (
	"strings"
	"testing"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
)

// policyLine returns one line of a policy file. spec holds the members of the policy's spec as
// JSON.
func policyLine(spec string) string {
	return `{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{` + spec + "}}\n"
}

const accessTokens = "ada-token,ada,1,admins\neve-token,eve,2\n"

func TestPolicyDeniesByDefault(t *testing.T) {
	s := startServer(t, "--token-file", writeFile(t, accessTokens), "--authorization-policy",
		writeFile(t, "# readers\n"+
			policyLine(`"group":"admins","resource":"*","namespace":"*","apiGroup":"*"`)+
			policyLine(`"user":"eve","resource":"pods","namespace":"default","readonly":true`)))
	const other = "/api/v1/namespaces/other/pods"
	for _, c := range []struct {
		method, path, body string
		ada, eve           int
	}{
		{"POST", podsPath, `{"metadata":{"name":"one"}}`, 201, 403},
		{"GET", podsPath, "", 200, 200},
		{"GET", podsPath + "?watch=true&timeoutSeconds=1", "", 200, 200},
		{"GET", podsPath + "/one", "", 200, 200},
		{"GET", other, "", 200, 403},
		{"GET", "/api/v1/pods?watch=true&timeoutSeconds=1", "", 200, 403},
		{"GET", "/apis/apps/v1/deployments", "", 200, 403},
		{"DELETE", podsPath + "/one", "", 200, 403},
		{"GET", "/api/v1", "", 200, 200},
		{"GET", "/openapi/v3", "", 200, 200},
		{"GET", "/readyz", "", 200, 200},
	} {
		for token, want := range map[string]int{"ada-token": c.ada, "eve-token": c.eve} {
			if code, _, body := request(t, c.method, s.http+c.path, c.body, "Authorization",
				"Bearer "+token); code != want {
				t.Errorf("%s %s with %s: got %d %s, want %d", c.method, c.path, token, code, body, want)
			}
		}
	}
	_, _, body := request(t, "GET", s.http+other, "", "Authorization", "Bearer eve-token")
	const want = `pods is forbidden: User \"eve\" cannot list resource \"pods\" in API group \"\" in the namespace \"other\": no line of the policy allows it`
	if !strings.Contains(body, want) {
		t.Errorf("got %s, want %s", body, want)
	}
	code, _, body := request(t, "POST", s.http+"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
		`{"spec":{"resourceAttributes":{"verb":"create","resource":"pods","namespace":"default"}}}`, "Authorization",
		"Bearer eve-token")
	if code != 201 || !strings.Contains(body, `"allowed":false`) {
		t.Errorf("got %d %s, want a denial", code, body)
	}
}

func TestPolicyIsListedByRulesReviews(t *testing.T) {
	origin := startServer(t)
	flags := []string{
		"--token-file", writeFile(t, accessTokens),
		"--authorization-policy", writeFile(t,
			policyLine(`"user":"eve","resource":"pods","namespace":"default","readonly":true`)),
	}
	for _, url := range []string{
		startServer(t, flags...).http,
		startRelay(t, append(flags, "--upstream", origin.http, "--resource", "pods")...).http,
	} {
		code, _, body := request(t, "POST", url+"/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
			`{"spec":{"namespace":"default"}}`, "Authorization", "Bearer eve-token")
		if want := `{"verbs":["get","list","watch"],"apiGroups":[""],"resources":["pods"]}]`; code != 201 ||
			!strings.Contains(body, want) || !strings.Contains(body, `"incomplete":false`) {
			t.Errorf("got %d %s, want %s", code, body, want)
		}
	}
}

func TestAnonymousUsersNeedThePolicyToo(t *testing.T) {
	s := startServer(t, "--authorization-policy",
		writeFile(t,
			policyLine(`"user":"*","resource":"pods"`)+
				policyLine(`"group":"system:unauthenticated","resource":"services"`)))
	requireStatus(t, 403, "GET", s.http+"/api/v1/pods")
	requireStatus(t, 200, "GET", s.http+"/api/v1/services")
}

func TestPolicyRestrictsRelays(t *testing.T) {
	origin := startServer(t)
	tokens := writeFile(t, accessTokens)
	policy := writeFile(t,
		policyLine(`"user":"eve","resource":"pods","readonly":true`)+
			policyLine(`"user":"ada","nonResourcePath":"`+podsPath+`"`))
	relayed := startRelay(t, "--upstream", origin.http, "--resource", "pods", "--token-file", tokens,
		"--authorization-policy", policy)
	requireStatus(t, 200, "GET", relayed.http+"/api/v1/pods", "Authorization", "Bearer eve-token")
	requireStatus(t, 403, "GET", relayed.http+"/api/v1/pods", "Authorization", "Bearer ada-token")
	one := startRelay(t, "--upstream", origin.http+podsPath, "--token-file", tokens, "--authorization-policy", policy)
	requireStatus(t, 200, "GET", one.http+podsPath, "Authorization", "Bearer ada-token")
	requireStatus(t, 403, "GET", one.http+podsPath, "Authorization", "Bearer eve-token")
	requireStatus(t, 401, "GET", one.http+podsPath)
	requireStatus(t, 200, "GET", one.http+"/readyz")
	anonymous := startRelay(t, "--upstream", origin.http+podsPath, "--authorization-policy", policy)
	requireStatus(t, 403, "GET", anonymous.http+podsPath)
}

func TestPolicyErrorsAreOneLine(t *testing.T) {
	for file, want := range map[string]string{
		"absent":                       "--authorization-policy: open absent: no such file",
		writeFile(t, "\n{\"user\":1}"): `line 2: unknown member "user"`,
	} {
		p := start(t, "serve", "--addr", "127.0.0.1:0", "--authorization-policy", file)
		code, stderr := p.exit(t), p.stderr.String()
		if code != cli.ExitFailure || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("got exit code %d and %s, want one line with %s", code, stderr, want)
		}
	}
}

func TestConfigFileConfiguresServe(t *testing.T) {
	file := writeFile(t, "addr: 127.0.0.1:0\ntoken-file: "+writeFile(t,
		accessTokens)+"\nresource: [widgets.v1.demo.example.com=Widget]\n")
	p := start(t, "serve", "--config", file, "--max-watches", "3", "--print-config")
	if code := p.exit(t); code != cli.ExitOK {
		t.Fatalf("exit code %d: %s", code, p.stderr)
	}
	printed := p.stdout.String()
	for _, want := range []string{
		"addr: 127.0.0.1:0\n", "max-watches: 3\n",
		"resource: [widgets.v1.demo.example.com=Widget]\n", "etcd-prefix: ",
	} {
		if !strings.Contains(printed, want) {
			t.Errorf("got\n%s\nwant a line with %s", printed, want)
		}
	}
	again := start(t, "serve", "--config", writeFile(t, printed), "--print-config")
	if again.exit(t); again.stdout.String() != printed {
		t.Errorf("the printed file is printed as\n%s%s", again.stdout, again.stderr)
	}
	s := startServer(t, "--config="+writeFile(t, printed), "--debug-addr", "127.0.0.1:0", "--addr", "127.0.0.1:0")
	requireStatus(t, 401, "GET", s.http+widgetsPath)
	requireStatus(t, 200, "GET", s.http+widgetsPath, "Authorization", "Bearer ada-token")

	for text, want := range map[string]string{
		"adr: x":           `line 1: unknown key "adr": did you mean addr?`,
		"token-file: [a]":  "line 1: token-file: must be a single value",
		"etcd-prefix: /my": "--etcd-prefix requires --etcd",
	} {
		p := start(t, "serve", "--config", writeFile(t, text))
		if code := p.exit(t); code != cli.ExitUsage || !strings.Contains(p.stderr.String(), want) {
			t.Errorf("%q: got exit code %d and %s, want %s", text, code, p.stderr, want)
		}
	}
}

func TestConfigFileConfiguresRelay(t *testing.T) {
	origin := startServer(t)
	create(t, origin.http, podsPath, "one")
	file := writeFile(t, "addr: 127.0.0.1:0\nupstream: "+origin.http+"\nresource: [pods]\nmax-watches: 3\n")
	p := start(t, "relay", "--config", file, "--max-behind", "1m", "--print-config")
	if code := p.exit(t); code != cli.ExitOK {
		t.Fatalf("exit code %d: %s", code, p.stderr)
	}
	printed := p.stdout.String()
	for _, want := range []string{"max-watches: 3\n", "max-behind: 1m0s\n", "resource: [pods]\n", "upstream-ca: "} {
		if !strings.Contains(printed, want) {
			t.Errorf("got\n%s\nwant a line with %s", printed, want)
		}
	}
	r := startRelay(t, "--config", writeFile(t, printed))
	requireStatus(t, 200, "GET", r.http+podsPath+"/one")
	p = start(t, "relay", "--config", writeFile(t, "data: x"))
	if code := p.exit(t); code != cli.ExitUsage || !strings.Contains(p.stderr.String(), `line 1: unknown key "data"`) {
		t.Errorf("a key that is no flag of relay: got exit code %d and %s", code, p.stderr)
	}
}
