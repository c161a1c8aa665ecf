package taint

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

// A node with two foreign taints, cordoned, that must keep all of it.
const foreign = `{"spec":{"unschedulable":true,"taints":[{"key":"example.com/a","effect":"PreferNoSchedule"},{"key":"example.com/b","value":"x","effect":"PreferNoSchedule"}]}}`

// shape of a node: its taints' keys, values and effects, in their order, without what others add by themselves, and the cordon.
func shape(t *testing.T, cp *realcluster.ControlPlane, name string) string {
	t.Helper()
	node, err := cp.Client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	var words []string
	for _, taint := range node.Spec.Taints {
		if !strings.HasPrefix(taint.Key, "node.kubernetes.io/") {
			words = append(words, taint.ToString())
		}
	}
	return fmt.Sprint(strings.Join(words, " "), " unschedulable=", node.Spec.Unschedulable)
}

const foreignShape = "example.com/a:PreferNoSchedule example.com/b=x:PreferNoSchedule"

func awaitShape(t *testing.T, cp *realcluster.ControlPlane, node, want string) {
	t.Helper()
	realcluster.Eventually(t, 20*time.Second, "the node is "+want, func() error {
		if got := shape(t, cp, node); got != want {
			return fmt.Errorf("it is %s", got)
		}
		return nil
	})
}

// servers is a node with four plugin devices of a resource of its own, two of them in use, foreign taints and a cordon.
func servers(t *testing.T) (node *fakenode.Node, resource string, pods []corev1.Pod, settings dhc.Settings) {
	t.Helper()
	forget(t, cluster)
	namespace := cluster.Namespace(t)
	resource = "example.com/" + realcluster.Unique("gpu")
	node = fakenode.Start(t, cluster, fakenode.Spec{Plugin: map[string][]string{resource: {"gpu-0", "gpu-1", "gpu-2", "gpu-3"}}})
	pods = workload.Deployment{Namespace: namespace, Name: "infer", Replicas: 2, Resource: resource}.Create(t, cluster)
	patchNode(t, cluster, node.Name, foreign)
	policy := dhc.Policy{Namespace: namespace, NoEvict: true, Taint: "{node: NoSchedule, nodeAtLeast: {devices: 2, percent: 50}}", Recover: "{healthyFor: 1s, hold: 24h}"}
	return node, resource, pods, dhc.Settings{Kubeconfig: dhc.Kubeconfig(t, cluster, dhc.Account, ""), Policy: policy.Text(), InCluster: true}
}

func nodePatches(t *testing.T, controller story.Run) (lines []string) {
	t.Helper()
	for _, e := range controller.Writes(t) {
		if e.ObjectRef.Resource == "nodes" && e.Response.Code != 409 { // a heartbeat came in between: once more from the newer version
			lines = append(lines, fmt.Sprint(e.Verb, " ", e.Response.Code))
		}
	}
	return lines
}

// expectNodePatches says what was written on nodes, and no more.
func expectNodePatches(t *testing.T, controller story.Run, want ...string) {
	t.Helper()
	realcluster.Eventually(t, 0, "the writes on nodes", func() error {
		if got := nodePatches(t, controller); fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("they are %q, not %q", got, want)
		}
		return nil
	})
}

