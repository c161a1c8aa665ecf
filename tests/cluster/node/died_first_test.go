package node

import (
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/realnode"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// Not beside others: it has controllers of its own, one after the other. The first has seen the device bad and the Pod die on it, and may not write yet. Then
// nothing in the API tells it any more: the kubelet shows no report of an ended DRA Pod, and the reset after the crash has made the device Healthy.
func TestAJobsPodThatDiedOnItsBadDeviceIsCreditedByTheNextControllerAlthoughTheDeviceIsHealthyAgain(t *testing.T) {
	alone(t)
	namespace := cluster.Namespace(t)
	driver := node.NewDriver(t, realnode.DriverOptions{Devices: 2})
	class := workload.DeviceClass(t, cluster, namespace, driver.Name)
	sick := workload.Job{Namespace: namespace, Name: "work", Parallelism: 1, BackoffLimit: 1, ClaimTemplate: class}.Create(t, cluster)[0]
	bad := draDeviceOf(t, sick)
	node.AwaitListening(t, sick)
	settings := func(paused bool) dhc.Settings { // no incident opens within the story: what is credited has died first
		return dhc.Settings{InCluster: true, Policy: dhc.Policy{Namespace: namespace, After: "30m", JobRetry: "{settle: 3s}", Paused: paused}.Text()}
	}
	began := time.Now()
	first := story.Start(t, cluster, settings(true))
	driver.Set(t, bad, realnode.DRADevice{Health: "Unhealthy", Message: "Xid 79"})
	awaitHealth(t, sick, "Unhealthy")
	story.AwaitState(t, cluster, string(sick.UID))
	node.Signal(t, sick, syscall.SIGKILL)
	next := story.AwaitReplacement(t, cluster, sick, 1)[0]
	if job := jobNow(t, namespace); job.Status.Failed != 1 || *job.Spec.BackoffLimit != 1 {
		t.Fatalf("the limit is %d, the status %+v", *job.Spec.BackoffLimit, job.Status)
	}
	if dead, err := cluster.Client.CoreV1().Pods(namespace).Get(t.Context(), sick.Name, metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	} else if id, said := workload.Device(*dead); id != "" {
		t.Errorf("the dead Pod's status still calls %s %s: the state is not the only evidence", id, said)
	}
	first.Kill()
	driver.Set(t, bad, realnode.DRADevice{Health: "Healthy"})
	awaitHealth(t, next, "Healthy")

	second := story.Start(t, cluster, settings(false)).Since(began)
	awaitVerdict(t, second, time.Minute, "work", "DiedOfDevice", bad)
	expectCreditedDeath(t, namespace, sick, next, bad)
	if granted := second.EvictedIn(t, namespace); granted != 0 {
		t.Errorf("%d evictions were granted in the namespace", granted)
	}
}
