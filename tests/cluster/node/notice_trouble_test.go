package node

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/realnode"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// told is what a Pod's notice says.
type told struct {
	Action, Message string
	At, Deadline    time.Time
}

// hearing is a trainer whose device is bad, and which has been told of its eviction.
type hearing struct {
	namespace, folder, device string
	plugin                    *realnode.Plugin
	pod                       corev1.Pod
	controller                story.Run
	said                      told
}

// trainer is a Job of one Pod that trains in this manner and has done some steps.
func trainer(t *testing.T, manner string, change func(*batchv1.Job)) *hearing {
	t.Helper()
	h := &hearing{namespace: cluster.Namespace(t), plugin: node.NewPlugin(t, 2)}
	h.folder = checkpoints(t, h.namespace)
	arguments := []string{"train", "/checkpoints"}
	if manner != "" {
		arguments = append(arguments, manner)
	}
	h.pod = workload.Job{Namespace: h.namespace, Name: jobName(), Parallelism: 1, Resource: h.plugin.Resource, Arguments: arguments,
		Change: func(job *batchv1.Job) {
			volumes(h.folder)(job)
			if change != nil {
				change(job)
			}
		}}.Create(t, cluster)[0]
	h.device = deviceOf(t, h.pod)
	h.awaitSteps(t, 10)
	return h
}

func (h *hearing) awaitSteps(t *testing.T, wanted int) {
	t.Helper()
	realcluster.Eventually(t, 2*time.Minute, fmt.Sprintf("the trainer has done %d steps", wanted), func() error {
		if now := steps(h.folder, "now"); now < wanted {
			return fmt.Errorf("it has done %d", now)
		}
		return nil
	})
}

// isTold breaks the device and waits until the Pod is told of its eviction.
func (h *hearing) isTold(t *testing.T) {
	t.Helper()
	h.plugin.Set(t, h.device, "Unhealthy")
	h.said = h.awaitNotice(t, "of its eviction", func(said told) bool { return said.Action == "evict" })
}

