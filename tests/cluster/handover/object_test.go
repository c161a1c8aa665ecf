package handover

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// The parts of two definitions that our objects touch, written for these stories.
// Source: NVIDIA/NVSentinel, distros/kubernetes/nvsentinel/charts/janitor/crds/janitor.dgxc.nvidia.com_gpuresets.yaml at b3b0ce8b6fe06e15cbf7fe567886761df8c73dcf;
// medik8s/self-node-remediation, config/crd/bases/self-node-remediation.medik8s.io_selfnoderemediations.yaml at 640aac50d7ba64bc08a5c1a45763bb3043ee9ed7.
const (
	gpuResets = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gpuresets.janitor.dgxc.nvidia.com},
  spec: {group: janitor.dgxc.nvidia.com, scope: Cluster, names: {kind: GPUReset, plural: gpuresets, singular: gpureset},
    versions: [{name: v1alpha1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, properties: {
      spec: {type: object, required: [nodeName], properties: {nodeName: {type: string, minLength: 1}, selector: {type: object, properties: {
        uuids: {type: array, items: {type: string, pattern: "^GPU-[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"}}}}}}}}}}]}}
`
	selfNodeRemediations = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: selfnoderemediations.self-node-remediation.medik8s.io},
  spec: {group: self-node-remediation.medik8s.io, scope: Namespaced, names: {kind: SelfNodeRemediation, plural: selfnoderemediations, singular: selfnoderemediation},
    versions: [{name: v1alpha1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, properties: {
      spec: {type: object, properties: {remediationStrategy: {type: string, default: Automatic, enum: [Automatic, ResourceDeletion, OutOfServiceTaint]}}}}}}}]}}
`
	gpuReset = `{incidents: 1, resource: {per: Device, whenRecovered: Keep, template: {apiVersion: janitor.dgxc.nvidia.com/v1alpha1, kind: GPUReset,
    metadata: {name: "dhc-{incident}"}, spec: {nodeName: "{node}", selector: {uuids: ["{identity}"]}}}}}`
)

func selfNodeRemediation(namespace string) string {
	return `{incidents: 1, resource: {template: {apiVersion: self-node-remediation.medik8s.io/v1alpha1, kind: SelfNodeRemediation,
    metadata: {name: "{node}", namespace: ` + namespace + `}, spec: {remediationStrategy: Automatic}}}}`
}

// withDefinition serves a kind until the test ends.
func withDefinition(t *testing.T, definition, name string) {
	t.Helper()
	if out, err := cluster.Kubectl(definition, "apply", "-f", "-"); err != nil {
		t.Fatal(out, err)
	}
	t.Cleanup(func() { _, _ = cluster.Kubectl("", "delete", "crd", name) })
	if out, err := cluster.Kubectl("", "wait", "--for=condition=Established", "--timeout=30s", "crd/"+name); err != nil {
		t.Fatal(out, err)
	}
}

// withObjects gives our account the rights on one kind, as the component and the role beside it do, until the test ends.
func withObjects(t *testing.T, role string) {
	t.Helper()
	for _, file := range []string{"rbac-hand-over-resource.yaml", role} {
		dhc.Apply(t, cluster, "manifests/components/hand-over-resource/"+file)
	}
	realcluster.Eventually(t, 30*time.Second, "the role is aggregated", func() error {
		out, err := cluster.Kubectl("", "get", "clusterrole", "device-health-controller-hand-over-resource", "-o", "jsonpath={.rules}")
		if err == nil && !strings.Contains(out, "create") {
			err = fmt.Errorf("its rules are %q", out)
		}
		return err
	})
}

type handedObject struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     json.RawMessage   `json:"spec"`
}

func objects(t *testing.T, arguments ...string) []handedObject {
	t.Helper()
	out, err := cluster.Kubectl("", append([]string{"get", "-o", "json"}, arguments...)...)
	must(t, err)
	var list struct {
		Items []handedObject `json:"items"`
	}
	must(t, json.Unmarshal([]byte(out), &list))
	for i := range list.Items {
		var compact bytes.Buffer
		must(t, json.Compact(&compact, list.Items[i].Spec))
		list.Items[i].Spec = compact.Bytes()
	}
	return list.Items
}

func awaitObjects(t *testing.T, count int, arguments ...string) (found []handedObject) {
	t.Helper()
	realcluster.Eventually(t, 30*time.Second, fmt.Sprintf("there are %d objects", count), func() error {
		if found = objects(t, arguments...); len(found) != count {
			return fmt.Errorf("there are %+v", found)
		}
		return nil
	})
	return found
}

// objectWrites are the writes of our account to objects of that resource, as verb and code.
func objectWrites(t *testing.T, controller story.Run, resource string) (writes []string) {
	t.Helper()
	for _, e := range controller.Writes(t) {
		if e.ObjectRef.Resource == resource {
			writes = append(writes, fmt.Sprintf("%s %d", e.Verb, e.Response.Code))
		}
	}
	return writes
}

