package table

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi/internal/jsonvalue"
)

// ServiceColumns returns kubectl's columns of core/v1 Service.
func ServiceColumns() []Column {
	return []Column{
		{
			Name: "Type", Description: "The type of the service, which determines from where it can be reached.",
			cell: stringOr("ClusterIP", "spec", "type"),
		},
		{
			Name: "Cluster-IP", Description: "The address of the service within the cluster.",
			cell: stringOrNone("spec", "clusterIP"),
		},
		{Name: "External-IP", Description: "The addresses of the service outside of the cluster.", cell: externalIP},
		{Name: "Port(s)", Description: "The ports of the service.", cell: ports},
		ageColumn,
		{
			Name: "Selector", Priority: 1, Description: "The labels of the pods that serve the service.",
			cell: func(dst []byte, r *row) []byte {
				return rawjson.AppendString(dst, orNone(formatLabels(r.at("spec", "selector"))))
			},
		},
	}
}

// DeploymentColumns returns the columns that kubectl shows for apps/v1 Deployments.
func DeploymentColumns() []Column {
	return []Column{
		{
			Name: "Ready", Description: "The number of ready pods, and the desired number.",
			cell: func(dst []byte, r *row) []byte {
				return fmt.Appendf(dst, `"%d/%d"`, r.at("status", "readyReplicas").Int(), wantedReplicas(r))
			},
		},
		{
			Name: "Up-to-date", Type: "integer", Description: "The number of pods with the newest template.",
			cell: integer("status", "updatedReplicas"),
		},
		{
			Name: "Available", Type: "integer",
			Description: "The number of pods that have been ready for the minimum time.",
			cell:        integer("status", "availableReplicas"),
		},
		ageColumn,
		{Name: "Containers", Priority: 1, Description: "The names of the containers.", cell: containers("name")},
		{Name: "Images", Priority: 1, Description: "The images of the containers.", cell: containers("image")},
		{Name: "Selector", Priority: 1, Description: "The labels of the pods.", cell: deploymentSelector},
	}
}

// ConfigMapColumns returns kubectl's columns of core/v1 ConfigMap.
func ConfigMapColumns() []Column {
	return []Column{
		{Name: "Data", Type: "integer", Description: "The number of keys.", cell: func(dst []byte, r *row) []byte {
			n := r.at("data").Len() + r.at("binaryData").Len()
			return strconv.AppendInt(dst, int64(n), 10)
		}},
		ageColumn,
	}
}

// NamespaceColumns returns kubectl's columns of core/v1 Namespace.
func NamespaceColumns() []Column {
	return []Column{
		{Name: "Status", Description: "Whether the namespace is active or being deleted.", cell: namespaceStatus},
		ageColumn,
	}
}

// Unlike kube-apiserver, this server does not set defaults in new objects. Therefore the
// cells of missing fields show the defaults of kube-apiserver.

func namespaceStatus(dst []byte, r *row) []byte {
	phase := r.at("status", "phase").Text()
	switch {
	case phase != "":
	case len(r.at("metadata", "deletionTimestamp")) > 0:
		phase = "Terminating"
	default:
		phase = "Active"
	}
	return rawjson.AppendString(dst, phase)
}

func wantedReplicas(r *row) int64 {
	if replicas := r.at("spec", "replicas"); len(replicas) > 0 {
		return replicas.Int()
	}
	return 1
}

// stringOrNone shows a string, or "<none>" if it is empty.
func stringOrNone(path ...string) cellFunc { return stringOr("<none>", path...) }

// stringOr shows the string at a path. If it is missing or empty, the cell contains the text in
// absent.
func stringOr(absent string, path ...string) cellFunc {
	return func(dst []byte, r *row) []byte {
		return rawjson.AppendString(dst, cmp.Or(r.at(path...).Text(), absent))
	}
}

// integer shows an integer, or zero if it is missing.
func integer(path ...string) cellFunc {
	return func(dst []byte, r *row) []byte {
		return strconv.AppendInt(dst, r.at(path...).Int(), 10)
	}
}

func containers(member string) cellFunc {
	return func(dst []byte, r *row) []byte {
		var all []string
		r.at("spec", "template", "spec", "containers").Elements(func(c jsonvalue.Value) {
			all = append(all, c.At(member).Text())
		})
		return rawjson.AppendString(dst, strings.Join(all, ","))
	}
}

