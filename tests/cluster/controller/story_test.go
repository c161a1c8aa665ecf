package controller

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

func TestThePodOfAnUnhealthyDeviceIsNoticedEvictedOnceAndReplaced(t *testing.T) {
	for name, cp := range map[string]*realcluster.ControlPlane{"with WatchList": cluster, "without WatchList": withoutWatchList} {
		t.Run(name, func(t *testing.T) {
			// Two seconds to end: time enough to see that it is not evicted a second time, and to read its condition.
			node, namespace, pods := fleet(t, cp, fakenode.Spec{Termination: 2 * time.Second})
			sick, neighbour := story.Holder(t, pods, "gpu-0"), story.Holder(t, pods, "gpu-1")
			controller := story.Start(t, cp, dhc.Settings{Policy: dhc.Policy{Namespace: namespace}.Text()})
			seen := story.WatchPod(t, cp, sick)
			node.Break(t, gpu, "gpu-0")
			after := story.AwaitReplacement(t, cp, sick, 2)
			seen.AwaitCondition(t, story.Condition, corev1.ConditionTrue)
			if left := story.Holder(t, after, "gpu-1"); left.UID != neighbour.UID {
				t.Errorf("the neighbour %s was replaced by %s", neighbour.Name, left.Name)
			}
			if replacement := story.Holder(t, after, "gpu-2"); replacement.Status.Phase != corev1.PodRunning {
				t.Errorf("the replacement is %s", replacement.Status.Phase)
			}
			event := story.AwaitEvent(t, cp, namespace, sick.Name, "Evicted")
			if event.Regarding.UID != sick.UID || event.ReportingController == "" {
				t.Errorf("the Event is about %s, from %q", event.Regarding.UID, event.ReportingController)
			}
			realcluster.Eventually(t, 15*time.Second, "the evicted Pod's object is gone", func() error {
				if _, err := cp.Client.CoreV1().Pods(namespace).Get(t.Context(), sick.Name, metav1.GetOptions{}); err == nil {
					return fmt.Errorf("it is still there")
				}
				return nil
			})
			story.ExpectEvictedOnce(t, controller, sick)
			story.ExpectEvents(t, cp, namespace, "DeviceUnhealthy", "Evicted")
			if sent := controller.Evictions(t, neighbour); len(sent) > 0 {
				t.Errorf("evictions of the neighbour: %v", sent)
			}
			for _, write := range controller.Writes(t) {
				if write.ObjectRef.Namespace != namespace {
					t.Errorf("it wrote elsewhere: %s %s", write.Verb, write.RequestURI)
				}
			}
		})
	}
}

func TestEveryKindIsWatchedAndListedOnlyWhereWatchListIsMissing(t *testing.T) {
	for name, test := range map[string]struct {
		cp    *realcluster.ControlPlane
		lists bool
	}{"with WatchList": {cluster, false}, "without WatchList": {withoutWatchList, true}} {
		t.Run(name, func(t *testing.T) {
			controller := story.Start(t, test.cp, dhc.Settings{Policy: dhc.Policy{Namespace: "none"}.Text()})
			watched, listed := map[string]bool{}, map[string]bool{}
			// The record of a watch is written when its answer begins, that of a list when it ends.
			realcluster.Eventually(t, 10*time.Second, "ten kinds are watched", func() error {
				for _, e := range controller.Requests(t, func(e realcluster.AuditEvent) bool { return e.Response.Code == 200 }) {
					switch e.Verb {
					case "watch":
						watched[e.ObjectRef.Resource] = true
					case "list":
						listed[e.ObjectRef.Resource] = true
					}
				}
				if len(watched) != 10 {
					return fmt.Errorf("watched are %v", watched)
				}
				return nil
			})
			if test.lists && len(listed) != 10 || !test.lists && len(listed) != 0 {
				t.Errorf("listed are %v", listed)
			}
		})
	}
}

