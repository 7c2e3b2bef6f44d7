package kubeapi

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/listwatch/listwatch/internal/rawjson"
)

func ServiceColumns() []Column {
	return []Column{
		{Name: "Type", Description: "How the service is made known.", cell: stringOr("ClusterIP", "spec", "type")},
		{Name: "Cluster-IP", Description: "The address of the service within the cluster.", cell: stringOrNone("spec", "clusterIP")},
		{Name: "External-IP", Description: "The addresses of the service outside of the cluster.", cell: externalIP},
		{Name: "Port(s)", Description: "The ports of the service.", cell: ports},
		ageColumn,
		{Name: "Selector", Priority: 1, Description: "The labels of the pods behind the service.", cell: func(dst []byte, r *row) []byte {
			return rawjson.AppendString(dst, orNone(formatLabels(r.at("spec", "selector"))))
		}},
	}
}

func DeploymentColumns() []Column {
	return []Column{
		{Name: "Ready", Description: "How many pods are ready, and how many are wanted.", cell: func(dst []byte, r *row) []byte {
			return fmt.Appendf(dst, `"%d/%d"`, r.at("status", "readyReplicas").Int(), wantedReplicas(r))
		}},
		{Name: "Up-to-date", Type: "integer", Description: "How many pods have the newest template.", cell: integer("status", "updatedReplicas")},
		{Name: "Available", Type: "integer", Description: "How many pods have been ready for long enough.", cell: integer("status", "availableReplicas")},
		ageColumn,
		{Name: "Containers", Priority: 1, Description: "The names of the containers.", cell: containers("name")},
		{Name: "Images", Priority: 1, Description: "The images of the containers.", cell: containers("image")},
		{Name: "Selector", Priority: 1, Description: "The labels of the pods.", cell: deploymentSelector},
	}
}

func ConfigMapColumns() []Column {
	return []Column{
		{Name: "Data", Type: "integer", Description: "How many keys there are.", cell: func(dst []byte, r *row) []byte {
			n := r.at("data").Len() + r.at("binaryData").Len()
			return strconv.AppendInt(dst, int64(n), 10)
		}},
		ageColumn,
	}
}

func NamespaceColumns() []Column {
	return []Column{{Name: "Status", Description: "Whether the namespace is in use or going away.", cell: namespaceStatus}, ageColumn}
}

// What kube-apiserver writes into new objects by itself is not written here; tables show it where it is not said otherwise.

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

// textOrNone is a string, and <none> where it is empty.
func stringOrNone(path ...string) cellFunc { return stringOr("<none>", path...) }

// textOr is a string, and absent where it is empty.
func stringOr(absent string, path ...string) cellFunc {
	return func(dst []byte, r *row) []byte {
		return rawjson.AppendString(dst, cmp.Or(r.at(path...).Text(), absent))
	}
}

// number is a whole number, and zero where it isn't there.
func integer(path ...string) cellFunc {
	return func(dst []byte, r *row) []byte {
		return strconv.AppendInt(dst, r.at(path...).Int(), 10)
	}
}

func containers(member string) cellFunc {
	return func(dst []byte, r *row) []byte {
		var all []string
		r.at("spec", "template", "spec", "containers").Elements(func(c Value) { all = append(all, c.At(member).Text()) })
		return rawjson.AppendString(dst, strings.Join(all, ","))
	}
}

// externalIP is the addresses given by hand, and for a load balancer those it has, or that it has none yet.
func externalIP(dst []byte, r *row) []byte {
	spec := r.at("spec")
	var all []string
	kind := spec.At("type").Text()
	switch kind {
	case "ExternalName":
		return rawjson.AppendString(dst, spec.At("externalName").Text())
	case "LoadBalancer":
		r.at("status", "loadBalancer", "ingress").Elements(func(in Value) {
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
	spec.At("externalIPs").Elements(func(ip Value) { all = append(all, ip.Text()) })
	if kind == "LoadBalancer" && all == nil {
		return rawjson.AppendString(dst, "<pending>")
	}
	return rawjson.AppendString(dst, orNone(strings.Join(all, ",")))
}

// ports is port/PROTOCOL or port:nodePort/PROTOCOL, for each.
func ports(dst []byte, r *row) []byte {
	var all []string
	r.at("spec", "ports").Elements(func(p Value) {
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

// pairs writes an object of strings as a selector: a=b,c=d, sorted.
func formatLabels(labels Value) string {
	var all []string
	labels.Members(func(name string, member Value) { all = append(all, name+"="+member.Text()) })
	slices.Sort(all)
	return strings.Join(all, ",")
}

func deploymentSelector(dst []byte, r *row) []byte {
	return rawjson.AppendString(dst, orNone(FormatSelector(r.at("spec", "selector"))))
}

// selectorText writes a metav1.LabelSelector as kubectl's -l takes it; a string stays as it is.
func FormatSelector(selector Value) string {
	if s := selector.Text(); s != "" {
		return s
	}
	var all strings.Builder
	all.WriteString(formatLabels(selector.At("matchLabels")))
	selector.At("matchExpressions").Elements(func(e Value) {
		var values []string
		e.At("values").Elements(func(v Value) { values = append(values, v.Text()) })
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