func acknowledge(t *testing.T, node string) {
	t.Helper()
	story.PatchNode(t, cluster, node, fmt.Sprintf(`{"metadata":{"annotations":{"device-health.io/acknowledge":%q}}}`, time.Now().UTC().Format(time.RFC3339)))
}

func awaitNoVerdict(t *testing.T, controller story.Run, name, reason string) {
	t.Helper()
	realcluster.Eventually(t, 30*time.Second, name+" is not "+reason+" any more", func() error {
		for _, verdict := range controller.Verdicts(t) {
			if verdict.Subject.Name == name && verdict.Reason == reason {
				return fmt.Errorf("it is: %s", verdict.Message)
			}
		}
		return nil
	})
}

func byObject(namespace, handOver string) dhc.Settings {
	return dhc.Settings{InCluster: true, Policy: dhc.Policy{Namespace: namespace, NoEvict: true, HandOver: handOver}.Text()}
}

func TestANodeIsHandedOverToMedik8sByARemediationOfItsNameThatGoesWithTheIncident(t *testing.T) {
	withDefinition(t, selfNodeRemediations, "selfnoderemediations.self-node-remediation.medik8s.io")
	withObjects(t, "role-medik8s.yaml")
	node, namespace, pods := fleet(t)
	sick := story.Holder(t, pods, "gpu-0")
	controller := story.Start(t, cluster, byObject(namespace, selfNodeRemediation(namespace)))
	node.Break(t, gpu, "gpu-0")
	made := awaitObjects(t, 1, "-n", namespace, "selfnoderemediations")[0]
	if made.Metadata.Name != node.Name || made.Metadata.Labels["app.kubernetes.io/managed-by"] != manager || made.Metadata.Annotations["device-health.io/policy"] != "test" || string(made.Spec) != `{"remediationStrategy":"Automatic"}` {
		t.Errorf("it is %+v %s", made.Metadata, made.Spec)
	}
	verdict := controller.AwaitVerdict(t, node.Name, "HandedOver")
	if want := "1 incident within 168h: SelfNodeRemediation " + namespace + "/" + node.Name + " was made; it stands until the incident ends or is acknowledged"; verdict.Message != want {
		t.Errorf("the verdict says %q", verdict.Message)
	}
	realcluster.Eventually(t, 0, "the metric counts it", func() error {
		if n := controller.Metric(t, "device_health_nodes_handed_over"); n != 1 {
			return fmt.Errorf("it says %v", n)
		}
		return nil
	})
	controller.Stays(t, sick, 3*time.Second)
	_, out, problems := dhc.Command(t, "uninstall", "--dry-run", "--kubeconfig", filepath.Join(cluster.Folder, "admin.kubeconfig"))
	if !strings.Contains(out, "would remove SelfNodeRemediation "+namespace+"/"+node.Name+"\n") {
		t.Errorf("uninstall would not take it along: %s%s", out, problems)
	}
	acknowledge(t, node.Name)
	awaitObjects(t, 0, "-n", namespace, "selfnoderemediations")
	if writes := objectWrites(t, controller, "selfnoderemediations"); fmt.Sprint(writes) != "[create 201 delete 200]" {
		t.Errorf("writes: %v", writes)
	}
}

func TestAGPUIsHandedOverToNVSentinelOnceAlsoByTheNextProcessAndTheOrderIsKept(t *testing.T) {
	withDefinition(t, gpuResets, "gpuresets.janitor.dgxc.nvidia.com")
	withObjects(t, "role-nvsentinel.yaml")
	const uuid = "GPU-8a56a4bc-c184-a047-2620-b5d9ad2a5b3d"
	namespace := cluster.Namespace(t)
	node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: map[string][]string{gpu: {uuid}}})
	workload.Deployment{Namespace: namespace, Name: "infer", Replicas: 1, Resource: gpu}.Create(t, cluster)
	settings := byObject(namespace, gpuReset)
	first := story.Start(t, cluster, settings)
	node.Break(t, gpu, uuid)
	made := awaitObjects(t, 1, "gpuresets")[0]
	t.Cleanup(func() { _, _ = cluster.Kubectl("", "delete", "gpuresets", "--all") })
	if want := fmt.Sprintf(`{"nodeName":%q,"selector":{"uuids":[%q]}}`, node.Name, uuid); string(made.Spec) != want {
		t.Errorf("its spec is %s", made.Spec)
	}
	first.AwaitVerdict(t, node.Name, "HandedOver")
	story.AwaitState(t, cluster, `"phase":"Made"`)
	first.Kill()
	// A person deletes it, and it is not made again for this incident.
	_, err := cluster.Kubectl("", "delete", "gpuresets", made.Metadata.Name)
	must(t, err)
	second := story.Start(t, cluster, settings)
	second.AwaitVerdict(t, node.Name, "HandedOver")
	time.Sleep(3 * time.Second)
	if writes := objectWrites(t, second, "gpuresets"); len(writes) != 0 {
		t.Errorf("writes of the second process: %v", writes)
	}
	acknowledge(t, node.Name)
	awaitNoVerdict(t, second, node.Name, "HandedOver")
	if found := objects(t, "gpuresets"); len(found) != 0 {
		t.Errorf("there is %+v", found)
	}
}