func TestObserveModeWritesNothingButEvents(t *testing.T) {
	for name, noEvents := range map[string]bool{"with events": false, "without events": true} {
		t.Run(name, func(t *testing.T) {
			node, namespace, pods := fleet(t, cluster, fakenode.Spec{})
			_, err := cluster.Client.BatchV1().Jobs(namespace).Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "train"},
				Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
					Containers: []corev1.Container{{Name: "main", Image: "registry.test/pause:1"}}}}}}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			controller := story.Start(t, cluster, dhc.Settings{Policy: dhc.Policy{Namespace: namespace}.Text(), Mode: "observe", NoEvents: noEvents})
			node.Break(t, gpu, "gpu-0")
			sick := story.Holder(t, pods, "gpu-0")
			controller.AwaitVerdict(t, sick.Name, "WouldEvict")
			controller.Stays(t, sick, 2*time.Second)
			for _, write := range controller.Writes(t) {
				if noEvents || write.ObjectRef.Resource != "events" {
					t.Errorf("observe mode wrote: %s %s", write.Verb, write.RequestURI)
				}
			}
		})
	}
}

func TestADRAPodStaysWhileItsDeviceIsSchedulableAndGoesOnceTheDriverTaintsIt(t *testing.T) {
	namespace := cluster.Namespace(t)
	driver := realcluster.Unique("gpu") + ".example.com"
	node := fakenode.Start(t, cluster, fakenode.Spec{DRA: map[string][]string{driver: {"gpu-0", "gpu-1", "gpu-2", "gpu-3"}}})
	template := workload.DeviceClass(t, cluster, namespace, driver)
	pods := workload.Deployment{Namespace: namespace, Name: "train", Replicas: 1, ClaimTemplate: template}.Create(t, cluster)
	sick := pods[0]
	device, _ := workload.Device(sick)
	name := device[bytes.LastIndexByte([]byte(device), '/')+1:]
	controller := story.Start(t, cluster, dhc.Settings{Policy: dhc.Policy{Namespace: namespace}.Text()})
	node.SetHealth(driver, name, "Unhealthy", "Xid 79")
	controller.AwaitVerdict(t, sick.Name, "DeviceStillSchedulable")
	controller.Stays(t, sick, 2*time.Second)
	if err := node.PublishSlice(t.Context(), driver, fakenode.NoSchedule(name)); err != nil {
		t.Fatal(err)
	}
	replacement := story.AwaitReplacement(t, cluster, sick, 1)[0]
	if got, _ := workload.Device(replacement); got == device {
		t.Errorf("the replacement is on %s again", got)
	}
	story.ExpectEvictedOnce(t, controller, sick)
}

func TestABudgetsRefusalStaysVisibleInTheServersWordsAndEndsWithTheBudget(t *testing.T) {
	node, namespace, pods := fleet(t, cluster, fakenode.Spec{})
	workload.Budget(t, cluster, namespace, "infer", 2)
	controller := story.Start(t, cluster, dhc.Settings{Policy: dhc.Policy{Namespace: namespace}.Text()})
	node.Break(t, gpu, "gpu-0")
	sick := story.Holder(t, pods, "gpu-0")
	verdict := controller.AwaitVerdict(t, sick.Name, "BlockedByBudget")
	if !bytes.Contains([]byte(verdict.Message), []byte("The disruption budget infer needs 2 healthy pods and has 2 currently")) {
		t.Errorf("the verdict says %q", verdict.Message)
	}
	if err := cluster.Client.PolicyV1().PodDisruptionBudgets(namespace).Delete(t.Context(), "infer", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	story.AwaitReplacement(t, cluster, sick, 2)
	story.ExpectEvictedOnce(t, controller, sick)
}

func TestTheConditionStaysWhenTheKubeletWritesAndTurnsFalseOnRecovery(t *testing.T) {
	node, namespace, pods := fleet(t, cluster, fakenode.Spec{})
	story.Start(t, cluster, dhc.Settings{Policy: dhc.Policy{Namespace: namespace, NoEvict: true}.Text()})
	node.Break(t, gpu, "gpu-0")
	sick := story.Holder(t, pods, "gpu-0")
	first := story.AwaitCondition(t, cluster, sick, corev1.ConditionTrue)
	node.SetPodStatus(sick.UID, "message", "the kubelet writes the whole status again")
	realcluster.Eventually(t, 10*time.Second, "the kubelet's write is there", func() error {
		now, err := cluster.Client.CoreV1().Pods(namespace).Get(t.Context(), sick.Name, metav1.GetOptions{})
		if err == nil && now.Status.Message == "" {
			err = fmt.Errorf("not yet")
		}
		return err
	})
	if second := story.AwaitCondition(t, cluster, sick, corev1.ConditionTrue); !second.LastTransitionTime.Equal(&first.LastTransitionTime) {
		t.Errorf("the time of the transition moved from %s to %s", first.LastTransitionTime, second.LastTransitionTime)
	}
	node.SetHealth(gpu, "gpu-0", "Healthy", "")
	if err := node.PublishStatus(t.Context()); err != nil {
		t.Fatal(err)
	}
	story.AwaitCondition(t, cluster, sick, corev1.ConditionFalse)
}

func TestAPodWhoseDeploymentOptedOutIsLeftAlone(t *testing.T) {
	namespace := cluster.Namespace(t)
	node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: gpus(4)})
	sick := workload.Deployment{Namespace: namespace, Name: "infer", Replicas: 1, Resource: gpu,
		Annotations: map[string]string{"device-health.io/opt-out": "true"}}.Create(t, cluster)[0]
	controller := story.Start(t, cluster, dhc.Settings{Policy: dhc.Policy{Namespace: namespace}.Text()})
	node.Break(t, gpu, "gpu-0")
	controller.AwaitVerdict(t, sick.Name, "OptedOut")
	controller.Stays(t, sick, 2*time.Second)
}

