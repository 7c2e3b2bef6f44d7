package benchmarks

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
)

// changePod makes 62 % of the writes change the readiness, 18 % the restarts, and 6 % an
// annotation. The others replace pods.
func changePod(r *rand.Rand, o *fleetObject) bool {
	switch n := r.IntN(100); {
	case n < 62:
		o.ready = !o.ready
	case n < 80:
		o.counter++
	case n < 86:
		o.notes++
	default:
		o.counter = -1
		return false
	}
	return true
}

// changeNode makes 93 % of the writes heartbeats. 4 % change the images, and 2 % labels or taints.
func changeNode(r *rand.Rand, o *fleetObject) bool {
	switch n := r.IntN(100); {
	case n < 94:
	case n < 98:
		o.counter++
	default:
		o.notes++
	}
	return true
}

func changeLease(*rand.Rand, *fleetObject) bool { return true }

// changeSlice changes the readiness of one of 20 endpoints.
func changeSlice(r *rand.Rand, o *fleetObject) bool {
	o.parts[r.IntN(20)]++
	return true
}

// changeConfigMap changes one of ten sections.
func changeConfigMap(r *rand.Rand, o *fleetObject) bool {
	o.parts[r.IntN(10)]++
	return true
}

func timeOf(tick int) string {
	return time.Unix(1.8e9, 0).Add(time.Duration(tick) * time.Second).UTC().Format(time.RFC3339)
}

// head returns the start of an object, up to its managedFields, which have about the given number
// of members. name is free of characters that need an escape.
func head(kind, name string, v listwatch.Version, o *fleetObject, labels string, members int) string {
	var managed strings.Builder
	for n := range members {
		fmt.Fprintf(&managed, `,"f:member-%d":{".":{},"f:value":{}}`, n)
	}
	return fmt.Sprintf(
		`{"kind":%q,"apiVersion":"v1","metadata":{"name":%q,"namespace":"shop","uid":"7c1d4f6a-9e0b-4b7e-8a50-%012x",`+
			`"resourceVersion":"%d","creationTimestamp":"2026-11-02T08:15:30Z","labels":{%s},`+
			`"annotations":{"example.com/note":"%d"},"managedFields":[{"manager":"controller","operation":"Update","apiVersion":"v1",`+
			`"time":"2026-11-02T08:15:30Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{".":{}}}}},`+
			`{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":%q,"fieldsType":"FieldsV1",`+
			`"fieldsV1":{"f:status":{".":{}%s}},"subresource":"status"}]}`,
		kind, name, o.generation, v, labels, o.notes, timeOf(o.tick), managed.String())
}

func renderPod(name string, v listwatch.Version, o *fleetObject) []byte {
	status, containers := "False", ""
	if o.ready {
		status = "True"
	}
	for n := range 2 {
		containers += fmt.Sprintf(
			`,{"name":"c%d","image":"registry.example.com/shop/service-%d:1.24.%[1]d","ports":[{"name":"http",`+
				`"containerPort":8080,"protocol":"TCP"}],"env":[{"name":"LOG_LEVEL","value":"info"},{"name":"REGION","value":"eu-west-1"},`+
				`{"name":"POD","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}}],"resources":{"limits":{"cpu":"500m",`+
				`"memory":"256Mi"},"requests":{"cpu":"100m","memory":"128Mi"}},"livenessProbe":{"httpGet":{"path":"/healthz","port":"http",`+
				`"scheme":"HTTP"},"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3},"volumeMounts":[{"name":`+
				`"kube-api-access-x2k9p","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],`+
				`"terminationMessagePath":"/dev/termination-log","imagePullPolicy":"IfNotPresent"}`, n, n+1)
	}
	conditions := ""
	for _, c := range []string{"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		is, at := "True", "2026-11-02T08:15:31Z"
		if strings.HasSuffix(c, "Ready") {
			is, at = status, timeOf(o.tick)
		}
		conditions += fmt.Sprintf(`,{"type":%q,"status":%q,"lastProbeTime":null,"lastTransitionTime":%q}`, c, is, at)
	}
	statuses := ""
	for n := range 2 {
		statuses += fmt.Sprintf(
			`,{"name":"c%d","state":{"running":{"startedAt":"2026-11-02T08:15:40Z"}},"lastState":{},"ready":%t,`+
				`"restartCount":%d,"image":"registry.example.com/shop/service-%d:1.24.0","imageID":"registry.example.com/shop/service@sha256:`+
				`%064d","containerID":"containerd://%064d","started":true}`, n, o.ready, o.counter, n+1, n,
			o.generation)
	}
	return []byte(head("Pod", name, v, o, `"app":"shop","pod-template-hash":"7d9c8b6f5d","tier":"backend"`, 52) +
		`,"spec":{"volumes":[{"name":"kube-api-access-x2k9p","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,` +
		`"path":"token"}}],"defaultMode":420}}],"containers":[` + containers[1:] +
		`],"restartPolicy":"Always","dnsPolicy":"ClusterFirst",` +
		`"serviceAccountName":"default","nodeName":"node-17","schedulerName":"default-scheduler","priority":0,"enableServiceLinks":true},` +
		`"status":{"phase":"Running","conditions":[` + conditions[1:] +
		`],"hostIP":"10.0.4.17","podIP":"10.244.17.9",` +
		`"startTime":"2026-11-02T08:15:31Z","containerStatuses":[` + statuses[1:] + `],"qosClass":"Burstable"}}`)
}

