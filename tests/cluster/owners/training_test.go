package owners

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// training is a PyTorchJob or a TFJob of which one pod is evicted. Several of them share a node and a controller: none of them knows of the others.
type training struct {
	workload.TrainingJob
	sick  string // the role of that pod
	fails bool   // the job does

	pods []corev1.Pod
}

func (j training) evicted(t *testing.T) corev1.Pod {
	t.Helper()
	return member(t, j.pods, named(fmt.Sprintf("%s-%s-0", j.Name, strings.ToLower(j.sick))))
}

// lose evicts a pod of each job, and says what becomes of the job: a job that goes on has the pod again under its name, and one that fails is without it.
func (p place) lose(t *testing.T, jobs []training) {
	t.Helper()
	for i, job := range jobs {
		jobs[i].Namespace, jobs[i].Resource = p.namespace, p.gpu
		jobs[i].Name = strings.ToLower(strings.Join([]string{job.Kind, job.RestartPolicy, job.sick}, "-"))
		if job.Dynamic {
			jobs[i].Name += "-dynamic"
		}
		jobs[i].CreateOnly(t, cluster)
	}
	for i := range jobs {
		jobs[i].pods = jobs[i].AwaitRunning(t, cluster)
	}
	controller := p.start(t, "")
	for _, job := range jobs {
		p.breakUnder(t, job.evicted(t))
	}
	for _, job := range jobs {
		t.Run(job.Name, func(t *testing.T) {
			sick := job.evicted(t)
			story.AwaitGone(t, cluster, sick)
			story.ExpectEvictedOnce(t, controller, sick)
			if job.fails {
				job.expectFailed(t, sick)
				return
			}
			awaitMembers(t, job.pods, len(job.pods)-1)
			member(t, workload.Pods(t, cluster, p.namespace, job.Name), named(sick.Name))
			if now := job.Conditions(t, cluster); now["Failed"] != "" {
				t.Errorf("the job is %v", now)
			}
		})
	}
	if evicted := controller.EvictedIn(t, p.namespace); evicted != len(jobs) {
		t.Errorf("%d pods were evicted, not %d", evicted, len(jobs))
	}
}

func (j training) expectFailed(t *testing.T, sick corev1.Pod) {
	t.Helper()
	realcluster.Eventually(t, time.Minute, "the job is Failed", func() error {
		now := j.Conditions(t, cluster)
		if now["Failed"] == "" {
			return fmt.Errorf("it is %v", now)
		}
		return nil
	})
	if slices.ContainsFunc(workload.Pods(t, cluster, j.Namespace, j.Name), named(sick.Name)) {
		t.Errorf("%s was made anew", sick.Name)
	}
}

func TestAnEvictedPodOfAPyTorchJobIsMadeAnewUnlessItsRestartPolicySaysOtherwise(t *testing.T) {
	for code, restartPolicies := range map[int32]map[string]bool{
		143: {"OnFailure": false, "Always": false, "ExitCode": false, "Never": true},
		1:   {"OnFailure": false, "ExitCode": true},
	} {
		t.Run(fmt.Sprint("ending with ", code), func(t *testing.T) {
			p := newPlaceWhere(t, 32, code)
			var jobs []training
			for restarts, fails := range restartPolicies {
				for _, role := range []string{"Master", "Worker"} {
					jobs = append(jobs, training{sick: role, fails: fails, TrainingJob: workload.TrainingJob{Kind: "PyTorchJob", RestartPolicy: restarts,
						Replicas: map[string]int32{"Master": 1, "Worker": 2}, RunPolicy: map[string]any{"backoffLimit": 0}}})
				}
			}
			p.lose(t, jobs)
		})
	}
}

// A running pod that is being deleted is a failed one to the operator, whatever the restartPolicy, and only the workers of a dynamic TFJob may fail.
func TestAnEvictedPodEndsATFJobUnlessItIsAWorkerAndWorkersAreDynamic(t *testing.T) {
	p := newPlaceWhere(t, 40, 143)
	var jobs []training
	for _, dynamic := range []bool{false, true} {
		for _, restarts := range []string{"OnFailure", "Always", "ExitCode", "Never"} {
			jobs = append(jobs, training{sick: "Worker", fails: !dynamic, TrainingJob: workload.TrainingJob{Kind: "TFJob", RestartPolicy: restarts, Dynamic: dynamic,
				Replicas: map[string]int32{"PS": 1, "Worker": 2}}})
		}
	}
	jobs = append(jobs, training{sick: "PS", fails: true, TrainingJob: workload.TrainingJob{Kind: "TFJob", RestartPolicy: "OnFailure", Dynamic: true,
		Replicas: map[string]int32{"PS": 1, "Worker": 2}}})
	p.lose(t, jobs)
}
