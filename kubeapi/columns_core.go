package kubeapi

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A cellFunc is a [Column.Cell].
type cellFunc = func(dst, object []byte, now time.Time) []byte

func serviceColumns() []Column {
	return []Column{
		{Name: "Type", Description: "How the service is made known.", Path: ".spec.type"},
		{Name: "Cluster-IP", Description: "The address of the service within the cluster.", Cell: textOrNone("spec", "clusterIP")},
		{Name: "External-IP", Description: "The addresses of the service outside of the cluster.", Cell: externalIP},
		{Name: "Port(s)", Description: "The ports of the service.", Cell: ports},
		ageColumn,
		{Name: "Selector", Priority: 1, Description: "The labels of the pods behind the service.", Cell: func(dst, object []byte, _ time.Time) []byte {
			return appendString(dst, orNone(pairs(value(object).at("spec", "selector"))))
		}},
	}
}

func deploymentColumns() []Column {
	return []Column{
		{Name: "Ready", Description: "How many pods are ready, and how many are wanted.", Cell: func(dst, object []byte, _ time.Time) []byte {
			return fmt.Appendf(dst, `"%d/%d"`, value(object).at("status", "readyReplicas").number(), value(object).at("spec", "replicas").number())
		}},
		{Name: "Up-to-date", Type: "integer", Description: "How many pods have the newest template.", Cell: number("status", "updatedReplicas")},
		{Name: "Available", Type: "integer", Description: "How many pods have been ready for long enough.", Cell: number("status", "availableReplicas")},
		ageColumn,
		{Name: "Containers", Priority: 1, Description: "The names of the containers.", Cell: containers("name")},
		{Name: "Images", Priority: 1, Description: "The images of the containers.", Cell: containers("image")},
		{Name: "Selector", Priority: 1, Description: "The labels of the pods.", Cell: deploymentSelector},
	}
}

func configMapColumns() []Column {
	return []Column{
		{Name: "Data", Type: "integer", Description: "How many keys there are.", Cell: func(dst, object []byte, _ time.Time) []byte {
			n := value(object).at("data").size() + value(object).at("binaryData").size()
			return strconv.AppendInt(dst, int64(n), 10)
		}},
		ageColumn,
	}
}

func namespaceColumns() []Column {
	return []Column{{Name: "Status", Description: "Whether the namespace is in use or going away.", Path: ".status.phase"}, ageColumn}
}

// textOrNone is a string, and <none> where it is empty.
func textOrNone(path ...string) cellFunc {
	return func(dst, object []byte, _ time.Time) []byte {
		return appendString(dst, orNone(value(object).at(path...).text()))
	}
}

// number is a whole number, and zero where it isn't there.
func number(path ...string) cellFunc {
	return func(dst, object []byte, _ time.Time) []byte {
		return strconv.AppendInt(dst, value(object).at(path...).number(), 10)
	}
}

func containers(member string) cellFunc {
	return func(dst, object []byte, _ time.Time) []byte {
		var all []string
		value(object).at("spec", "template", "spec", "containers").elements(func(c value) { all = append(all, c.at(member).text()) })
		return appendString(dst, strings.Join(all, ","))
	}
}

// externalIP is the addresses given by hand, and for a load balancer those it has, or that it has none yet.
func externalIP(dst, object []byte, _ time.Time) []byte {
	spec := value(object).at("spec")
	var all []string
	kind := spec.at("type").text()
	switch kind {
	case "ExternalName":
		return appendString(dst, spec.at("externalName").text())
	case "LoadBalancer":
		value(object).at("status", "loadBalancer", "ingress").elements(func(in value) {
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
		return appendString(dst, "<pending>")
	}
	return appendString(dst, orNone(strings.Join(all, ",")))
}

// ports is port/PROTOCOL or port:nodePort/PROTOCOL, for each.
func ports(dst, object []byte, _ time.Time) []byte {
	var all []string
	value(object).at("spec", "ports").elements(func(p value) {
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
	return appendString(dst, orNone(strings.Join(all, ",")))
}

// pairs writes an object of strings as a selector: a=b,c=d, sorted.
func pairs(labels value) string {
	var all []string
	labels.members(func(name string, member value) { all = append(all, name+"="+member.text()) })
	slices.Sort(all)
	return strings.Join(all, ",")
}

// deploymentSelector writes a metav1.LabelSelector as kubectl's -l takes it.
func deploymentSelector(dst, object []byte, _ time.Time) []byte {
	selector := value(object).at("spec", "selector")
	all := pairs(selector.at("matchLabels"))
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
		if all != "" {
			all += ","
		}
		all += s
	})
	return appendString(dst, orNone(all))
}
