package informer

import (
	"time"

	"github.com/listwatch/listwatch"
)

// An ownConfigMap has the members of the configmaps of a benchmark, and no others.
type ownConfigMap struct {
	listwatch.Metadata `json:"metadata"`
	Data               map[string]string `json:"data"`
}

// An ownPod has the members of the pods of a benchmark, and no others.
type ownPod struct {
	listwatch.Metadata `json:"metadata"`
	Spec               ownPodSpec   `json:"spec"`
	Status             ownPodStatus `json:"status"`
}

type ownPodSpec struct {
	NodeName           string         `json:"nodeName"`
	ServiceAccountName string         `json:"serviceAccountName"`
	RestartPolicy      string         `json:"restartPolicy"`
	Containers         []ownContainer `json:"containers"`
}

type ownContainer struct {
	Name            string    `json:"name"`
	Image           string    `json:"image"`
	ImagePullPolicy string    `json:"imagePullPolicy"`
	Ports           []ownPort `json:"ports"`
	Env             []ownEnv  `json:"env"`
	Resources       struct {
		Requests struct {
			CPU    string `json:"cpu"`
			Memory string `json:"memory"`
		} `json:"requests"`
	} `json:"resources"`
}

type ownPort struct {
	Name          string `json:"name"`
	ContainerPort int32  `json:"containerPort"`
	Protocol      string `json:"protocol"`
}

type ownEnv struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type ownPodStatus struct {
	Phase      string         `json:"phase"`
	PodIP      string         `json:"podIP"`
	HostIP     string         `json:"hostIP"`
	StartTime  time.Time      `json:"startTime"`
	Conditions []ownCondition `json:"conditions"`
}

type ownCondition struct {
	Type               string    `json:"type"`
	Status             string    `json:"status"`
	LastTransitionTime time.Time `json:"lastTransitionTime"`
}
