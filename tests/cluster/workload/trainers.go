package workload

import (
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"device-health.io/controller/tests/cluster/realcluster"
)

// JobSet describes one of a single Job, whose Pods have one container named main each; the control plane needs Options.Owners.
type JobSet struct {
	Namespace, Name  string
	Parallelism      int32
	BackoffLimit     int32          // of its Job
	Resource         string         // a device-plugin resource, one per Pod
	FailurePolicy    map[string]any // of the JobSet; nil: the first Job that fails ends it
	PodFailurePolicy map[string]any // of its Job
}

const jobSets = "/apis/jobset.x-k8s.io/v1alpha2"

// Create makes the JobSet and waits until its Pods run.
func (s JobSet) Create(t *testing.T, cp *realcluster.ControlPlane) []corev1.Pod {
	t.Helper()
	pod := OneContainer(s.Resource, "", "")
	pod.RestartPolicy = corev1.RestartPolicyNever
	job := map[string]any{"parallelism": s.Parallelism, "completions": s.Parallelism, "backoffLimit": s.BackoffLimit, "template": template(s.Name, pod)}
	if s.PodFailurePolicy != nil {
		job["podFailurePolicy"] = s.PodFailurePolicy
	}
	spec := map[string]any{"replicatedJobs": []any{map[string]any{"name": "workers", "replicas": 1, "template": map[string]any{"spec": job}}}}
	if s.FailurePolicy != nil {
		spec["failurePolicy"] = s.FailurePolicy
	}
	post(t, cp, jobSets, "JobSet", "jobsets", s.Namespace, s.Name, spec)
	return AwaitRunning(t, cp, s.Namespace, s.Name, int(s.Parallelism))
}

// Job is the name of its only Job.
func (s JobSet) Job() string { return s.Name + "-workers-0" }

// JobSetStatus is what the JobSet's controller has counted.
type JobSetStatus struct {
	Restarts                int
	RestartsCountTowardsMax int
	TerminalState           string
}

// Status is its status now.
func (s JobSet) Status(t *testing.T, cp *realcluster.ControlPlane) JobSetStatus {
	t.Helper()
	text, err := cp.Client.Discovery().RESTClient().Get().AbsPath(jobSets, "namespaces", s.Namespace, "jobsets", s.Name).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var found struct{ Status JobSetStatus }
	if err := json.Unmarshal(text, &found); err != nil {
		t.Fatal(err)
	}
	return found.Status
}

// LeaderWorkerSet describes one of a single group: a leader and its workers, each with one container named main; the control plane needs
// Options.Owners.
type LeaderWorkerSet struct {
	Namespace, Name string
	Size            int32  // of the group, with the leader
	Resource        string // a device-plugin resource, one per Pod
	RestartPolicy   string // RecreateGroupOnPodRestart (the default of the kind), None
}

// Create makes the LeaderWorkerSet and waits until the Pods of its group run.
func (s LeaderWorkerSet) Create(t *testing.T, cp *realcluster.ControlPlane) []corev1.Pod {
	t.Helper()
	group := map[string]any{"size": s.Size, "workerTemplate": template(s.Name, OneContainer(s.Resource, "", ""))}
	if s.RestartPolicy != "" {
		group["restartPolicy"] = s.RestartPolicy
	}
	post(t, cp, "/apis/leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "leaderworkersets", s.Namespace, s.Name, map[string]any{"replicas": 1, "leaderWorkerTemplate": group})
	return AwaitRunning(t, cp, s.Namespace, s.Name, int(s.Size))
}

// Leader is the name of the leader of its only group; the workers' are this and a number.
func (s LeaderWorkerSet) Leader() string { return s.Name + "-0" }

func template(name string, pod corev1.PodSpec) map[string]any {
	return map[string]any{"metadata": map[string]any{"labels": Labels(name)}, "spec": pod}
}

// post makes an object of a kind whose Go types belong to another module.
func post(t *testing.T, cp *realcluster.ControlPlane, path, kind, resource, namespace, name string, spec map[string]any) {
	t.Helper()
	object := map[string]any{"apiVersion": path[len("/apis/"):], "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec}
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if err := cp.Client.Discovery().RESTClient().Post().AbsPath(path, "namespaces", namespace, resource).SetHeader("Content-Type", "application/json").Body(text).Do(t.Context()).Error(); err != nil {
		t.Fatal(fmt.Errorf("making %s %s: %w", kind, name, err))
	}
}