func (h *hearing) awaitNotice(t *testing.T, of string, is func(told) bool) (said told) {
	t.Helper()
	realcluster.Eventually(t, time.Minute, "the Pod is told "+of, func() error {
		now, err := cluster.Client.CoreV1().Pods(h.namespace).Get(t.Context(), h.pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		said = told{}
		text := now.Annotations["device-health.io/notice"]
		if err := json.Unmarshal([]byte(text), &said); err != nil || !is(said) {
			return fmt.Errorf("its notice is %q", text)
		}
		return nil
	})
	return said
}

func (h *hearing) answer(t *testing.T, words string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"device-health.io/notice-response":%q}}}`, words)
	if _, err := cluster.Client.CoreV1().Pods(h.namespace).Patch(t.Context(), h.pod.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// trainsOn waits until another Pod has done the same steps.
func (h *hearing) trainsOn(t *testing.T) {
	t.Helper()
	story.AwaitGone(t, cluster, h.pod)
	realcluster.Eventually(t, 3*time.Minute, "another Pod has done as many steps", func() error {
		_, err := os.Stat(filepath.Join(h.folder, "again"))
		return err
	})
}

// goesOnce expects one eviction between these times, and prints the row of the table.
func (h *hearing) goesOnce(t *testing.T, row string, from, until time.Time) {
	t.Helper()
	story.AwaitGone(t, cluster, h.pod)
	at := h.controller.EvictedAt(t, h.pod)
	if at.Before(from) || at.After(until) {
		t.Errorf("evicted at %s, and not from %s to %s", at, from, until)
	}
	story.ExpectEvictedOnce(t, h.controller, h.pod)
	if granted := h.controller.EvictedIn(t, h.namespace); granted != 1 {
		t.Errorf("%d evictions were granted in the namespace", granted)
	}
	if job := jobNow(t, h.namespace); len(job.Status.Conditions) != 0 {
		t.Errorf("the Job: %+v", job.Status.Conditions)
	}
	reached := steps(h.folder, "reached")
	h.print(t, row, reached, fmt.Sprintf("%.0f s", at.Sub(h.said.At).Seconds()), 1)
}

func (h *hearing) print(t *testing.T, row string, reached int, after string, evictions int) {
	t.Helper()
	t.Logf("TROUBLE | %s | %d | %d | %s | %d |", row, reached, reached-steps(h.folder, "step"), after, evictions)
}

// What goes wrong in the hand-shake, each with its row of the table in docs/evaluation.md.
func TestATrainerThatHangsOrLiesOrAsksForTooMuchIsEvictedOnceAndOneWhoseDeviceRecoversIsNot(t *testing.T) {
	t.Parallel()
	const grace = 15 * time.Second // for a busy machine
	listens := func(t *testing.T, manner, notice string, change func(*batchv1.Job)) *hearing {
		t.Helper()
		t.Parallel()
		h := trainer(t, manner, change)
		h.controller = watchOver(t, h.namespace, policy{Rest: "after: 0s\nevict: {after: 0s, notice: " + notice + "}\njobRetry: {settle: 3s}"})
		h.isTold(t)
		return h
	}
	t.Run("hang", func(t *testing.T) {
		h := listens(t, "hang", "{deadline: 20s}", nil)
		h.trainsOn(t)
		h.goesOnce(t, "it hangs and saves nothing (deadline 20 s)", h.said.Deadline, h.said.Deadline.Add(grace))
	})
	t.Run("done", func(t *testing.T) {
		h := listens(t, "", "{deadline: 5m}", nil)
		answered := time.Now()
		h.answer(t, "done")
		h.trainsOn(t)
		h.goesOnce(t, "\"done\" is answered for it, and it goes on without having saved (deadline 5 min)", answered, answered.Add(grace))
	})
	t.Run("desert", func(t *testing.T) {
		h := listens(t, "desert", "{deadline: 5m}", func(job *batchv1.Job) {
			job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
			*job.Spec.BackoffLimit = 3
		})
		h.trainsOn(t)
		h.goesOnce(t, "it ends itself without having saved, and is restarted in place (deadline 5 min)", h.said.At, h.said.At.Add(2*grace))
	})
	t.Run("beyond", func(t *testing.T) {
		h := listens(t, "wait", "{deadline: 15s, extendUpTo: 15s}", nil)
		h.answer(t, "extend-until: "+h.said.Deadline.Add(time.Hour).UTC().Format(time.RFC3339))
		cut := h.awaitNotice(t, "how much time it gets", func(said told) bool { return said.Deadline.After(h.said.Deadline) })
		if cut.Deadline.Sub(h.said.Deadline) != 15*time.Second || !cut.At.Equal(h.said.At) || !strings.Contains(cut.Message, "is more than evict.notice.extendUpTo") {
			t.Errorf("told %+v, and then %+v", h.said, cut)
		}
		h.trainsOn(t)
		h.goesOnce(t, "it saves, and an hour more is asked for (deadline 15 s, `extendUpTo` 15 s)", cut.Deadline, cut.Deadline.Add(grace))
	})
	t.Run("recovery", func(t *testing.T) {
		h := listens(t, "wait", "{deadline: 20s}", nil)
		realcluster.Eventually(t, time.Minute, "the trainer has saved", func() error {
			if steps(h.folder, "step") == 0 {
				return fmt.Errorf("not yet")
			}
			return nil
		})
		saved := steps(h.folder, "step")
		h.plugin.Set(t, h.device, "Healthy")
		h.awaitNotice(t, "that it stays", func(said told) bool { return said.Action == "none" })
		h.awaitSteps(t, saved+10) // it has read so in its file
		h.controller.Stays(t, h.pod, time.Until(h.said.Deadline)+3*time.Second)
		h.print(t, "it saves, and the device recovers (deadline 20 s)", saved, "-", 0)
	})
}

// Not beside others: each has controllers of its own.
func TestTheDeadlineThatATrainerWasToldStandsAcrossARestartOfTheControllerAndALineThatIsCutOverIt(t *testing.T) {
	alone(t)
	settings := func(h *hearing, deadline string) dhc.Settings {
		return dhc.Settings{Policy: dhc.Policy{Namespace: h.namespace, Notice: "{deadline: " + deadline + "}", JobRetry: "{settle: 3s}"}.Text()}
	}
	t.Run("restart", func(t *testing.T) {
		h, began := trainer(t, "wait", nil), time.Now()
		first := story.Start(t, cluster, settings(h, "20s"))
		h.isTold(t)
		first.Kill()
		h.controller = story.Start(t, cluster, settings(h, "20s")).Since(began)
		awaitVerdict(t, h.controller, time.Minute, h.pod.Name, "WaitingForCheckpoint", "")
		if now := h.awaitNotice(t, "the same", func(told) bool { return true }); !now.At.Equal(h.said.At) || !now.Deadline.Equal(h.said.Deadline) {
			t.Errorf("told %+v, and after the restart %+v", h.said, now)
		}
		h.goesOnce(t, "it saves, and the controller is killed and started again (deadline 20 s)", h.said.Deadline, h.said.Deadline.Add(15*time.Second))
	})
	t.Run("away", func(t *testing.T) {
		h := trainer(t, "wait", nil)
		proxy, err := realcluster.NewProxy(cluster)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(proxy.Close)
		with := settings(h, "15s")
		with.Kubeconfig = dhc.Kubeconfig(t, cluster, dhc.Account, proxy.Server)
		h.controller = story.Start(t, cluster, with)
		h.isTold(t)
		proxy.Cut()
		h.controller.Stays(t, h.pod, time.Until(h.said.Deadline)+5*time.Second)
		mended := time.Now()
		proxy.Mend()
		h.goesOnce(t, "it saves, and the API server is out of reach from the notice until 5 s after the deadline (15 s)", mended, mended.Add(90*time.Second))
	})
}