func renderNode(name string, v listwatch.Version, o *fleetObject) []byte {
	conditions, images := "", ""
	for _, c := range []string{"MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable", "Ready"} {
		conditions += fmt.Sprintf(
			`,{"type":%q,"status":"False","lastHeartbeatTime":%q,"lastTransitionTime":"2026-11-02T08:15:30Z",`+
				`"reason":"Kubelet%[1]s","message":"kubelet has reported its condition"}`, c, timeOf(o.tick))
	}
	for n := range 22 {
		images += fmt.Sprintf(
			`,{"names":["registry.example.com/shop/service-%d@sha256:%064d","registry.example.com/shop/service-%[1]d:1.24.%[3]d"],`+
				`"sizeBytes":%[4]d}`, n, n*7, o.counter, 91234567+n)
	}
	resources := `{"cpu":"15890m","ephemeral-storage":"95551679124","hugepages-2Mi":"0","memory":"61845196Ki","pods":"110"}`
	return []byte(head("Node", name, v, o, fmt.Sprintf(
		`"kubernetes.io/arch":"amd64","kubernetes.io/os":"linux","topology.kubernetes.io/zone":"eu-west-1a","pool":"%d"`, o.notes), 24) +
		`,"spec":{"podCIDR":"10.244.17.0/24","providerID":"cloud:///eu-west-1a/i-0a1b2c3d4e5f","taints":[{"key":"dedicated","value":"shop",` +
		`"effect":"NoSchedule"}]},"status":{"capacity":` + resources + `,"allocatable":` + resources +
		`,"conditions":[` + conditions[1:] +
		`],"addresses":[{"type":"InternalIP","address":"10.0.4.17"},{"type":"Hostname","address":"node-17"}],"daemonEndpoints":` +
		`{"kubeletEndpoint":{"Port":10250}},"nodeInfo":{"machineID":"ec2f8a1b9c3d4e5f","kernelVersion":"6.8.0","osImage":"Linux",` +
		`"containerRuntimeVersion":"containerd://2.1.0","kubeletVersion":"v1.36.1"},"images":[` + images[1:] + `]}}`)
}

func renderLease(name string, v listwatch.Version, o *fleetObject) []byte {
	return []byte(head("Lease", name, v, o, "", 2) + fmt.Sprintf(
		`,"spec":{"holderIdentity":"node-17","leaseDurationSeconds":40,"renewTime":%q}}`, timeOf(o.tick)))
}

func renderSlice(name string, v listwatch.Version, o *fleetObject) []byte {
	endpoints := ""
	for n, changes := range o.parts {
		endpoints += fmt.Sprintf(
			`,{"addresses":["10.244.%d.%[1]d"],"conditions":{"ready":%t,"serving":%[2]t,"terminating":false},`+
				`"nodeName":"node-%[1]d.eu-west-1.compute.internal","targetRef":{"kind":"Pod","namespace":"shop",`+
				`"name":"checkout-7d9c8b6f5d-x%04[1]d","uid":"7c1d4f6a-9e0b-4b7e-8a50-%012[1]d"},"zone":"eu-west-1a"}`,
			n,
			changes%2 == 0)
	}
	return []byte(head("EndpointSlice", name, v, o, `"kubernetes.io/service-name":"checkout",`+
		`"endpointslice.kubernetes.io/managed-by":"endpointslice-controller.k8s.io"`, 8) +
		`,"addressType":"IPv4","endpoints":[` + endpoints[1:] +
		`],"ports":[{"name":"http","port":8080,"protocol":"TCP"}]}`)
}

func renderConfigMap(name string, v listwatch.Version, o *fleetObject) []byte {
	sections := ""
	for n, changes := range o.parts[:10] {
		sections += fmt.Sprintf(`,"section-%d":"listen: 0.0.0.0:80%[1]d\nrevision: %d\n%s"`, n, changes,
			strings.Repeat(`upstream: checkout.shop.svc\n`, 12))
	}
	return []byte(head("ConfigMap", name, v, o, `"app":"shop"`, 2) + `,"data":{` + sections[1:] + `}}`)
}
