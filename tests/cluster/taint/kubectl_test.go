package taint

import (
	"archive/tar"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// A reader sees the bad device by the status alone, without a way to the controller's Pod and without any other right; an operator acknowledges it, and its taint goes.
func TestAReaderSeesTheBadDeviceAndAnOperatorsAckEndsItsTaint(t *testing.T) {
	dhc.InstallRolesForPeople(t, cluster)
	r := newRack(t, cluster, 2)
	sick, device := r.holder(t)
	controller := r.start(t, dhc.Policy{NoEvict: true, Recover: "{hold: 24h}"})
	r.breaks(device)
	rule := r.awaitRule(t, device, "NoSchedule")
	_, reader := dhc.Person(t, cluster, dhc.ReaderRole, dhc.Namespace)
	var seen struct {
		Devices []struct {
			Device, Node, Health, Said, Holder, Taint string
			Next                                      struct{ Reason, Gate string }
		}
	}
	realcluster.Eventually(t, 30*time.Second, "the reader sees the tainted device", func() error {
		code, out, problem := dhc.Command(t, "devices", "--kubeconfig", reader, "-o", "json")
		if code != 0 {
			return fmt.Errorf("code %d: %s", code, problem)
		}
		if err := json.Unmarshal([]byte(out), &seen); err != nil {
			t.Fatal(err)
		}
		if len(seen.Devices) != 1 || seen.Devices[0].Taint != "rule "+rule.Name {
			return fmt.Errorf("it shows %s", out)
		}
		return nil
	})
	if d := seen.Devices[0]; d.Device != r.driver+"/"+r.node.Name+"/"+device || d.Node != r.node.Name || d.Health != "Unhealthy" || d.Said != "Xid 79" || d.Holder != sick.Namespace+"/"+sick.Name {
		t.Errorf("it shows %+v", d)
	}
	if code, out, problem := dhc.Command(t, "explain", "pod/"+sick.Name, "-n", sick.Namespace, "--kubeconfig", reader); code != 0 || !strings.Contains(out, "held by gate 6 of ") {
		t.Errorf("explain ends with %d: %s%s", code, out, problem)
	}
	if code, _, problem := dhc.Command(t, "ack", "device", device, "--kubeconfig", reader); code != 1 || !strings.Contains(problem, "cannot get resource \"devicetaintrules\"") {
		t.Errorf("a reader's ack ends with %d: %s", code, problem)
	}
	_, operator := dhc.Person(t, cluster, dhc.OperatorRole, "")
	if code, out, problem := dhc.Command(t, "ack", "device", device, "--reason", "fan replaced", "--kubeconfig", operator); code != 0 || !strings.Contains(out, acknowledge+"=fan replaced") {
		t.Fatalf("ack ends with %d: %s%s", code, out, problem)
	}
	controller.AwaitVerdict(t, r.node.Name, "Acknowledged")
	r.awaitNoRule(t, 20*time.Second) // the verdict is of the turn that asks for its removal
	r.staysWithoutRule(t)
	maps := cluster.Client.CoreV1().ConfigMaps(dhc.Namespace)
	_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: dhc.ConfigMap}}, metav1.CreateOptions{})
	must(t, err)
	defer func() { must(t, maps.Delete(t.Context(), dhc.ConfigMap, metav1.DeleteOptions{})) }()
	if code, out, problem := dhc.Command(t, "pause", "--for", "1h", "--kubeconfig", operator, "--dry-run"); code != 0 || !strings.Contains(out, "pause-until=") {
		t.Errorf("pause ends with %d: %s%s", code, out, problem)
	}
	realcluster.Eventually(t, 90*time.Second, "the reader sees that it is acknowledged", func() error {
		code, out, problem := dhc.Command(t, "incidents", "--kubeconfig", reader)
		if code != 0 || !strings.Contains(out, "Acknowledged") {
			return fmt.Errorf("code %d: %s%s", code, out, problem)
		}
		return nil
	})
}

