package view

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionreviewv1 "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// dryRun makes the API server accept the evictions of a workload's Pods with 201 and do nothing, until it is called off: a mutating webhook
// turns each of them into a dry run.
func dryRun(t *testing.T, namespace, name string) (callOff func()) {
	t.Helper()
	return mutating(t, namespace, admissionv1.MatchCondition{Name: "workload", Expression: `request.name.startsWith("` + name + `-")`},
		admissionv1.RuleWithOperations{Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/eviction"}}},
		func(*admissionreviewv1.AdmissionRequest) []byte {
			return []byte(`[{"op":"add","path":"/deleteOptions/dryRun","value":["All"]}]`)
		})
}

// expectAccepted says how many evictions of the Pod were answered with 201 so far, and that none was answered otherwise.
func expectAccepted(t *testing.T, controller story.Run, pod corev1.Pod, times int) error {
	t.Helper()
	if sent := controller.Evictions(t, pod); sent[http.StatusCreated] != times || len(sent) > 1 {
		return fmt.Errorf("evictions by answer: %v", sent)
	}
	return nil
}

func TestAnEvictionThatIsAcceptedAndNeverHappensIsSaidFreesItsSlotAndIsAskedForAgain(t *testing.T) {
	const gpu = "example.com/gpu"
	namespace := cluster.Namespace(t)
	node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: map[string][]string{gpu: {"gpu-0", "gpu-1", "gpu-2", "gpu-3", "gpu-4", "gpu-5"}}})
	vain := workload.Deployment{Namespace: namespace, Name: "vain", Replicas: 1, Resource: gpu}.Create(t, cluster)[0]
	other := workload.Deployment{Namespace: namespace, Name: "other", Replicas: 1, Resource: gpu}.Create(t, cluster)[0]
	callOff := dryRun(t, namespace, "vain")
	one := strings.Replace(dhc.Policy{Namespace: namespace}.Text(), "maxInFlight: 10", "maxInFlight: 1", 1)
	controller := story.Start(t, cluster, dhc.Settings{Policy: one})
	node.Break(t, gpu, story.DeviceOf(t, cluster, vain))
	realcluster.Eventually(t, time.Minute, "the eviction is accepted", func() error { return expectAccepted(t, controller, vain, 1) })
	callOff() // the next one will happen
	node.Break(t, gpu, story.DeviceOf(t, cluster, other))
	controller.AwaitVerdict(t, other.Name, "TooManyInFlight")
	if now, err := cluster.Client.CoreV1().Pods(namespace).Get(t.Context(), vain.Name, metav1.GetOptions{}); err != nil || now.DeletionTimestamp != nil {
		t.Fatalf("the Pod is %+v, %v", now, err)
	}
	// Its grace period, which is a second, and two minutes more.
	realcluster.Eventually(t, 4*time.Minute, "it is said", func() error {
		return controller.Says(`"msg":"verdict"`, `"reason":"NotTerminating"`, `"name":"`+vain.Name+`"`, "has accepted the eviction 1 time(s)")
	})
	story.AwaitEvent(t, cluster, namespace, vain.Name, "NotTerminating")
	story.AwaitReplacement(t, cluster, other, 1)
	story.ExpectEvictedOnce(t, controller, other)
	story.AwaitReplacement(t, cluster, vain, 1)
	if err := expectAccepted(t, controller, vain, 2); err != nil {
		t.Error(err)
	}
}
