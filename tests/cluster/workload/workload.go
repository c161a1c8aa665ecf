// Package workload makes the objects that tests run on the cluster, and waits for their Pods.
package workload

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"device-health.io/controller/tests/cluster/realcluster"
)

// Deployment describes one: every Pod has one container named main.
type Deployment struct {
	Namespace, Name string
	Replicas        int32
	Resource        string            // a device-plugin resource, one per Pod
	ClaimTemplate   string            // or a ResourceClaimTemplate, one claim per Pod
	Claim           string            // or one ResourceClaim for all of them
	Annotations     map[string]string // of the Deployment, which its controller copies to the ReplicaSet
	PodAnnotations  map[string]string // of its Pods
	Arguments       []string          // of the image's program
	Grace           int64             // seconds to end; 0 means 1
	Finalizer       string            // of its Pods
	PodGroup        string            // that its Pods are of
}

// Labels select the Pods of a workload.
func Labels(name string) map[string]string { return map[string]string{"app": name} }

// Create makes the Deployment and waits until its Pods run.
func (d Deployment) Create(t *testing.T, cp *realcluster.ControlPlane) []corev1.Pod {
	t.Helper()
	d.CreateOnly(t, cp)
	return AwaitRunning(t, cp, d.Namespace, d.Name, int(d.Replicas))
}

// CreateOnly makes the Deployment and waits for nothing.
func (d Deployment) CreateOnly(t *testing.T, cp *realcluster.ControlPlane) {
	t.Helper()
	pod := OneContainer(d.Resource, d.ClaimTemplate, d.Claim, d.Arguments...)
	if d.Grace > 0 {
		pod.TerminationGracePeriodSeconds = &d.Grace
	}
	if d.PodGroup != "" {
		pod.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &d.PodGroup}
	}
	meta := metav1.ObjectMeta{Labels: Labels(d.Name), Annotations: d.PodAnnotations}
	if d.Finalizer != "" {
		meta.Finalizers = []string{d.Finalizer}
	}
	_, err := cp.Client.AppsV1().Deployments(d.Namespace).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: d.Name, Annotations: d.Annotations},
		Spec: appsv1.DeploymentSpec{
			Replicas: &d.Replicas, Selector: &metav1.LabelSelector{MatchLabels: Labels(d.Name)},
			Template: corev1.PodTemplateSpec{ObjectMeta: meta, Spec: pod},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// DaemonSet makes one whose Pod has one plugin device, and waits until it runs on the only node that has some.
func DaemonSet(t *testing.T, cp *realcluster.ControlPlane, namespace, name, device, node string) corev1.Pod {
	t.Helper()
	pod := OneContainer(device, "", "")
	pod.NodeSelector = map[string]string{"kubernetes.io/hostname": node}
	_, err := cp.Client.AppsV1().DaemonSets(namespace).Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: Labels(name)},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: Labels(name)}, Spec: pod}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return AwaitRunning(t, cp, namespace, name, 1)[0]
}

// Job describes one: every Pod has one container named main.
type Job struct {
	Namespace, Name string
	Parallelism     int32
	BackoffLimit    int32
	Resource        string   // a device-plugin resource, one per Pod
	ClaimTemplate   string   // or a ResourceClaimTemplate, one claim per Pod
	Claim           string   // or one ResourceClaim for all of them
	Arguments       []string // of the image's program
	Gated           bool     // each Pod is scheduled when Ungate says so, also those that replace others
	Change          func(*batchv1.Job)
}

// Create makes the Job, lets its Pods be scheduled and waits until they run.
func (j Job) Create(t *testing.T, cp *realcluster.ControlPlane) []corev1.Pod {
	t.Helper()
	pod := OneContainer(j.Resource, j.ClaimTemplate, j.Claim, j.Arguments...)
	pod.RestartPolicy = corev1.RestartPolicyNever
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: j.Name},
		Spec: batchv1.JobSpec{Parallelism: &j.Parallelism, Completions: &j.Parallelism, BackoffLimit: &j.BackoffLimit,
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: Labels(j.Name)}, Spec: pod}},
	}
	if j.Gated {
		job.Spec.Template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "story.test/gate"}}
	}
	if j.Change != nil {
		j.Change(job)
	}
	_, err := cp.Client.BatchV1().Jobs(j.Namespace).Create(t.Context(), job, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if j.Gated {
		Ungate(t, cp, j.Namespace, j.Name, int(j.Parallelism))
	}
	return AwaitRunning(t, cp, j.Namespace, j.Name, int(j.Parallelism))
}