// kubectl finds the plugin by its name, and completes it by the other.
func TestKubectlRunsAndCompletesThePlugin(t *testing.T) {
	dhc.InstallRolesForPeople(t, cluster)
	r := newRack(t, cluster, 2)
	sick, device := r.holder(t)
	r.start(t, dhc.Policy{NoEvict: true, Recover: "{hold: 24h}"})
	r.breaks(device)
	r.awaitRule(t, device, "NoSchedule")
	_, reader := dhc.Person(t, cluster, dhc.ReaderRole, dhc.Namespace)
	binary, err := dhc.Binary()
	must(t, err)
	folder := t.TempDir()
	for _, name := range []string{"kubectl-device_health", "kubectl_complete-device_health"} {
		must(t, os.Symlink(binary, filepath.Join(folder, name)))
	}
	realcluster.Eventually(t, 30*time.Second, "kubectl shows the bad device", func() error {
		out, err := cluster.KubectlIn(folder, "device-health", "devices", "--kubeconfig", reader)
		if err != nil || !strings.Contains(out, device) || !strings.Contains(out, sick.Namespace+"/"+sick.Name) {
			return fmt.Errorf("%s%v", out, err)
		}
		return nil
	})
	if out, err := cluster.KubectlIn(folder, "__complete", "device-health", "expl"); err != nil || !strings.HasPrefix(out, "explain") {
		t.Errorf("kubectl completes it with %q: %v", out, err)
	}
	if out, err := cluster.KubectlIn(t.TempDir(), "device-health", "devices", "--kubeconfig", reader); err == nil {
		t.Errorf("it is found in a folder without it: %s", out)
	}
	// What somebody sees who has never heard of it.
	realcluster.Eventually(t, 30*time.Second, "kubectl describe pod says what comes next", func() error {
		out, err := cluster.Kubectl("", "describe", "pod", sick.Name, "--namespace", sick.Namespace)
		if err != nil || !strings.Contains(out, "device-health.io/DeviceUnhealthy") || !strings.Contains(out, "Xid 79; next: nothing, the policy has no evict section") {
			return fmt.Errorf("%s%v", out, err)
		}
		return nil
	})
}

// The API server adds the reader's rights to `view`, so who has that where the controller runs needs no other role: it reads the status, and the Lease, which `view`
// alone does not let it.
func TestWhoHasViewReadsWhoLeadsAndWhatIsBadAndWritesNothing(t *testing.T) {
	dhc.InstallRolesForPeople(t, cluster)
	r := newRack(t, cluster, 2)
	sick, device := r.holder(t)
	settings := r.settings(t, dhc.Policy{NoEvict: true, Recover: "{hold: 24h}"})
	settings.Elect = true
	story.Start(t, cluster, settings)
	r.breaks(device)
	rule := r.awaitRule(t, device, "NoSchedule")
	dhc.WriteConfigMap(t, cluster, "") // which a pause would be written on; the controller has a file
	defer func() {
		must(t, cluster.Client.CoreV1().ConfigMaps(dhc.Namespace).Delete(t.Context(), dhc.ConfigMap, metav1.DeleteOptions{}))
	}()
	for where, namespace := range map[string]string{"in the cluster": "", "in the controller's namespace": dhc.Namespace} {
		t.Run(where, func(t *testing.T) {
			_, viewer := dhc.Person(t, cluster, "view", namespace)
			realcluster.Eventually(t, 30*time.Second, "who may view reads it", func() error {
				code, out, problem := dhc.Command(t, "devices", "--kubeconfig", viewer, "-o", "wide")
				if code != 0 || problem != "" || !strings.Contains(out, rule.Name) || !strings.Contains(out, sick.Namespace+"/"+sick.Name) {
					return fmt.Errorf("code %d: %s%s", code, out, problem)
				}
				return nil
			})
			for _, arguments := range [][]string{{"incidents"}, {"lemons"}, {"explain", "node/" + r.node.Name}, {"explain", "pod/" + sick.Name, "-n", sick.Namespace}} {
				if code, out, problem := dhc.Command(t, append(arguments, "--kubeconfig", viewer)...); code != 0 || problem != "" || !strings.Contains(out, device) {
					t.Errorf("%v ends with %d: %s%s", arguments, code, out, problem)
				}
			}
			for _, arguments := range [][]string{{"ack", "device", device}, {"ack", "node", r.node.Name}, {"release-brake", "node", r.node.Name}, {"pause", "--for", "1h"}} {
				if code, _, problem := dhc.Command(t, append(arguments, "--kubeconfig", viewer)...); code != 1 || !strings.Contains(problem, "cannot ") {
					t.Errorf("%v ends with %d: %s", arguments, code, problem)
				}
			}
		})
	}
}

