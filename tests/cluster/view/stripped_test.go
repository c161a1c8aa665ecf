package view

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionreviewv1 "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

const noticeAnnotation = "device-health.io/notice"

// strip takes our condition, our notice or both out of what the controller writes to a Pod's status. The API server answers 200 all the same.
func strip(t *testing.T, namespace string, condition, notice bool) (callOff func()) {
	t.Helper()
	update := admissionv1.RuleWithOperations{Operations: []admissionv1.OperationType{admissionv1.Update},
		Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/status"}}}
	ours := admissionv1.MatchCondition{Name: "ours", Expression: fmt.Sprintf("request.userInfo.username == %q", dhc.User(dhc.Account))}
	return mutating(t, namespace, ours, update, func(request *admissionreviewv1.AdmissionRequest) []byte {
		var pod corev1.Pod
		if err := json.Unmarshal(request.Object.Raw, &pod); err != nil {
			return nil
		}
		patch := []map[string]any{}
		for i, found := range pod.Status.Conditions {
			if condition && found.Type == story.Condition {
				patch = append(patch, map[string]any{"op": "remove", "path": fmt.Sprint("/status/conditions/", i)})
			}
		}
		if _, told := pod.Annotations[noticeAnnotation]; told && notice {
			patch = append(patch, map[string]any{"op": "remove", "path": "/metadata/annotations/" + strings.ReplaceAll(noticeAnnotation, "/", "~1")})
		}
		text, _ := json.Marshal(patch)
		return text
	})
}

// statusWrites are the times at which the controller wrote to the Pod's status.
func statusWrites(t *testing.T, controller story.Run, pod corev1.Pod) (at []time.Time) {
	t.Helper()
	for _, e := range controller.Writes(t) {
		if e.ObjectRef.Subresource == "status" && e.ObjectRef.Namespace == pod.Namespace && e.ObjectRef.Name == pod.Name {
			if e.Response.Code != http.StatusOK {
				t.Errorf("the API server answered %d to the condition", e.Response.Code)
			}
			at = append(at, e.Received)
		}
	}
	return at
}

// What the controller writes to a Pod never shows. Neither holds its eviction for longer than the wait for it, and it is not written without end.
func TestAWebhookThatTakesOurConditionOrNoticeAwayDelaysAnEvictionByABoundedTimeAndCostsFewWrites(t *testing.T) {
	const (
		deadline = 15 * time.Second // of the notice
		patience = 30 * time.Second // for the condition to be seen
	)
	for name, what := range map[string]struct {
		condition, notice bool
		atLeast           time.Duration // from the first write to the eviction, which the API server receives by its clock
	}{
		"the condition and the notice": {true, true, patience - time.Second},
		"the notice alone":             {false, true, deadline - 2*time.Second}, // its times are whole seconds
	} {
		t.Run(name, func(t *testing.T) {
			const gpu = "example.com/gpu"
			namespace := cluster.Namespace(t)
			node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: map[string][]string{gpu: {"gpu-0", "gpu-1", "gpu-2"}}, Termination: 2 * time.Second})
			sick := workload.Deployment{Namespace: namespace, Name: "infer", Replicas: 1, Resource: gpu}.Create(t, cluster)[0]
			strip(t, namespace, what.condition, what.notice)
			controller := story.Start(t, cluster, dhc.Settings{Policy: dhc.Policy{Namespace: namespace, Notice: "{deadline: " + deadline.String() + "}"}.Text()})
			seen := story.WatchPod(t, cluster, sick)
			node.Break(t, gpu, story.DeviceOf(t, cluster, sick))
			if what.condition {
				controller.AwaitVerdict(t, sick.Name, "WaitingForCondition")
			}
			story.AwaitReplacement(t, cluster, sick, 1)
			story.ExpectEvictedOnce(t, controller, sick)
			evicted := controller.EvictedAt(t, sick)
			for _, version := range seen.Versions() {
				if _, told := version.Pod.Annotations[noticeAnnotation]; told {
					t.Errorf("the Pod had the notice %s", version.Pod.Annotations[noticeAnnotation])
				}
				if shown := workload.Condition(version.Pod, story.Condition); shown != nil && what.condition {
					t.Errorf("the Pod had the condition %+v", shown)
				}
			}
			writes := statusWrites(t, controller, sick)
			if len(writes) == 0 || len(writes) > 7 { // six a minute
				t.Fatalf("it was written %d times: %v", len(writes), writes)
			}
			t.Logf("evicted %s after the first of %d writes", evicted.Sub(writes[0]), len(writes))
			if waited := evicted.Sub(writes[0]); waited < what.atLeast || waited > what.atLeast+15*time.Second {
				t.Errorf("it was evicted %s after the first write, not %s", waited, what.atLeast)
			}
		})
	}
}

// Where nothing ends the pod the condition is asked for again ever more rarely, and who looks at the pod learns why it is not there.
func TestAConditionThatAWebhookTakesAwayIsSaidAndAskedForEverMoreRarely(t *testing.T) {
	const gpu = "example.com/gpu"
	namespace := cluster.Namespace(t)
	node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: map[string][]string{gpu: {"gpu-0", "gpu-1"}}})
	sick := workload.Deployment{Namespace: namespace, Name: "infer", Replicas: 1, Resource: gpu}.Create(t, cluster)[0]
	callOff := strip(t, namespace, true, false)
	controller := story.Start(t, cluster, dhc.Settings{Policy: dhc.Policy{Namespace: namespace, NoEvict: true}.Text()})
	node.Break(t, gpu, story.DeviceOf(t, cluster, sick))
	realcluster.Eventually(t, 2*time.Minute, "the pod's condition is said to be taken away", func() error {
		for _, verdict := range controller.Verdicts(t) {
			if verdict.Subject.Name == sick.Name && verdict.Reason == "ConditionContested" && strings.Contains(verdict.Message, "an admission webhook or another client takes it away") {
				return nil
			}
		}
		return fmt.Errorf("%+v", controller.Verdicts(t))
	})
	before := len(statusWrites(t, controller, sick))
	time.Sleep(31 * time.Second) // the wait until the next is a minute by now; it was half of one, or as long as until the kubelet wrote something
	if writes := len(statusWrites(t, controller, sick)); before > 7 || writes > before {
		t.Errorf("it was written %d times until that was said, and %d times in the half minute after", before, writes-before)
	}
	callOff()
	story.AwaitCondition(t, cluster, sick, corev1.ConditionTrue)
}