// externalIP shows the external name of a service, or the addresses of its load balancer and the
// external IPs in its spec. If a service of type LoadBalancer has none of them, it shows
// "<pending>".
func externalIP(dst []byte, r *row) []byte {
	spec := r.at("spec")
	var all []string
	kind := spec.At("type").Text()
	switch kind {
	case "ExternalName":
		return rawjson.AppendString(dst, spec.At("externalName").Text())
	case "LoadBalancer":
		r.at("status", "loadBalancer", "ingress").Elements(func(in jsonvalue.Value) {
			address := in.At("ip").Text()
			if address == "" {
				address = in.At("hostname").Text()
			}
			if address != "" {
				all = append(all, address)
			}
		})
		slices.Sort(all)
		all = slices.Compact(all)
	}
	spec.At("externalIPs").Elements(func(ip jsonvalue.Value) { all = append(all, ip.Text()) })
	if kind == "LoadBalancer" && all == nil {
		return rawjson.AppendString(dst, "<pending>")
	}
	return rawjson.AppendString(dst, orNone(strings.Join(all, ",")))
}

// ports shows each port as port/PROTOCOL or port:nodePort/PROTOCOL.
func ports(dst []byte, r *row) []byte {
	var all []string
	r.at("spec", "ports").Elements(func(p jsonvalue.Value) {
		s := strconv.FormatInt(p.At("port").Int(), 10)
		if node := p.At("nodePort").Int(); node > 0 {
			s += ":" + strconv.FormatInt(node, 10)
		}
		protocol := p.At("protocol").Text()
		if protocol == "" {
			protocol = "TCP"
		}
		all = append(all, s+"/"+protocol)
	})
	return rawjson.AppendString(dst, orNone(strings.Join(all, ",")))
}

// formatLabels formats an object of strings as a selector: a=b,c=d, sorted.
func formatLabels(labels jsonvalue.Value) string {
	var all []string
	labels.Members(func(name string, member jsonvalue.Value) { all = append(all, name+"="+member.Text()) })
	slices.Sort(all)
	return strings.Join(all, ",")
}

func deploymentSelector(dst []byte, r *row) []byte {
	return rawjson.AppendString(dst, orNone(FormatSelector(r.at("spec", "selector"))))
}

// FormatSelector formats a metav1.LabelSelector in the syntax of kubectl's -l. A string is
// returned unchanged.
func FormatSelector(selector jsonvalue.Value) string {
	if s := selector.Text(); s != "" {
		return s
	}
	var all strings.Builder
	all.WriteString(formatLabels(selector.At("matchLabels")))
	selector.At("matchExpressions").Elements(func(e jsonvalue.Value) {
		var values []string
		e.At("values").Elements(func(v jsonvalue.Value) { values = append(values, v.Text()) })
		s := e.At("key").Text()
		switch e.At("operator").Text() {
		case "In":
			s += " in (" + strings.Join(values, ",") + ")"
		case "NotIn":
			s += " notin (" + strings.Join(values, ",") + ")"
		case "DoesNotExist":
			s = "!" + s
		}
		if all.Len() > 0 {
			all.WriteByte(',')
		}
		all.WriteString(s)
	})
	return all.String()
}

func orNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}

// EventColumns returns kubectl's columns of core/v1 Event.
func EventColumns() []Column {
	return []Column{
		{Name: "Last Seen", Description: "The time since the last occurrence.", cell: lastSeen},
		{Name: "Type", Description: "The type of the event: Normal or Warning.", Path: ".type"},
		{Name: "Reason", Description: "The reason for the event, in one word.", Path: ".reason"},
		{Name: "Object", Description: "The object that the event concerns.", cell: aboutObject},
		{Name: "Source", Priority: 1, Description: "The component that reported the event.", Path: ".source.component"},
		{Name: "Message", Description: "What happened.", Path: ".message"},
		{Name: "Count", Type: "integer", Priority: 1, Description: "The number of occurrences.", Path: ".count"},
	}
}

// lastSeen shows the time since the event last occurred, or since it was created if no time of an
// occurrence is recorded.
func lastSeen(dst []byte, r *row) []byte {
	for _, path := range [][]string{{"series", "lastObservedTime"}, {"lastTimestamp"}, {"eventTime"}} {
		if at := r.at(path...); !at.Time().IsZero() {
			return appendAge(dst, at, r.now)
		}
	}
	return appendAge(dst, r.at("metadata", "creationTimestamp"), r.now)
}

func aboutObject(dst []byte, r *row) []byte {
	return rawjson.AppendString(dst,
		strings.ToLower(r.at("involvedObject", "kind").Text())+"/"+r.at("involvedObject", "name").Text())
}
