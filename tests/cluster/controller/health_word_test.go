package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// A newer API server lets in a word that this one refuses, so it is put into etcd past it; from there this one serves it as any other.
func TestAHealthWordThatNobodyKnowsIsTreatedAsUnknownAndSaid(t *testing.T) {
	const word = "PermanentlyUnhealthy"
	namespace := cluster.Namespace(t)
	device := "example.com/" + realcluster.Unique("gpu")
	fakenode.Start(t, cluster, fakenode.Spec{Plugin: map[string][]string{device: {"gpu-0", "gpu-1", "gpu-2"}}})
	pods := workload.Deployment{Namespace: namespace, Name: "infer", Replicas: 2, Resource: device}.Create(t, cluster)
	sick := story.Holder(t, pods, "gpu-0")
	for name, format := range map[string]string{"protobuf": "protobuf", "JSON": "json"} {
		t.Run(name, func(t *testing.T) {
			controller := story.Start(t, cluster, dhc.Settings{Policy: dhc.Policy{Namespace: namespace}.Text(), WireFormat: format})
			now, err := cluster.Client.CoreV1().Pods(namespace).Get(t.Context(), sick.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			now.APIVersion, now.Kind, now.ResourceVersion = "v1", "Pod", ""
			known := now.DeepCopy()
			now.Status.ContainerStatuses[0].AllocatedResourcesStatus[0].Resources[0].Health = word
			if err := cluster.Store(t.Context(), "pods", namespace, sick.Name, now); err != nil {
				t.Fatal(err)
			}
			said := controller.AwaitVerdict(t, device, "HealthWordUnknown")
			if said.Subject.Kind != "Resource" || !strings.Contains(said.Message, word+" (1 device), which is neither Healthy, Unhealthy nor Unknown: treated as Unknown") {
				t.Errorf("of %+v it says %q", said.Subject, said.Message)
			}
			realcluster.Eventually(t, 20*time.Second, "the metric counts the device", func() error { // it is written after the verdicts
				if count := controller.Metric(t, "device_health_devices_other_health_word"); count != 1 {
					return fmt.Errorf("it is %v", count)
				}
				return nil
			})
			controller.Stays(t, sick, 3*time.Second)
			story.AwaitCondition(t, cluster, sick, "")
			// The kubelet's next word ends it.
			known.Status.ContainerStatuses[0].AllocatedResourcesStatus[0].Resources[0].Health = corev1.ResourceHealthStatusHealthy
			if err := cluster.Store(t.Context(), "pods", namespace, sick.Name, known); err != nil {
				t.Fatal(err)
			}
			realcluster.Eventually(t, time.Minute, "nothing is said any more", func() error {
				for _, verdict := range controller.Verdicts(t) {
					if verdict.Reason == "HealthWordUnknown" {
						return fmt.Errorf("%+v", verdict)
					}
				}
				return nil
			})
		})
	}
}