// A tenant with `view` in its own namespace may not read the status: it is told of its own Pods what their conditions and Events say, and of nobody else's.
func TestATenantSeesTheConditionAndTheEventsOfItsOwnPodsAlone(t *testing.T) {
	dhc.InstallRolesForPeople(t, cluster)
	r := newRack(t, cluster, 2)
	sick, device := r.holder(t)
	others := cluster.Namespace(t)
	r.start(t, dhc.Policy{NoEvict: true, Recover: "{hold: 24h}"})
	r.breaks(device)
	condition := story.AwaitCondition(t, cluster, sick, corev1.ConditionTrue)
	event := story.AwaitEvent(t, cluster, sick.Namespace, sick.Name, "DeviceUnhealthy")
	_, tenant := dhc.Person(t, cluster, "view", r.namespace)
	var code int
	var out, problem string
	realcluster.Eventually(t, 30*time.Second, "the tenant may read its Pods", func() error { // the authorizer's view of the new binding may lag
		if code, out, problem = dhc.Command(t, "devices", "-n", r.namespace, "--kubeconfig", tenant); code != 0 {
			return fmt.Errorf("code %d: %s%s", code, out, problem)
		}
		return nil
	})
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 2 || strings.Join(strings.Fields(lines[0]), " ") != "POD NODE DEVICE UNHEALTHY FOR REASON MESSAGE" {
		t.Fatalf("devices shows %s", out)
	}
	if fields := strings.Fields(lines[1]); fields[0] != sick.Name || fields[1] != r.node.Name || fields[2] != "True" || fields[4] != condition.Reason || !strings.HasSuffix(lines[1], condition.Message) {
		t.Errorf("devices shows %q", lines[1])
	}
	if !strings.Contains(problem, "the status may not be read") {
		t.Errorf("it does not say where that is from: %s", problem)
	}
	code, out, problem = dhc.Command(t, "explain", "pod/"+sick.Name, "-n", r.namespace, "--kubeconfig", tenant)
	for _, words := range []string{"Pod " + sick.Name + " on " + r.node.Name, story.Condition + "=True since ", condition.Message, "Events of the controller", "DeviceUnhealthy: " + event.Note} {
		if code != 0 || !strings.Contains(out, words) {
			t.Errorf("explain ends with %d and does not say %q: %s%s", code, words, out, problem)
		}
	}
	for _, arguments := range [][]string{{"devices"}, {"devices", "-n", others}, {"devices", "-n", r.namespace, "-o", "json"}, {"explain", "node/" + r.node.Name}, {"incidents"}} {
		if code, out, problem := dhc.Command(t, append(arguments, "--kubeconfig", tenant)...); code != 1 || out != "" || !strings.Contains(problem, "--clusterrole=device-health-reader") {
			t.Errorf("%v ends with %d: %s%s", arguments, code, out, problem)
		}
	}
	if code, out, problem := dhc.Command(t, "explain", "pod/work", "-n", others, "--kubeconfig", tenant); code != 1 || out != "" || !strings.Contains(problem, `cannot get resource "pods"`) {
		t.Errorf("of another's Pod: %d: %s%s", code, out, problem)
	}
}

func TestAJobIsExplainedAndABundleHasWhatABugReportNeedsWithoutSecrets(t *testing.T) {
	dhc.InstallRolesForPeople(t, cluster)
	r := newRack(t, cluster, 2)
	sick := workload.Job{Namespace: r.namespace, Name: "train", Parallelism: 1, BackoffLimit: 3, ClaimTemplate: r.template}.Create(t, cluster)[0]
	device := deviceOf(sick)
	const secret = "a-token-in-an-environment"
	ours := map[string]string{"app.kubernetes.io/name": "device-health-controller"}
	planted := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "planted", Labels: ours}, Spec: appsv1.DeploymentSpec{Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: ours}, Template: corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: ours}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none", Env: []corev1.EnvVar{{Name: "TOKEN", Value: secret}}}}}}}}
	_, err := cluster.Client.AppsV1().Deployments(dhc.Namespace).Create(t.Context(), planted, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		_ = cluster.Client.AppsV1().Deployments(dhc.Namespace).Delete(context.Background(), "planted", metav1.DeleteOptions{})
	})
	r.start(t, dhc.Policy{NoEvict: true, Recover: "{hold: 24h}"})
	r.breaks(device)
	r.awaitRule(t, device, "NoSchedule")
	_, reader := dhc.Person(t, cluster, dhc.ReaderRole, dhc.Namespace)
	realcluster.Eventually(t, 90*time.Second, "the Job is explained by its pod and its device", func() error {
		code, out, problem := dhc.Command(t, "explain", "job/train", "-n", r.namespace, "--kubeconfig", reader)
		if code != 0 || !strings.Contains(out, sick.Name) || !strings.Contains(out, device) {
			return fmt.Errorf("code %d: %s%s", code, out, problem)
		}
		return nil
	})
	archive := filepath.Join(t.TempDir(), "bundle.tar")
	if code, out, problem := dhc.Command(t, "support-bundle", "-f", archive, "--kubeconfig", filepath.Join(cluster.Folder, "admin.kubeconfig")); code != 0 {
		t.Fatalf("support-bundle ends with %d: %s%s", code, out, problem)
	}
	files := bundleOf(t, archive)
	for name, words := range map[string]string{"status.json": device, "state.json": device, "devicetaintrules.json": device, "deployments.json": "planted", "program.txt": ".", "nodes.json": r.node.Name} {
		if !strings.Contains(files[name], words) {
			t.Errorf("%s does not say %q: %s", name, words, files[name])
		}
	}
	for name, text := range files {
		if strings.Contains(text, secret) {
			t.Errorf("%s tells the secret", name)
		}
	}
}

// bundleOf is the text of each file of an archive, by its name without folders.
func bundleOf(t *testing.T, archive string) map[string]string {
	t.Helper()
	file, err := os.Open(archive)
	must(t, err)
	defer file.Close()
	files := map[string]string{}
	for reader := tar.NewReader(file); ; {
		header, err := reader.Next()
		if err == io.EOF {
			return files
		}
		must(t, err)
		text, err := io.ReadAll(reader)
		must(t, err)
		files[path.Base(header.Name)] = string(text)
	}
}
