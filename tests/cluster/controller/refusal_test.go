package controller

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// narrow is a policy whose limits five Pods use up.
func narrow(namespace string) string {
	return strings.Replace(dhc.Policy{Namespace: namespace}.Text(), "maxInFlight: 10, perNode: 10", "maxInFlight: 5, perNode: 5", 1)
}

// expectRefused says that the verdict of each Pod holds the server's words, and that none was asked for in a loop.
func expectRefused(t *testing.T, controller story.Run, pods []corev1.Pod, words string) {
	t.Helper()
	for _, pod := range pods {
		if verdict := controller.AwaitVerdict(t, pod.Name, "Refused"); !strings.Contains(verdict.Message, words) {
			t.Errorf("the verdict of %s says %q", pod.Name, verdict.Message)
		}
	}
}

// expectPaced says that no two requests for the Pod were less than 30 s apart.
func expectPaced(t *testing.T, controller story.Run, pod corev1.Pod) {
	t.Helper()
	var last time.Time
	for _, e := range controller.Requests(t, func(e realcluster.AuditEvent) bool {
		return e.Verb == "create" && e.ObjectRef.Subresource == "eviction" && e.ObjectRef.Name == pod.Name
	}) {
		at := e.Received
		if !last.IsZero() && at.Sub(last) < 30*time.Second {
			t.Errorf("%s was asked for again after %s", pod.Name, at.Sub(last))
		}
		last = at
	}
}

func TestPodsThatTwoBudgetsSelectAreRefusedAndHoldNoOther(t *testing.T) {
	namespace := cluster.Namespace(t)
	node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: gpus(24)})
	double := workload.Deployment{Namespace: namespace, Name: "double", Replicas: 5, Resource: gpu}.Create(t, cluster)
	other := workload.Deployment{Namespace: namespace, Name: "other", Replicas: 1, Resource: gpu}.Create(t, cluster)[0]
	workload.BudgetOf(t, cluster, namespace, "one", "double", 1)
	workload.BudgetOf(t, cluster, namespace, "two", "double", 1)
	controller := story.Start(t, cluster, dhc.Settings{Policy: narrow(namespace)})
	for _, pod := range double {
		node.Break(t, gpu, story.DeviceOf(t, cluster, pod))
	}
	expectRefused(t, controller, double, "more than one PodDisruptionBudget")
	node.Break(t, gpu, story.DeviceOf(t, cluster, other))
	story.AwaitReplacement(t, cluster, other, 1)
	story.ExpectEvictedOnce(t, controller, other)
	for _, pod := range double {
		expectPaced(t, controller, pod)
		if sent := controller.Evictions(t, pod); sent[http.StatusInternalServerError] == 0 || len(sent) != 1 {
			t.Errorf("evictions of %s: %v", pod.Name, sent)
		}
	}
	// With one budget the next request, half a minute to two minutes later, is obeyed.
	if err := cluster.Client.PolicyV1().PodDisruptionBudgets(namespace).Delete(t.Context(), "two", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	story.AwaitGone(t, cluster, double[0])
}

func TestAWebhookThatIsDownHoldsThePodsThatItGuardsAndNoOther(t *testing.T) {
	namespace := cluster.Namespace(t)
	node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: gpus(24)})
	guarded := workload.Deployment{Namespace: namespace, Name: "guarded", Replicas: 5, Resource: gpu}.Create(t, cluster)
	other := workload.Deployment{Namespace: namespace, Name: "other", Replicas: 1, Resource: gpu}.Create(t, cluster)[0]
	name := realcluster.Unique("guard") + ".example.com"
	fail, none, nowhere := admissionv1.Fail, admissionv1.SideEffectClassNone, "https://127.0.0.1:1/"
	hooks := cluster.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_, err := hooks.Create(t.Context(), &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionv1.ValidatingWebhook{{Name: name, ClientConfig: admissionv1.WebhookClientConfig{URL: &nowhere}, FailurePolicy: &fail,
			SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			MatchConditions:   []admissionv1.MatchCondition{{Name: "guarded", Expression: `request.name.startsWith("guarded-")`}},
			Rules: []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/eviction"}}}}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The test's own context ends before it cleans up.
	t.Cleanup(func() { _ = hooks.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}) })
	controller := story.Start(t, cluster, dhc.Settings{Policy: narrow(namespace)})
	for _, pod := range guarded {
		node.Break(t, gpu, story.DeviceOf(t, cluster, pod))
	}
	expectRefused(t, controller, guarded, "failed calling webhook")
	node.Break(t, gpu, story.DeviceOf(t, cluster, other))
	story.AwaitReplacement(t, cluster, other, 1)
	story.ExpectEvictedOnce(t, controller, other)
	for _, pod := range guarded {
		expectPaced(t, controller, pod)
	}
	if err := hooks.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	story.AwaitGone(t, cluster, guarded[0])
}

func TestAPodWhoseDeviceRecoversBehindASilentWatchIsReadAfreshAndStays(t *testing.T) {
	node, namespace, pods := fleet(t, cluster, fakenode.Spec{})
	proxy, err := realcluster.NewProxy(cluster)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	controller := story.Start(t, cluster, dhc.Settings{Kubeconfig: dhc.Kubeconfig(t, cluster, dhc.Account, proxy.Server),
		Policy: dhc.Policy{Namespace: namespace, EvictAfter: "15s"}.Text()})
	node.Break(t, gpu, "gpu-0")
	sick := story.Holder(t, pods, "gpu-0")
	controller.AwaitVerdict(t, sick.Name, "WaitingForEvictAfter")
	story.AwaitCondition(t, cluster, sick, corev1.ConditionTrue)
	proxy.Hold(watchOf("pods"))
	node.SetHealth(gpu, "gpu-0", "Healthy", "")
	if err := node.PublishStatus(t.Context()); err != nil {
		t.Fatal(err)
	}
	realcluster.Eventually(t, 10*time.Second, "the API server has the recovery", func() error {
		now, err := cluster.Client.CoreV1().Pods(namespace).Get(t.Context(), sick.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if _, health := workload.Device(*now); health != corev1.ResourceHealthStatusHealthy {
			return fmt.Errorf("it is %s", health)
		}
		return nil
	})
	if verdict := controller.AwaitVerdict(t, sick.Name, "SignalGone"); !strings.Contains(verdict.Message, "is Healthy now") {
		t.Errorf("the verdict says %q", verdict.Message)
	}
	proxy.Hold(nil)
	story.AwaitCondition(t, cluster, sick, corev1.ConditionFalse)
	story.ExpectUntouched(t, controller, sick)
}