func TestAPodOnANodeThatIsNotReadyIsLeftAlone(t *testing.T) {
	node, namespace, pods := fleet(t, cluster, fakenode.Spec{})
	controller := story.Start(t, cluster, dhc.Settings{Policy: dhc.Policy{Namespace: namespace}.Text()})
	if err := node.SetReady(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	realcluster.Eventually(t, 10*time.Second, "the node is not ready for everybody", func() error {
		now, err := cluster.Client.CoreV1().Nodes().Get(t.Context(), node.Name, metav1.GetOptions{})
		if err == nil && len(now.Spec.Taints) == 0 {
			err = fmt.Errorf("no taint yet")
		}
		return err
	})
	node.SetHealth(gpu, "gpu-0", "Unhealthy", "")
	sick := story.Holder(t, pods, "gpu-0")
	controller.AwaitVerdict(t, sick.Name, "NodeNotReady")
	controller.Stays(t, sick, 2*time.Second)
}

func TestANewPodOfTheSameNameIsProtectedByTheUIDEvenWhenWeLiveInThePast(t *testing.T) {
	namespace := cluster.Namespace(t)
	node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: gpus(4)})
	sick := workload.StatefulSet(t, cluster, namespace, "db", gpu)
	proxy, err := realcluster.NewProxy(cluster)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	controller := story.Start(t, cluster, dhc.Settings{Kubeconfig: dhc.Kubeconfig(t, cluster, dhc.Account, proxy.Server),
		Policy: dhc.Policy{Namespace: namespace, EvictAfter: "20s"}.Text()})
	node.Break(t, gpu, "gpu-0")
	awaitNode(t, node, 3)
	story.AwaitCondition(t, cluster, sick, corev1.ConditionTrue)
	controller.AwaitVerdict(t, sick.Name, "WaitingForEvictAfter")
	proxy.Hold(watchOf("pods"))
	if err := cluster.Client.CoreV1().Pods(namespace).Delete(t.Context(), sick.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	replacement := story.AwaitReplacement(t, cluster, sick, 1)[0]
	if replacement.Name != sick.Name {
		t.Fatalf("the new Pod is %s, not %s", replacement.Name, sick.Name)
	}
	// The fresh read before the eviction finds another Pod under the name: nothing is sent that a UID would have to stop.
	controller.AwaitVerdict(t, sick.Name, "AlreadyTerminating")
	proxy.Hold(nil)
	realcluster.Eventually(t, 15*time.Second, "the old Pod's verdicts are gone", func() error {
		for _, verdict := range controller.Verdicts(t) {
			if verdict.Subject.UID == string(sick.UID) {
				return fmt.Errorf("%+v", verdict)
			}
		}
		return nil
	})
	now, err := cluster.Client.CoreV1().Pods(namespace).Get(t.Context(), sick.Name, metav1.GetOptions{})
	if err != nil || now.UID != replacement.UID || now.DeletionTimestamp != nil || workload.Condition(now, story.Condition) != nil {
		t.Errorf("the new Pod was touched: %+v, %v", now, err)
	}
	if sent := controller.Evictions(t, sick); len(sent) != 0 {
		t.Errorf("evictions by answer: %v, and none should have been sent", sent)
	}
}
