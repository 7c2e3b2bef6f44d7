package table

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi/internal/jsonvalue"
)

// PodColumns returns kubectl's columns of core/v1 Pod.
func PodColumns() []Column {
	return []Column{
		{Name: "Ready", Description: "The number of ready containers, and of all containers.", cell: podReady},
		{Name: "Status", Description: "The state of the pod, or the reason why it does not run.", cell: podStatus},
		{
			Name: "Restarts", Description: "The number of restarts of its containers, and the time since the last one.",
			cell: podRestarts,
		},
		ageColumn,
		{Name: "IP", Priority: 1, Description: "The address of the pod.", cell: stringOrNone("status", "podIP")},
		{
			Name: "Node", Priority: 1, Description: "The node that the pod runs on.",
			cell: stringOrNone("spec", "nodeName"),
		},
		{
			Name: "Nominated Node", Priority: 1,
			Description: "The node on which other pods are being evicted to make room for the pod.",
			cell:        stringOrNone("status", "nominatedNodeName"),
		},
		{
			Name: "Readiness Gates", Priority: 1,
			Description: "The number of its additional readiness conditions that are true, and of all.", cell: podGates,
		},
	}
}

func podReady(dst []byte, r *row) []byte {
	p := summaryOf(r)
	return fmt.Appendf(dst, `"%d/%d"`, p.ready, p.total)
}

func podStatus(dst []byte, r *row) []byte {
	return rawjson.AppendString(dst, summaryOf(r).reason)
}

func podRestarts(dst []byte, r *row) []byte {
	p := summaryOf(r)
	s := strconv.FormatInt(p.restarts, 10)
	if p.restarts > 0 && !p.lastRestart.IsZero() {
		s += " (" + formatAge(r.now.Sub(p.lastRestart)) + " ago)"
	}
	return rawjson.AppendString(dst, s)
}

func podGates(dst []byte, r *row) []byte {
	gates := r.at("spec", "readinessGates")
	if len(gates) == 0 {
		return rawjson.AppendString(dst, orNone(""))
	}
	// The map avoids comparing each readiness gate with each condition, which would take minutes
	// for a hostile pod with many of both.
	isTrue := make(map[string]bool)
	r.at("status", "conditions").Elements(func(c jsonvalue.Value) {
		isTrue[c.At("type").Text()] = c.At("status").Text() == "True"
	})
	total, met := 0, 0
	gates.Elements(func(gate jsonvalue.Value) {
		total++
		if isTrue[gate.At("conditionType").Text()] {
			met++
		}
	})
	if total == 0 {
		return rawjson.AppendString(dst, orNone(""))
	}
	return fmt.Appendf(dst, `"%d/%d"`, met, total)
}

// summaryOf returns the summary of the pod in r. It computes the summary only once, because
// several cells use it.
func summaryOf(r *row) *podSummary {
	if r.pod == nil {
		p := summarize(r)
		r.pod = &p
	}
	return r.pod
}

// summarize computes the summary of a pod. The first init container that has not finished
// determines the status. If all have finished, the first container that has a reason for
// not running determines it. Init containers that keep running (sidecars) count as regular
// containers.
func summarize(r *row) podSummary {
	conditions := r.at("status", "conditions")
	// kube-apiserver sets the phase of a new pod to Pending.
	p := podSummary{reason: cmp.Or(r.at("status", "phase").Text(), "Pending"), total: r.at("spec", "containers").Len()}
	phase := p.reason
	if reason := r.at("status", "reason").Text(); reason != "" {
		p.reason = reason
	}
	if findCondition(conditions, "PodScheduled").At("reason").Text() == "SchedulingGated" {
		p.reason = "SchedulingGated"
	}
	initialized := findCondition(conditions, "Initialized").At("status").Text() == "True"
	if !p.addInitContainers(r.at("spec", "initContainers"), r.at("status", "initContainerStatuses"), initialized) ||
		initialized {
		p.addContainers(r.at("status", "containerStatuses"), conditions)
	}
	if len(r.at("metadata", "deletionTimestamp")) > 0 {
		switch {
		case p.reason == "NodeLost":
			p.reason = "Unknown"
		case phase != "Succeeded" && phase != "Failed":
			p.reason = "Terminating"
		}
	}
	return p
}

// addInitContainers evaluates the init containers and reports whether one of them has not
// finished. initialized is the status of the pod's condition Initialized.
func (p *podSummary) addInitContainers(containers, statuses jsonvalue.Value, initialized bool) (busy bool) {
	inits := 0
	sidecars := make(map[string]bool)
	containers.Elements(func(c jsonvalue.Value) {
		inits++
		if c.At("restartPolicy").Text() == "Always" {
			sidecars[c.At("name").Text()] = true
			p.total++
		}
	})
	var all podSummary // the restarts of all init containers, shown until they have finished
	i := 0
	statuses.Elements(func(c jsonvalue.Value) {
		all.addRestarts(c)
		sidecar := sidecars[c.At("name").Text()]
		if sidecar {
			p.addRestarts(c)
		}
		ended := c.At("state", "terminated")
		switch {
		case busy:
		case string(ended.At("exitCode")) == "0":
		case sidecar && string(c.At("started")) == "true":
			if string(c.At("ready")) == "true" {
				p.ready++
			}
		case len(ended) > 0:
			busy, p.reason = true, "Init:"+terminationReason(ended)
		default:
			busy, p.reason = true, fmt.Sprintf("Init:%d/%d", i, inits)
			if waits := c.At("state", "waiting", "reason").Text(); waits != "" && waits != "PodInitializing" {
				p.reason = "Init:" + waits
			}
		}
		i++
	})
	if busy && !initialized {
		p.restarts, p.lastRestart = all.restarts, all.lastRestart
	}
	return busy
}

// addContainers evaluates the regular containers. It counts the ready ones, and sets the reason.
func (p *podSummary) addContainers(statuses, conditions jsonvalue.Value) {
	running := false
	reason := ""
	statuses.Elements(func(c jsonvalue.Value) {
		p.addRestarts(c)
		why := c.At("state", "waiting", "reason").Text()
		if ended := c.At("state", "terminated"); why == "" && len(ended) > 0 {
			why = terminationReason(ended)
		}
		if reason == "" {
			reason = why
		}
		if why == "" && string(c.At("ready")) == "true" && len(c.At("state", "running")) > 0 {
			running = true
			p.ready++
		}
	})
	if reason != "" {
		p.reason = reason
	}
	if p.reason == "Completed" && running {
		p.reason = "NotReady"
		if findCondition(conditions, "Ready").At("status").Text() == "True" {
			p.reason = "Running"
		}
	}
}

// addRestarts adds the restarts of a container, and updates the time of the last restart.
func (p *podSummary) addRestarts(c jsonvalue.Value) {
	p.restarts += c.At("restartCount").Int()
	if t := c.At("lastState", "terminated", "finishedAt").Time(); t.After(p.lastRestart) {
		p.lastRestart = t
	}
}

// terminationReason returns the reason why a container terminated, or its signal or exit code.
func terminationReason(terminated jsonvalue.Value) string {
	if reason := terminated.At("reason").Text(); reason != "" {
		return reason
	}
	if signal := terminated.At("signal").Int(); signal != 0 {
		return "Signal:" + strconv.FormatInt(signal, 10)
	}
	return "ExitCode:" + strconv.FormatInt(terminated.At("exitCode").Int(), 10)
}

func findCondition(conditions jsonvalue.Value, kind string) (found jsonvalue.Value) {
	conditions.Elements(func(c jsonvalue.Value) {
		if c.At("type").Text() == kind {
			found = c
		}
	})
	return found
}
