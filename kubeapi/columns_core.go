package kubeapi

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/listwatch/listwatch/internal/rawjson"
)

func serviceColumns() []Column {
	return []Column{
		{Name: "Type", Description: "How the service is made known.", cell: textOr("ClusterIP", "spec", "type")},
		{Name: "Cluster-IP", Description: "The address of the service within the cluster.", cell: textOrNone("spec", "clusterIP")},
		{Name: "External-IP", Description: "The addresses of the service outside of the cluster.", cell: externalIP},
		{Name: "Port(s)", Description: "The ports of the service.", cell: ports},
		ageColumn,
		{Name: "Selector", Priority: 1, Description: "The labels of the pods behind the service.", cell: func(dst []byte, r *row) []byte {
			return rawjson.AppendString(dst, orNone(pairs(r.at("spec", "selector"))))
		}},
	}
}

func deploymentColumns() []Column {
	return []Column{
		{Name: "Ready", Description: "How many pods are ready, and how many are wanted.", cell: func(dst []byte, r *row) []byte {
			return fmt.Appendf(dst, `"%d/%d"`, r.at("status", "readyReplicas").number(), wantedReplicas(r))
		}},
		{Name: "Up-to-date", Type: "integer", Description: "How many pods have the newest template.", cell: number("status", "updatedReplicas")},
		{Name: "Available", Type: "integer", Description: "How many pods have been ready for long enough.", cell: number("status", "availableReplicas")},
		ageColumn,
		{Name: "Containers", Priority: 1, Description: "The names of the containers.", cell: containers("name")},
		{Name: "Images", Priority: 1, Description: "The images of the containers.", cell: containers("image")},
		{Name: "Selector", Priority: 1, Description: "The labels of the pods.", cell: deploymentSelector},
	}
}

func configMapColumns() []Column {
	return []Column{
		{Name: "Data", Type: "integer", Description: "How many keys there are.", cell: func(dst []byte, r *row) []byte {
			n := r.at("data").size() + r.at("binaryData").size()
			return strconv.AppendInt(dst, int64(n), 10)
		}},
		ageColumn,
	}
}

func namespaceColumns() []Column {
	return []Column{{Name: "Status", Description: "Whether the namespace is in use or going away.", cell: namespaceStatus}, ageColumn}
}

// What kube-apiserver writes into new objects by itself is not written here; tables show it where it is not said otherwise.

func namespaceStatus(dst []byte, r *row) []byte {
	phase := r.at("status", "phase").text()
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
		return replicas.number()
	}
	return 1
}

// textOrNone is a string, and <none> where it is empty.
func textOrNone(path ...string) cellFunc { return textOr("<none>", path...) }

// textOr is a string, and absent where it is empty.
func textOr(absent string, path ...string) cellFunc {
	return func(dst []byte, r *row) []byte {
		return rawjson.AppendString(dst, cmp.Or(r.at(path...).text(), absent))
	}
}

// number is a whole number, and zero where it isn't there.
func number(path ...string) cellFunc {
	return func(dst []byte, r *row) []byte {
		return strconv.AppendInt(dst, r.at(path...).number(), 10)
	}
}

func containers(member string) cellFunc {
	return func(dst []byte, r *row) []byte {
		var all []string
		r.at("spec", "template", "spec", "containers").elements(func(c value) { all = append(all, c.at(member).text()) })
		return rawjson.AppendString(dst, strings.Join(all, ","))
	}
}

// externalIP is the addresses given by hand, and for a load balancer those it has, or that it has none yet.
func externalIP(dst []byte, r *row) []byte {
	spec := r.at("spec")
	var all []string
	kind := spec.at("type").text()
	switch kind {
	case "ExternalName":
		return rawjson.AppendString(dst, spec.at("externalName").text())
	case "LoadBalancer":
		r.at("status", "loadBalancer", "ingress").elements(func(in value) {
			address := in.at("ip").text()
			if address == "" {
				address = in.at("hostname").text()
			}
			if address != "" {
				all = append(all, address)
			}
		})
		slices.Sort(all)
		all = slices.Compact(all)
	}
	spec.at("externalIPs").elements(func(ip value) { all = append(all, ip.text()) })
	if kind == "LoadBalancer" && all == nil {
		return rawjson.AppendString(dst, "<pending>")
	}
	return rawjson.AppendString(dst, orNone(strings.Join(all, ",")))
}

// ports is port/PROTOCOL or port:nodePort/PROTOCOL, for each.
func ports(dst []byte, r *row) []byte {
	var all []string
	r.at("spec", "ports").elements(func(p value) {
		s := strconv.FormatInt(p.at("port").number(), 10)
		if node := p.at("nodePort").number(); node > 0 {
			s += ":" + strconv.FormatInt(node, 10)
		}
		protocol := p.at("protocol").text()
		if protocol == "" {
			protocol = "TCP"
		}
		all = append(all, s+"/"+protocol)
	})
	return rawjson.AppendString(dst, orNone(strings.Join(all, ",")))
}

// pairs writes an object of strings as a selector: a=b,c=d, sorted.
func pairs(labels value) string {
	var all []string
	labels.members(func(name string, member value) { all = append(all, name+"="+member.text()) })
	slices.Sort(all)
	return strings.Join(all, ",")
}

func deploymentSelector(dst []byte, r *row) []byte {
	return rawjson.AppendString(dst, orNone(selectorText(r.at("spec", "selector"))))
}

// selectorText writes a metav1.LabelSelector as kubectl's -l takes it; a string stays as it is.
func selectorText(selector value) string {
	if s := selector.text(); s != "" {
		return s
	}
	var all strings.Builder
	all.WriteString(pairs(selector.at("matchLabels")))
	selector.at("matchExpressions").elements(func(e value) {
		var values []string
		e.at("values").elements(func(v value) { values = append(values, v.text()) })
		s := e.at("key").text()
		switch e.at("operator").text() {
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
