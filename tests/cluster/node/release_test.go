package node

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/realnode"
	"device-health.io/controller/tests/cluster/workload"
)

// What a release is said to lack must be lacking, and what it is not said to lack must be there: else stories that could happen are left out.
func TestWhatTheReleaseIsSaidToLackIsLacking(t *testing.T) {
	t.Parallel()
	probes := map[realcluster.Feature]func(*testing.T) bool{
		realcluster.HealthMessages: func(t *testing.T) bool {
			_, shown := unhealthyByBothKindsOfClaim(t)
			return shown != "" // of the claim from a template
		},
		realcluster.StandaloneClaimHealth: func(t *testing.T) bool {
			standalone, _ := unhealthyByBothKindsOfClaim(t)
			return standalone
		},
	}
	for _, feature := range realcluster.Features {
		t.Run(string(feature), func(t *testing.T) {
			t.Parallel()
			probe := probes[feature]
			if probe == nil {
				t.Fatal("nobody asks for it")
			}
			release := realcluster.Release()
			if has := probe(t); has != release.Has(feature) {
				t.Errorf("Kubernetes %s: it is there: %t, the table says %t", release.Version, has, release.Has(feature))
			} else if !has {
				t.Logf("Kubernetes %s lacks %s: the stories that need it are skipped", release.Version, feature)
			}
		})
	}
}

// unhealthyByBothKindsOfClaim lets all devices of a driver turn Unhealthy, with words, that two Pods hold: one by a claim from a template, one
// by a claim that it names. Says whether the second shows it, and the words that the first shows.
func unhealthyByBothKindsOfClaim(t *testing.T) (standalone bool, message string) {
	t.Helper()
	namespace := cluster.Namespace(t)
	driver := node.NewDriver(t, realnode.DriverOptions{Devices: 2})
	class := workload.DeviceClass(t, cluster, namespace, driver.Name)
	workload.Claim(t, cluster, namespace, "own", class)
	made := workload.Deployment{Namespace: namespace, Name: "made", Replicas: 1, ClaimTemplate: class}.Create(t, cluster)[0]
	named := workload.Deployment{Namespace: namespace, Name: "named", Replicas: 1, Claim: "own"}.Create(t, cluster)[0]
	for _, device := range []string{"gpu-0", "gpu-1"} {
		driver.Set(t, device, realnode.DRADevice{Health: "Unhealthy", Message: "Xid 79"})
	}
	awaitHealth(t, made, "Unhealthy")
	// The kubelet has had the report.
	of := func(pod corev1.Pod) (health corev1.ResourceHealthStatus, message string) {
		now, err := cluster.Client.CoreV1().Pods(namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, status := range now.Status.ContainerStatuses {
			for _, entry := range status.AllocatedResourcesStatus {
				for _, resource := range entry.Resources {
					health = resource.Health
					if resource.Message != nil {
						message = *resource.Message
					}
				}
			}
		}
		return health, message
	}
	for deadline := time.Now().Add(45 * time.Second); !standalone && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		health, _ := of(named)
		standalone = health == "Unhealthy"
	}
	_, message = of(made)
	return standalone, message
}

// Also where the kubelet passes no words on, and nothing at all can match: nobody is evicted by guess.
func TestAPolicyThatAsksForOtherWordsThanTheDriversMatchesNothing(t *testing.T) {
	t.Parallel()
	words := "Xid 79"
	if realcluster.Release().Has(realcluster.HealthMessages) {
		words = "another fault"
	}
	namespace := cluster.Namespace(t)
	driver := node.NewDriver(t, realnode.DriverOptions{Devices: 2})
	sick := workload.Deployment{Namespace: namespace, Name: "work", Replicas: 1,
		ClaimTemplate: workload.DeviceClass(t, cluster, namespace, driver.Name)}.Create(t, cluster)[0]
	controller := watchOver(t, namespace, policy{Match: fmt.Sprintf("message: %q", words), Rest: taintAndEvict})
	driver.Set(t, draDeviceOf(t, sick), realnode.DRADevice{Health: "Unhealthy", Message: "Xid 79"})
	awaitHealth(t, sick, "Unhealthy")
	controller.Stays(t, sick, 10*time.Second)
	if devices := tainted(t, driver); len(devices) > 0 {
		t.Errorf("tainted are %v", devices)
	}
}
