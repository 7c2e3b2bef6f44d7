package kubeapi

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/listwatch/listwatch/internal/rawjson"
)

func podColumns() []Column {
	return []Column{
		{Name: "Ready", Description: "How many containers are ready, and how many there are.", cell: podReady},
		{Name: "Status", Description: "What the pod does, or what keeps it from it.", cell: podStatus},
		{Name: "Restarts", Description: "How often containers were started again, and when last.", cell: podRestarts},
		ageColumn,
		{Name: "IP", Priority: 1, Description: "The address of the pod.", cell: textOrNone("status", "podIP")},
		{Name: "Node", Priority: 1, Description: "The node that the pod runs on.", cell: textOrNone("spec", "nodeName")},
		{Name: "Nominated Node", Priority: 1, Description: "The node that is being cleared for the pod.", cell: textOrNone("status", "nominatedNodeName")},
		{Name: "Readiness Gates", Priority: 1, Description: "How many conditions beside its own it waits for.", cell: podGates},
	}
}

func podReady(dst []byte, r *row) []byte {
	p := podOf(r)
	return fmt.Appendf(dst, `"%d/%d"`, p.ready, p.total)
}

func podStatus(dst []byte, r *row) []byte {
	return rawjson.AppendString(dst, podOf(r).reason)
}

func podRestarts(dst []byte, r *row) []byte {
	p := podOf(r)
	s := strconv.FormatInt(p.restarts, 10)
	if p.restarts > 0 && !p.restarted.IsZero() {
		s += " (" + age(r.now.Sub(p.restarted)) + " ago)"
	}
	return rawjson.AppendString(dst, s)
}

func podGates(dst []byte, r *row) []byte {
	gates := r.at("spec", "readinessGates")
	if len(gates) == 0 {
		return rawjson.AppendString(dst, orNone(""))
	}
	// A pass for each gate would cost minutes where a hostile pod has many of both.
	isTrue := make(map[string]bool)
	r.at("status", "conditions").elements(func(c value) { isTrue[c.at("type").text()] = c.at("status").text() == "True" })
	total, met := 0, 0
	gates.elements(func(gate value) {
		total++
		if isTrue[gate.at("conditionType").text()] {
			met++
		}
	})
	if total == 0 {
		return rawjson.AppendString(dst, orNone(""))
	}
	return fmt.Appendf(dst, `"%d/%d"`, met, total)
}

// A podSummary is what kubectl says of a pod in one line.
type podSummary struct {
	reason       string
	ready, total int
	restarts     int64
	restarted    time.Time // when last; zero: not known
}

// podOf returns the summary of the pod in r, which several cells show.
func podOf(r *row) *podSummary {
	if r.pod == nil {
		p := readPod(r)
		r.pod = &p
	}
	return r.pod
}

// readPod sums a pod up: the first of its init containers that isn't done says how it stands; behind them, the first of its containers
// that has a reason not to run. Init containers that go on running (sidecars) count among the others.
func readPod(r *row) podSummary {
	conditions := r.at("status", "conditions")
	// A pod that says nothing of itself waits, as what kube-apiserver makes of it says.
	p := podSummary{reason: cmp.Or(r.at("status", "phase").text(), "Pending"), total: r.at("spec", "containers").size()}
	phase := p.reason
	if reason := r.at("status", "reason").text(); reason != "" {
		p.reason = reason
	}
	if condition(conditions, "PodScheduled").at("reason").text() == "SchedulingGated" {
		p.reason = "SchedulingGated"
	}
	initialized := condition(conditions, "Initialized").at("status").text() == "True"
	if !p.initialize(r.at("spec", "initContainers"), r.at("status", "initContainerStatuses"), initialized) || initialized {
		p.run(r.at("status", "containerStatuses"), conditions)
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

// initialize looks at the init containers and returns whether one isn't done. initialized is what the pod's condition says.
func (p *podSummary) initialize(containers, statuses value, initialized bool) (busy bool) {
	inits := 0
	sidecars := make(map[string]bool)
	containers.elements(func(c value) {
		inits++
		if c.at("restartPolicy").text() == "Always" {
			sidecars[c.at("name").text()] = true
			p.total++
		}
	})
	var all podSummary // the restarts of all, which count until they are done
	i := 0
	statuses.elements(func(c value) {
		all.count(c)
		sidecar := sidecars[c.at("name").text()]
		if sidecar {
			p.count(c)
		}
		ended := c.at("state", "terminated")
		switch {
		case busy:
		case string(ended.at("exitCode")) == "0":
		case sidecar && string(c.at("started")) == "true":
			if string(c.at("ready")) == "true" {
				p.ready++
			}
		case len(ended) > 0:
			busy, p.reason = true, "Init:"+endReason(ended)
		default:
			busy, p.reason = true, fmt.Sprintf("Init:%d/%d", i, inits)
			if waits := c.at("state", "waiting", "reason").text(); waits != "" && waits != "PodInitializing" {
				p.reason = "Init:" + waits
			}
		}
		i++
	})
	if busy && !initialized {
		p.restarts, p.restarted = all.restarts, all.restarted
	}
	return busy
}

// run looks at the containers.
func (p *podSummary) run(statuses, conditions value) {
	running := false
	reason := ""
	statuses.elements(func(c value) {
		p.count(c)
		why := c.at("state", "waiting", "reason").text()
		if ended := c.at("state", "terminated"); why == "" && len(ended) > 0 {
			why = endReason(ended)
		}
		if reason == "" {
			reason = why
		}
		if why == "" && string(c.at("ready")) == "true" && len(c.at("state", "running")) > 0 {
			running = true
			p.ready++
		}
	})
	if reason != "" {
		p.reason = reason
	}
	if p.reason == "Completed" && running {
		p.reason = "NotReady"
		if condition(conditions, "Ready").at("status").text() == "True" {
			p.reason = "Running"
		}
	}
}

// count adds the restarts of a container.
func (p *podSummary) count(c value) {
	p.restarts += c.at("restartCount").number()
	if t := c.at("lastState", "terminated", "finishedAt").time(); t.After(p.restarted) {
		p.restarted = t
	}
}

// endReason says why a container ended.
func endReason(terminated value) string {
	if reason := terminated.at("reason").text(); reason != "" {
		return reason
	}
	if signal := terminated.at("signal").number(); signal != 0 {
		return "Signal:" + strconv.FormatInt(signal, 10)
	}
	return "ExitCode:" + strconv.FormatInt(terminated.at("exitCode").number(), 10)
}

// condition returns the one of a type.
func condition(conditions value, kind string) (found value) {
	conditions.elements(func(c value) {
		if c.at("type").text() == kind {
			found = c
		}
	})
	return found
}