func TestANodeWithEnoughBadDevicesIsTaintedAndNothingElseOfItIsTouched(t *testing.T) {
	node, resource, pods, settings := servers(t)
	controller := story.Start(t, cluster, settings)
	node.Break(t, resource, "gpu-0")
	controller.AwaitVerdict(t, node.Name, "TaintNotNeeded")
	if got := shape(t, cluster, node.Name); got != foreignShape+" unschedulable=true" {
		t.Errorf("for one device of four the node became %s", got)
	}
	node.Break(t, resource, "gpu-1")
	tainted := foreignShape + " " + key + "=Unhealthy:NoSchedule unschedulable=true"
	awaitShape(t, cluster, node.Name, tainted)
	verdict := controller.AwaitVerdict(t, node.Name, "Tainted")
	if !strings.Contains(verdict.Message, "takes 2 healthy ones out of use") {
		t.Errorf("the verdict says %q", verdict.Message)
	}
	// An operator goes on with the node's other taints meanwhile.
	patchNode(t, cluster, node.Name, `{"spec":{"unschedulable":false}}`)
	for _, id := range []string{"gpu-0", "gpu-1"} {
		node.SetHealth(resource, id, "Healthy", "")
	}
	must(t, node.PublishStatus(t.Context()))
	awaitShape(t, cluster, node.Name, foreignShape+" unschedulable=false")
	expectNodePatches(t, controller, "patch 200", "patch 200")
	for _, pod := range pods {
		story.ExpectUntouched(t, controller, pod)
	}
}

func TestANodeTaintThatAPersonRemovesIsNotMadeAgain(t *testing.T) {
	for name, down := range map[string]bool{"while it runs": false, "while it is down": true} {
		t.Run(name, func(t *testing.T) {
			node, resource, _, settings := servers(t)
			began := time.Now()
			controller := story.Start(t, cluster, settings)
			node.Break(t, resource, "gpu-0")
			node.Break(t, resource, "gpu-1")
			awaitShape(t, cluster, node.Name, foreignShape+" "+key+"=Unhealthy:NoSchedule unschedulable=true")
			controller.AwaitVerdict(t, node.Name, "Tainted")
			if down {
				story.AwaitState(t, cluster, `"node":{"phase":"Stands"`)
				controller.Kill()
			}
			patchNode(t, cluster, node.Name, foreign)
			if down {
				controller = again(t, settings, began)
			}
			controller.AwaitVerdict(t, node.Name, "Acknowledged")
			realcluster.Never(t, 2*time.Second, "the node stays without our taint", func() error {
				if got := shape(t, cluster, node.Name); got != foreignShape+" unschedulable=true" {
					return fmt.Errorf("it is %s", got)
				}
				return nil
			})
			if got := fmt.Sprint(nodePatches(t, controller)); got != "[patch 200]" {
				t.Errorf("writes on the node: %s", got)
			}
		})
	}
}

// The taint of a node, too, stands before the eviction.
func TestAPluginPodGoesOnceItsNodeIsTaintedAndItsReplacementRunsElsewhere(t *testing.T) {
	forget(t, cluster)
	namespace := cluster.Namespace(t)
	resource := "example.com/" + realcluster.Unique("gpu")
	ids := map[string][]string{resource: {"gpu-0", "gpu-1"}}
	first := fakenode.Start(t, cluster, fakenode.Spec{Plugin: ids})
	sick := workload.Deployment{Namespace: namespace, Name: "infer", Replicas: 1, Resource: resource}.Create(t, cluster)[0]
	second := fakenode.Start(t, cluster, fakenode.Spec{Plugin: ids})
	policy := dhc.Policy{Namespace: namespace, Taint: "{node: NoSchedule, nodeAtLeast: {devices: 1, percent: 50}}"}
	controller := story.Start(t, cluster, dhc.Settings{Kubeconfig: dhc.Kubeconfig(t, cluster, dhc.Account, ""), Policy: policy.Text(), InCluster: true})
	first.Break(t, resource, "gpu-0")
	replacement := story.AwaitReplacement(t, cluster, sick, 1)[0]
	if replacement.Spec.NodeName != second.Name {
		t.Errorf("the replacement runs on %s", replacement.Spec.NodeName)
	}
	story.ExpectEvictedOnce(t, controller, sick)
	for _, e := range controller.Writes(t) {
		if e.ObjectRef.Resource == "nodes" && e.Response.Code == 200 && !e.Received.Before(controller.EvictedAt(t, sick)) {
			t.Error("the node was tainted after the eviction")
		}
	}
	if got := fmt.Sprint(nodePatches(t, controller)); got != "[patch 200]" {
		t.Errorf("writes on the node: %s", got)
	}
}
