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

// When a job fails whose pod is evicted.
const (
	never  = ""
	ending = "while the pod is ending"
	ended  = "when the pod has ended"
)

// training is a PyTorchJob or a TFJob of which one pod is evicted. Several of them share a node and a controller: none of them knows of the others.
type training struct {
	workload.TrainingJob
	sick  string // the role of that pod
	fails string // when the job does

	pods []corev1.Pod
}

func pyTorchJob(restartPolicy, sick, fails string) training {
	return training{sick: sick, fails: fails, TrainingJob: workload.TrainingJob{Kind: "PyTorchJob", RestartPolicy: restartPolicy,
		Replicas: map[string]int32{"Master": 1, "Worker": 1}}}
}

func tfJob(restartPolicy string, dynamic bool, sick, fails string) training {
	return training{sick: sick, fails: fails, TrainingJob: workload.TrainingJob{Kind: "TFJob", RestartPolicy: restartPolicy, Dynamic: dynamic,
		Replicas: map[string]int32{"PS": 1, "Worker": 1}}}
}

func (j training) evicted(t *testing.T) corev1.Pod {
	t.Helper()
	return member(t, j.pods, named(fmt.Sprintf("%s-%s-0", j.Name, strings.ToLower(j.sick))))
}

// lose evicts a pod of each job, and says what becomes of the job: one that goes on has the pod again under its name; one that fails is without it,
// and its other pod runs on.
func (p place) lose(t *testing.T, jobs ...training) {
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
		job.await(t, "its pod counts as failed as soon as it is to end", func(now workload.TrainingJobStatus) bool { return now.Failed[job.sick] == 1 })
		if _, failed := job.Status(t, cluster).True["Failed"]; failed != (job.fails == ending) {
			t.Errorf("%s has failed %s: %t", job.Name, ending, failed)
		}
	}
	p.node.LetPodsEnd()
	for _, job := range jobs {
		if job.fails == ended {
			job.await(t, "it fails "+ended, func(now workload.TrainingJobStatus) bool { return now.True["Failed"] != "" })
		}
	}
	p.node.LetPodsGo()
	for _, job := range jobs {
		sick := job.evicted(t)
		story.AwaitGone(t, cluster, sick)
		story.ExpectEvictedOnce(t, controller, sick)
		if job.fails == never {
			awaitMembers(t, job.pods, len(job.pods)-1)
		}
		alive := workload.Pods(t, cluster, p.namespace, job.Name)
		anew := slices.ContainsFunc(alive, named(sick.Name))
		if job.fails != never && len(alive) != len(job.pods)-1 {
			t.Errorf("of %s %d pods are left", job.Name, len(alive))
		}
		if now := job.Status(t, cluster); anew != (job.fails == never) || anew == (now.True["Failed"] != "") {
			t.Errorf("%s: its pod was made anew: %t, and it is %v", job.Name, anew, now.True)
		}
	}
	if evicted := controller.EvictedIn(t, p.namespace); evicted != len(jobs) {
		t.Errorf("%d pods were evicted, not %d", evicted, len(jobs))
	}
}

func (j training) await(t *testing.T, what string, is func(workload.TrainingJobStatus) bool) {
	t.Helper()
	realcluster.Eventually(t, time.Minute, j.Name+": "+what, func() error {
		if now := j.Status(t, cluster); !is(now) {
			return fmt.Errorf("it is %v", now)
		}
		return nil
	})
}

func TestAnEvictedPodOfAPyTorchJobIsMadeAnewUnlessItsRestartPolicyIsNever(t *testing.T) {
	newPlaceStepByStep(t, 24, 143).lose(t, pyTorchJob("OnFailure", "Worker", never), pyTorchJob("OnFailure", "Master", never), pyTorchJob("Always", "Worker", never),
		pyTorchJob("ExitCode", "Worker", never), pyTorchJob("Never", "Worker", ending))
}

func TestAPyTorchJobThatRestartsByExitCodeFailsWithAnEvictedPodThatEndsWithAnother(t *testing.T) {
	newPlaceStepByStep(t, 8, 1).lose(t, pyTorchJob("ExitCode", "Worker", ended), pyTorchJob("OnFailure", "Worker", never))
}

func TestAnEvictedPodEndsATFJobWhateverItsRestartPolicy(t *testing.T) {
	newPlaceStepByStep(t, 16, 143).lose(t, tfJob("OnFailure", false, "Worker", ending), tfJob("Always", false, "Worker", ending), tfJob("ExitCode", false, "Worker", ending),
		tfJob("Never", false, "Worker", ending))
}

func TestAnEvictedWorkerOfATFJobIsMadeAnewWhereWorkersAreDynamic(t *testing.T) {
	newPlaceStepByStep(t, 24, 143).lose(t, tfJob("OnFailure", true, "Worker", never), tfJob("Always", true, "Worker", never), tfJob("ExitCode", true, "Worker", never),
		tfJob("Never", true, "Worker", never), tfJob("OnFailure", true, "PS", ending))
}
