package kubernetes

import (
	"time"

	"github.com/listwatch/listwatch"
)

// A minimalConfigMap has only the members that the configmaps of a benchmark have.
type minimalConfigMap struct {
	listwatch.Metadata `json:"metadata"`
	Data               map[string]string `json:"data"`
}

// A minimalPod has only the members that the pods of a benchmark have.
type minimalPod struct {
	listwatch.Metadata `json:"metadata"`
	Spec               minimalPodSpec   `json:"spec"`
	Status             minimalPodStatus `json:"status"`
}

type minimalPodSpec struct {
	NodeName           string             `json:"nodeName"`
	ServiceAccountName string             `json:"serviceAccountName"`
	RestartPolicy      string             `json:"restartPolicy"`
	Containers         []minimalContainer `json:"containers"`
}

type minimalContainer struct {
	Name            string        `json:"name"`
	Image           string        `json:"image"`
	ImagePullPolicy string        `json:"imagePullPolicy"`
	Ports           []minimalPort `json:"ports"`
	Env             []minimalEnv  `json:"env"`
	Resources       struct {
		Requests struct {
			CPU    string `json:"cpu"`
			Memory string `json:"memory"`
		} `json:"requests"`
	} `json:"resources"`
}

type minimalPort struct {
	Name          string `json:"name"`
	ContainerPort int32  `json:"containerPort"`
	Protocol      string `json:"protocol"`
}

type minimalEnv struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type minimalPodStatus struct {
	Phase      string             `json:"phase"`
	PodIP      string             `json:"podIP"`
	HostIP     string             `json:"hostIP"`
	StartTime  time.Time          `json:"startTime"`
	Conditions []minimalCondition `json:"conditions"`
}

type minimalCondition struct {
	Type               string    `json:"type"`
	Status             string    `json:"status"`
	LastTransitionTime time.Time `json:"lastTransitionTime"`
}