// Ungate waits until so many Pods of a workload stand at their gate, and opens it.
func Ungate(t *testing.T, cp *realcluster.ControlPlane, namespace, name string, count int) {
	t.Helper()
	realcluster.Eventually(t, time.Minute, fmt.Sprintf("%d Pods of %s stand at their gate", count, name), func() error {
		gated := slices.DeleteFunc(Pods(t, cp, namespace, name), func(pod corev1.Pod) bool { return len(pod.Spec.SchedulingGates) == 0 })
		if len(gated) != count {
			return fmt.Errorf("%d do", len(gated))
		}
		for _, pod := range gated {
			patch := []byte(`{"spec":{"schedulingGates":null}}`)
			if _, err := cp.Client.CoreV1().Pods(namespace).Patch(t.Context(), pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		return nil
	})
}

// OneContainer is a Pod's specification with one container, main, that holds one device: of a plugin's resource, of a claim from a
// template, or of a claim that is there.
func OneContainer(device, claimTemplate, claim string, arguments ...string) corev1.PodSpec {
	seconds := int64(1)
	container := corev1.Container{Name: "main", Image: "registry.test/pause:1", Args: arguments}
	pod := corev1.PodSpec{TerminationGracePeriodSeconds: &seconds}
	if device != "" {
		container.Resources.Limits = corev1.ResourceList{corev1.ResourceName(device): resource.MustParse("1")}
	}
	if claimTemplate != "" || claim != "" {
		container.Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
		source := corev1.PodResourceClaim{Name: "gpu"}
		if claimTemplate != "" {
			source.ResourceClaimTemplateName = &claimTemplate
		} else {
			source.ResourceClaimName = &claim
		}
		pod.ResourceClaims = []corev1.PodResourceClaim{source}
	}
	pod.Containers = []corev1.Container{container}
	return pod
}

// StatefulSet makes one of a single Pod with one plugin device, and waits until it runs: its replacement has the same name.
func StatefulSet(t *testing.T, cp *realcluster.ControlPlane, namespace, name, device string) corev1.Pod {
	t.Helper()
	return StatefulSetOf(t, cp, namespace, name, 1, OneContainer(device, "", ""))[0]
}

// StatefulSetOf makes one of Pods as specified, and waits until they run.
func StatefulSetOf(t *testing.T, cp *realcluster.ControlPlane, namespace, name string, replicas int32, pod corev1.PodSpec) []corev1.Pod {
	t.Helper()
	_, err := cp.Client.AppsV1().StatefulSets(namespace).Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: Labels(name)}, PodManagementPolicy: appsv1.ParallelPodManagement,
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: Labels(name)}, Spec: pod},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return AwaitRunning(t, cp, namespace, name, int(replicas))
}

// Pods of a workload, without those that are ending or have ended.
func Pods(t *testing.T, cp *realcluster.ControlPlane, namespace, name string) (alive []corev1.Pod) {
	t.Helper()
	list, err := cp.Client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded {
			alive = append(alive, pod)
		}
	}
	return alive
}

// Describe says of each Pod of a workload, also of those that are ending, what keeps it from running.
func Describe(t *testing.T, cp *realcluster.ControlPlane, namespace, name string) string {
	t.Helper()
	list, err := cp.Client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		return err.Error()
	}
	var said []string
	for _, pod := range list.Items {
		one := fmt.Sprintf("%s is %s", pod.Name, pod.Status.Phase)
		if pod.DeletionTimestamp != nil {
			one += fmt.Sprintf(", ends until %s", pod.DeletionTimestamp.Format(time.TimeOnly))
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Status != corev1.ConditionTrue && condition.Message != "" {
				one += fmt.Sprintf(", not %s: %s", condition.Type, condition.Message)
			}
		}
		for _, container := range pod.Status.ContainerStatuses {
			if waiting := container.State.Waiting; waiting != nil {
				one += fmt.Sprintf(", %s waits: %s %s", container.Name, waiting.Reason, waiting.Message)
			}
		}
		said = append(said, one)
	}
	return strings.Join(said, "; ")
}

