package workload

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	var found struct{ Status JobSetStatus }
	read(t, cp, jobSets, "jobsets", s.Namespace, s.Name, &found)
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

// TrainingJob describes a PyTorchJob or a TFJob; the control plane needs Options.Owners.
type TrainingJob struct {
	Kind            string // PyTorchJob, TFJob
	Namespace, Name string
	Replicas        map[string]int32 // by role, as Master, Worker, PS: each Pod has one container, of the name that the kind asks for
	RestartPolicy   string           // of all roles
	Resource        string           // a device-plugin resource, one per Pod
	Dynamic         bool             // enableDynamicWorker, of a TFJob
}

const trainingJobs = "/apis/kubeflow.org/v1"

func (j TrainingJob) plural() string { return strings.ToLower(j.Kind) + "s" }

// CreateOnly makes the job and waits for nothing.
func (j TrainingJob) CreateOnly(t *testing.T, cp *realcluster.ControlPlane) {
	t.Helper()
	pod := OneContainer(j.Resource, "", "")
	framework := map[string]string{"PyTorchJob": "pytorch", "TFJob": "tensorflow"}[j.Kind]
	pod.Containers[0].Name = framework
	roles := map[string]any{}
	for role, count := range j.Replicas {
		roles[role] = map[string]any{"replicas": count, "restartPolicy": j.RestartPolicy, "template": template(j.Name, pod)}
	}
	spec := map[string]any{map[string]string{"PyTorchJob": "pytorchReplicaSpecs", "TFJob": "tfReplicaSpecs"}[j.Kind]: roles}
	if j.Dynamic {
		spec["enableDynamicWorker"] = true
	}
	post(t, cp, trainingJobs, j.Kind, j.plural(), j.Namespace, j.Name, spec)
}

// AwaitRunning waits until all its Pods run.
func (j TrainingJob) AwaitRunning(t *testing.T, cp *realcluster.ControlPlane) []corev1.Pod {
	t.Helper()
	count := 0
	for _, replicas := range j.Replicas {
		count += int(replicas)
	}
	return AwaitRunning(t, cp, j.Namespace, j.Name, count)
}

// TrainingJobStatus is what the operator says of a job.
type TrainingJobStatus struct {
	True   map[string]string // the types of its conditions that are true, with their messages
	Failed map[string]int    // Pods by role
}

// Status is its status now.
func (j TrainingJob) Status(t *testing.T, cp *realcluster.ControlPlane) TrainingJobStatus {
	t.Helper()
	var found struct {
		Status struct {
			Conditions      []metav1.Condition
			ReplicaStatuses map[string]struct{ Failed int }
		}
	}
	read(t, cp, trainingJobs, j.plural(), j.Namespace, j.Name, &found)
	now := TrainingJobStatus{map[string]string{}, map[string]int{}}
	for _, condition := range found.Status.Conditions {
		if condition.Status == metav1.ConditionTrue {
			now.True[condition.Type] = condition.Message
		}
	}
	for role, pods := range found.Status.ReplicaStatuses {
		now.Failed[role] = pods.Failed
	}
	return now
}

// RayCluster describes one of a head and a single group of workers, each with one container; the control plane needs Options.Owners.
type RayCluster struct {
	Namespace, Name string
	Workers         int32
	Resource        string // a device-plugin resource, one per Pod, the head's too
}

const rayClusters = "/apis/ray.io/v1"

// CreateOnly makes the RayCluster and waits for nothing.
func (c RayCluster) CreateOnly(t *testing.T, cp *realcluster.ControlPlane) {
	t.Helper()
	workers := map[string]any{"groupName": "workers", "replicas": c.Workers, "minReplicas": c.Workers, "maxReplicas": c.Workers,
		"rayStartParams": map[string]any{}, "template": template(c.Name, OneContainer(c.Resource, "", ""))}
	post(t, cp, rayClusters, "RayCluster", "rayclusters", c.Namespace, c.Name, map[string]any{"rayVersion": "2.52.0",
		"headGroupSpec":    map[string]any{"rayStartParams": map[string]any{}, "template": template(c.Name, OneContainer(c.Resource, "", ""))},
		"workerGroupSpecs": []any{workers}})
}

// AwaitRunning waits until its head and its workers run.
func (c RayCluster) AwaitRunning(t *testing.T, cp *realcluster.ControlPlane) []corev1.Pod {
	t.Helper()
	return AwaitRunning(t, cp, c.Namespace, c.Name, int(c.Workers)+1)
}

// RayClusterStatus is what KubeRay says of a RayCluster.
type RayClusterStatus struct {
	State               string
	ReadyWorkerReplicas int32
}

// Status is its status now.
func (c RayCluster) Status(t *testing.T, cp *realcluster.ControlPlane) RayClusterStatus {
	t.Helper()
	var found struct{ Status RayClusterStatus }
	read(t, cp, rayClusters, "rayclusters", c.Namespace, c.Name, &found)
	return found.Status
}

// read gives an object of a kind whose Go types belong to another module, or all of a namespace.
func read(t *testing.T, cp *realcluster.ControlPlane, path, resource, namespace, name string, into any) {
	t.Helper()
	text, err := cp.Client.Discovery().RESTClient().Get().AbsPath(path, "namespaces", namespace, resource, name).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
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