func TestAnObjectThatAnotherHasMadeIsLeftAndSaid(t *testing.T) {
	withDefinition(t, selfNodeRemediations, "selfnoderemediations.self-node-remediation.medik8s.io")
	withObjects(t, "role-medik8s.yaml")
	node, namespace, _ := fleet(t)
	theirs := fmt.Sprintf(`{"apiVersion":"self-node-remediation.medik8s.io/v1alpha1","kind":"SelfNodeRemediation","metadata":{"name":%q,"namespace":%q},"spec":{"remediationStrategy":"OutOfServiceTaint"}}`, node.Name, namespace)
	if out, err := cluster.Kubectl(theirs, "create", "-f", "-"); err != nil {
		t.Fatal(out, err)
	}
	controller := story.Start(t, cluster, byObject(namespace, selfNodeRemediation(namespace)))
	node.Break(t, gpu, "gpu-0")
	verdict := controller.AwaitVerdict(t, node.Name, "HandOverHeld")
	if !strings.Contains(verdict.Message, "is there, is not ours and is left as it is") {
		t.Errorf("the verdict says %q", verdict.Message)
	}
	acknowledge(t, node.Name)
	awaitNoVerdict(t, controller, node.Name, "HandOverHeld")
	if found := objects(t, "-n", namespace, "selfnoderemediations"); len(found) != 1 || string(found[0].Spec) != `{"remediationStrategy":"OutOfServiceTaint"}` {
		t.Errorf("there is %+v", found)
	}
	if writes := objectWrites(t, controller, "selfnoderemediations"); len(writes) != 0 {
		t.Errorf("writes: %v", writes)
	}
}

func TestWithoutTheRightOrTheKindNothingIsMadeAndWhatIsMissingIsSaid(t *testing.T) {
	node, namespace, _ := fleet(t)
	controller := story.Start(t, cluster, byObject(namespace, selfNodeRemediation(namespace)))
	node.Break(t, gpu, "gpu-0")
	verdict := controller.AwaitVerdict(t, node.Name, "HandOverHeld")
	if !strings.Contains(verdict.Message, "kind SelfNodeRemediation of self-node-remediation.medik8s.io/v1alpha1 is not served: install its CustomResourceDefinition") {
		t.Errorf("without the kind: %q", verdict.Message)
	}
	controller.Kill()
	withDefinition(t, selfNodeRemediations, "selfnoderemediations.self-node-remediation.medik8s.io")
	controller = story.Start(t, cluster, byObject(namespace, selfNodeRemediation(namespace)))
	verdict = controller.AwaitVerdict(t, node.Name, "HandOverHeld")
	if !strings.Contains(verdict.Message, "get, create and delete of selfnoderemediations.self-node-remediation.medik8s.io are needed: see docs/hand-over.md") {
		t.Errorf("without the right: %q", verdict.Message)
	}
	controller.Kill()
	withObjects(t, "role-medik8s.yaml")
	controller = story.Start(t, cluster, byObject(namespace, selfNodeRemediation(namespace)))
	awaitObjects(t, 1, "-n", namespace, "selfnoderemediations")
	acknowledge(t, node.Name)
	awaitObjects(t, 0, "-n", namespace, "selfnoderemediations")
	if writes := objectWrites(t, controller, "selfnoderemediations"); fmt.Sprint(writes) != "[create 201 delete 200]" {
		t.Errorf("writes: %v", writes)
	}
}

func TestUninstallTakesAlongTheObjectsThatTheStateNames(t *testing.T) {
	withDefinition(t, selfNodeRemediations, "selfnoderemediations.self-node-remediation.medik8s.io")
	withObjects(t, "role-medik8s.yaml")
	node, namespace, _ := fleet(t)
	controller := story.Start(t, cluster, byObject(namespace, selfNodeRemediation(namespace)))
	node.Break(t, gpu, "gpu-0")
	awaitObjects(t, 1, "-n", namespace, "selfnoderemediations")
	controller.Kill()
	code, out, problems := dhc.Command(t, "uninstall", "--kubeconfig", filepath.Join(cluster.Folder, "admin.kubeconfig"))
	if code != 0 || !strings.Contains(out, "removed SelfNodeRemediation "+namespace+"/"+node.Name+"\n") || !strings.Contains(out, "removed ConfigMap device-health-system/device-health-incidents\n") {
		t.Errorf("it ended with %d: %s%s", code, out, problems)
	}
	if found := objects(t, "-n", namespace, "selfnoderemediations"); len(found) != 0 {
		t.Errorf("there is %+v", found)
	}
}
