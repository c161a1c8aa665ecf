package controller

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// No other story has devices of the shipped preset: brakes are kept in the state, by resource.
const nvidia = "nvidia.com/gpu"

// presetOf is the shipped preset with times that a story can wait for, and a brake of which the window is over long before the fault.
func presetOf(t *testing.T, trialAfter string) string {
	t.Helper()
	path, err := realcluster.RepositoryFile("manifests/presets/nvidia-device-plugin/nvidia-device-plugin.yaml")
	if err != nil {
		t.Fatal(err)
	}
	preset, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(preset)
	for _, change := range [][2]string{{"after: 60s", "after: 1s"}, {"after: 30s", "after: 0s"}} {
		if !strings.Contains(text, change[0]) {
			t.Fatalf("the preset has no %q", change[0])
		}
		text = strings.Replace(text, change[0], change[1], 1)
	}
	return text + `
---
apiVersion: device-health.io/v1alpha1
kind: ControllerLimits
metadata: {name: default}
spec:
  evictions: {perMinute: 600, maxInFlight: 10, perNode: 10, perOwner: 10}
  brake: {within: 3s, trialRuns: 2s, trialAfter: ` + trialAfter + `}
`
}

func TestANodeWhoseEveryDeviceIsSaidToBeBadKeepsItsPodsAsLongAsItIsSaid(t *testing.T) {
	namespace, since := cluster.Namespace(t), time.Now()
	ids := map[string][]string{nvidia: {"GPU-0", "GPU-1", "GPU-2", "GPU-3", "GPU-4", "GPU-5", "GPU-6", "GPU-7"}}
	node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: ids})
	pods := workload.Deployment{Namespace: namespace, Name: "infer", Replicas: 6, Resource: nvidia}.Create(t, cluster)
	run := story.Start(t, cluster, dhc.Settings{Policy: presetOf(t, "1h"), InCluster: true})
	everyDevice := func(health string) {
		for _, id := range ids[nvidia] {
			node.SetHealth(nvidia, id, health, "")
		}
		if err := node.PublishStatus(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	everyDevice("Unhealthy")
	for _, pod := range pods {
		run.AwaitVerdict(t, pod.Name, "Braked")
	}
	story.AwaitEvent(t, cluster, "default", node.Name, "BrakeEngaged")
	if engaged := run.Metric(t, "device_health_brakes_engaged"); engaged == 0 {
		t.Error("no brake is engaged by metric")
	}
	run.Stays(t, pods[0], 10*time.Second) // the window is three
	story.AwaitState(t, cluster, `"brakes":[`)
	// It outlives the process, whose successor saw no device go bad.
	run.Kill()
	second := story.Start(t, cluster, dhc.Settings{Policy: presetOf(t, "1h"), InCluster: true}).Since(since)
	second.AwaitVerdict(t, pods[5].Name, "Braked")
	second.Stays(t, pods[5], 5*time.Second)

	// Half-open: one Pod is tried, once there is a place on another node.
	second.Kill()
	third := story.Start(t, cluster, dhc.Settings{Policy: presetOf(t, "1s"), InCluster: true}).Since(since)
	third.AwaitVerdict(t, pods[0].Name, "Braked")
	third.Stays(t, pods[0], 3*time.Second)
	fakenode.Start(t, cluster, fakenode.Spec{Plugin: map[string][]string{nvidia: {"GPU-8", "GPU-9"}}})
	var moved []corev1.Pod
	realcluster.Eventually(t, time.Minute, "a Pod runs on the other node", func() error {
		moved = nil
		for _, pod := range workload.Pods(t, cluster, namespace, "infer") {
			if pod.Spec.NodeName != node.Name && pod.Status.Phase == corev1.PodRunning {
				moved = append(moved, pod)
			}
		}
		if len(moved) == 0 {
			return fmt.Errorf("none does")
		}
		return nil
	})

	// The library is well again: the brake is released, and nobody pays for what is over.
	everyDevice("Healthy")
	realcluster.Eventually(t, 2*time.Minute, "the brake is released", func() error {
		if engaged := third.Metric(t, "device_health_brakes_engaged"); engaged != 0 {
			return fmt.Errorf("%v are engaged", engaged)
		}
		return nil
	})
	left := 0
	for _, pod := range workload.Pods(t, cluster, namespace, "infer") {
		for _, before := range pods {
			if pod.UID == before.UID {
				left++
			}
		}
	}
	if evicted := third.EvictedIn(t, namespace); evicted > 2 || left < 4 { // there were two places
		t.Errorf("%d Pods were evicted, %d of the six are left", evicted, left)
	}
}

// An operator has looked at the node: what had gone bad up to then is dealt with, by the right of that role alone.
func TestAnOperatorReleasesTheBrakeOfANodeByCommandAndItsPodsMove(t *testing.T) {
	dhc.InstallRolesForPeople(t, cluster)
	const resource = "example.com/braked" // brakes are kept by resource
	namespace := cluster.Namespace(t)
	bad := []string{"0", "1", "2", "3"}
	node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: map[string][]string{resource: bad}})
	pods := workload.Deployment{Namespace: namespace, Name: "infer", Replicas: 4, Resource: resource}.Create(t, cluster)
	// A quarter of all devices is no matter of the cluster's brake.
	fakenode.Start(t, cluster, fakenode.Spec{Plugin: map[string][]string{resource: {"4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15"}}})
	run := story.Start(t, cluster, dhc.Settings{Policy: dhc.Policy{Namespace: namespace, After: "1s"}.Text(), InCluster: true})
	for _, id := range bad {
		node.SetHealth(resource, id, "Unhealthy", "")
	}
	must(t, node.PublishStatus(t.Context()))
	for _, pod := range pods {
		run.AwaitVerdict(t, pod.Name, "Braked")
	}
	run.Stays(t, pods[0], 3*time.Second) // nobody has looked at what comes within the last second
	_, reader := dhc.Person(t, cluster, dhc.ReaderRole, dhc.Namespace)
	release := []string{"release-brake", "node", node.Name, "--kubeconfig"}
	if code, _, problem := dhc.Command(t, append(release, reader)...); code != 1 || !strings.Contains(problem, `cannot get resource "nodes"`) {
		t.Errorf("a reader's release ends with %d: %s", code, problem)
	}
	user, operator := dhc.Person(t, cluster, dhc.OperatorRole, "")
	since := time.Now()
	if code, out, problem := dhc.Command(t, append(release, operator)...); code != 0 || !strings.Contains(out, "device-health.io/brake-release=") {
		t.Fatalf("release-brake ends with %d: %s%s", code, out, problem)
	}
	for _, pod := range pods {
		story.AwaitGone(t, cluster, pod)
		story.ExpectEvictedOnce(t, run, pod)
	}
	for _, pod := range workload.AwaitRunning(t, cluster, namespace, "infer", 4) {
		if pod.Spec.NodeName == node.Name {
			t.Errorf("%s is on the bad node again", pod.Name)
		}
	}
	if engaged := run.Metric(t, "device_health_brakes_engaged"); engaged != 0 {
		t.Errorf("%v brakes are engaged", engaged)
	}
	writes, err := cluster.Audit(since, func(e realcluster.AuditEvent) bool { return e.User.Username == user && e.Writes() })
	must(t, err)
	if len(writes) != 1 || writes[0].ObjectRef.Resource != "nodes" || writes[0].ObjectRef.Name != node.Name || writes[0].Verb != "patch" {
		t.Errorf("the operator's writes: %+v", writes)
	}
}
