package kubeapi

import (
	"fmt"
	"strconv"
	"time"
)

func podColumns() []Column {
	return []Column{
		{Name: "Ready", Description: "How many containers are ready, and how many there are.", Cell: podReady},
		{Name: "Status", Description: "What the pod does, or what keeps it from it.", Cell: podStatus},
		{Name: "Restarts", Description: "How often containers were started again, and when last.", Cell: podRestarts},
		ageColumn,
		{Name: "IP", Priority: 1, Description: "The address of the pod.", Cell: textOrNone("status", "podIP")},
		{Name: "Node", Priority: 1, Description: "The node that the pod runs on.", Cell: textOrNone("spec", "nodeName")},
		{Name: "Nominated Node", Priority: 1, Description: "The node that is being cleared for the pod.", Cell: textOrNone("status", "nominatedNodeName")},
		{Name: "Readiness Gates", Priority: 1, Description: "How many conditions beside its own it waits for.", Cell: podGates},
	}
}

func podReady(dst, object []byte, _ time.Time) []byte {
	p := readPod(object)
	return fmt.Appendf(dst, `"%d/%d"`, p.ready, p.total)
}

func podStatus(dst, object []byte, _ time.Time) []byte {
	return appendString(dst, readPod(object).reason)
}

func podRestarts(dst, object []byte, now time.Time) []byte {
	p := readPod(object)
	s := strconv.FormatInt(p.restarts, 10)
	if p.restarts > 0 && !p.restarted.IsZero() {
		s += " (" + age(now.Sub(p.restarted)) + " ago)"
	}
	return appendString(dst, s)
}

func podGates(dst, object []byte, _ time.Time) []byte {
	conditions := value(object).at("status", "conditions")
	gates, met := 0, 0
	value(object).at("spec", "readinessGates").elements(func(gate value) {
		gates++
		if condition(conditions, gate.at("conditionType").text()).at("status").text() == "True" {
			met++
		}
	})
	if gates == 0 {
		return appendString(dst, orNone(""))
	}
	return fmt.Appendf(dst, `"%d/%d"`, met, gates)
}

// A podSummary is what kubectl says of a pod in one line.
type podSummary struct {
	reason       string
	ready, total int
	restarts     int64
	restarted    time.Time // when last; zero: not known
}

// readPod sums a pod up: the first of its init containers that isn't done says how it stands; behind them, the first of its containers
// that has a reason not to run. Init containers that go on running (sidecars) count among the others.
func readPod(object []byte) podSummary {
	// A search from the root passes over most of the pod, so there is one for each.
	spec, status := value(object).at("spec"), value(object).at("status")
	conditions := status.at("conditions")
	p := podSummary{reason: status.at("phase").text(), total: spec.at("containers").size()}
	phase := p.reason
	if reason := status.at("reason").text(); reason != "" {
		p.reason = reason
	}
	if condition(conditions, "PodScheduled").at("reason").text() == "SchedulingGated" {
		p.reason = "SchedulingGated"
	}
	initialized := condition(conditions, "Initialized").at("status").text() == "True"
	if !p.initialize(spec.at("initContainers"), status.at("initContainerStatuses"), initialized) || initialized {
		p.run(status.at("containerStatuses"), conditions)
	}
	if len(value(object).at("metadata", "deletionTimestamp")) > 0 {
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