// AwaitRunning waits until exactly count Pods of a workload are Running.
func AwaitRunning(t *testing.T, cp *realcluster.ControlPlane, namespace, name string, count int) (pods []corev1.Pod) {
	t.Helper()
	realcluster.Eventually(t, time.Minute, fmt.Sprintf("%d Pods of %s Running", count, name), func() error {
		pods = Pods(t, cp, namespace, name)
		for _, pod := range pods {
			if pod.Status.Phase != corev1.PodRunning {
				return fmt.Errorf("%s is %s %v", pod.Name, pod.Status.Phase, pod.Status.Conditions)
			}
			for _, container := range pod.Status.ContainerStatuses { // phase Running says only that one has been started once
				if container.State.Waiting != nil || container.State.Terminated != nil {
					return fmt.Errorf("%s's container is %+v", pod.Name, container.State)
				}
			}
		}
		if len(pods) != count {
			return fmt.Errorf("%d Pods", len(pods))
		}
		return nil
	})
	return pods
}

// Budget makes a PodDisruptionBudget that keeps at least available Pods of the workload of its name, and waits until it counts.
func Budget(t *testing.T, cp *realcluster.ControlPlane, namespace, name string, available int) {
	t.Helper()
	BudgetOf(t, cp, namespace, name, name, available)
}

// BudgetOf makes one of another name: two that select the same Pods are one too many.
func BudgetOf(t *testing.T, cp *realcluster.ControlPlane, namespace, name, workload string, available int) {
	t.Helper()
	minimum := intstr.FromInt32(int32(available))
	_, err := cp.Client.PolicyV1().PodDisruptionBudgets(namespace).Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &minimum, Selector: &metav1.LabelSelector{MatchLabels: Labels(workload)}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	realcluster.Eventually(t, time.Minute, "the budget is observed", func() error {
		budget, err := cp.Client.PolicyV1().PodDisruptionBudgets(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && (budget.Status.ObservedGeneration == 0 || budget.Status.CurrentHealthy < int32(available)) {
			err = fmt.Errorf("%+v", budget.Status)
		}
		return err
	})
}

// AllowDisruptions changes a budget so that it keeps at least available Pods.
func AllowDisruptions(t *testing.T, cp *realcluster.ControlPlane, namespace, name string, available int) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"minAvailable":%d}}`, available)
	if _, err := cp.Client.PolicyV1().PodDisruptionBudgets(namespace).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// DeviceClass makes a class that selects every device of a driver, and a claim template for one of them; both get the
// template's name.
func DeviceClass(t *testing.T, cp *realcluster.ControlPlane, namespace, driver string) (template string) {
	t.Helper()
	return DeviceClassOf(t, cp, namespace, driver, 1)
}

// DeviceClassOf does the same, and the template's claims get count devices.
func DeviceClassOf(t *testing.T, cp *realcluster.ControlPlane, namespace, driver string, count int64) (template string) {
	t.Helper()
	template = realcluster.Unique("devices")
	_, err := cp.Client.ResourceV1().DeviceClasses().Create(t.Context(), &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: template},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{
			{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)}}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = cp.Client.ResourceV1().ResourceClaimTemplates(namespace).Create(t.Context(), &resourcev1.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: template},
		Spec:       resourcev1.ResourceClaimTemplateSpec{Spec: claimOf(template, count)},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return template
}

// Claim makes a claim of its own, for one device of a class, that any Pod may name.
func Claim(t *testing.T, cp *realcluster.ControlPlane, namespace, name, class string) {
	t.Helper()
	_, err := cp.Client.ResourceV1().ResourceClaims(namespace).Create(t.Context(), &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: claimOf(class, 1)}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func claimOf(class string, count int64) resourcev1.ResourceClaimSpec {
	return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
		{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count}}}}}
}

// Device is the plugin device, or the last part of the DRA device's ID, that a Pod's first container shows.
func Device(pod corev1.Pod) (id string, health corev1.ResourceHealthStatus) {
	for _, container := range pod.Status.ContainerStatuses {
		for _, entry := range container.AllocatedResourcesStatus {
			for _, r := range entry.Resources {
				return string(r.ResourceID), r.Health
			}
		}
	}
	return "", ""
}

// Condition of a Pod by type, or nil.
func Condition(pod *corev1.Pod, kind string) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if string(pod.Status.Conditions[i].Type) == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}
