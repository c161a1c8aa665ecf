package controller

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

type notice struct {
	Action, Device, Exit, Pod string
	At, Deadline              time.Time
}

// awaitNotice gives the Pod's notice of an eviction, and the Pod.
func awaitNotice(t *testing.T, pod corev1.Pod) (told notice, seen *corev1.Pod) {
	t.Helper()
	realcluster.Eventually(t, 15*time.Second, pod.Name+" is told of its eviction", func() (err error) {
		seen, err = cluster.Client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(seen.Annotations["device-health.io/notice"]), &told); err != nil {
			return fmt.Errorf("%q: %w", seen.Annotations["device-health.io/notice"], err)
		}
		if told.Action != "evict" {
			return fmt.Errorf("action %q", told.Action)
		}
		return nil
	})
	return told, seen
}

func respond(t *testing.T, pod corev1.Pod, answer string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{"device-health.io/notice-response": answer}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Client.CoreV1().Pods(pod.Namespace).Patch(t.Context(), pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestAPodIsToldWithItsConditionAndGoesOnceItAnswers(t *testing.T) {
	node, namespace, pods := fleet(t, cluster, fakenode.Spec{})
	sick, peer := story.Holder(t, pods, "gpu-0"), story.Holder(t, pods, "gpu-1")
	controller := story.Start(t, cluster, dhc.Settings{Policy: dhc.Policy{Namespace: namespace, Notice: "{deadline: 10m, extendUpTo: 1h, scope: Owner}"}.Text()})
	node.Break(t, gpu, "gpu-0")
	told, seen := awaitNotice(t, sick)
	has := false
	for _, one := range seen.Status.Conditions {
		has = has || one.Type == story.Condition && one.Status == corev1.ConditionTrue
	}
	if !has || told.Deadline.Sub(told.At) != 10*time.Minute || told.Exit != "safe" {
		t.Errorf("condition %v, told %+v", has, told)
	}
	controller.AwaitVerdict(t, sick.Name, "WaitingForCheckpoint")
	awaitPeers := func(of string) {
		realcluster.Eventually(t, 15*time.Second, "its peer hears of "+of, func() error {
			now, err := cluster.Client.CoreV1().Pods(namespace).Get(t.Context(), peer.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			var heard notice
			text := now.Annotations["device-health.io/notice"]
			if err := json.Unmarshal([]byte(text), &heard); text != "" && err != nil {
				return err
			}
			if heard.Pod != of || of != "" && (heard.Action != "peer" || !heard.At.Equal(told.At)) {
				return fmt.Errorf("it hears %q", text)
			}
			return nil
		})
	}
	awaitPeers(sick.Name)
	respond(t, sick, "soon")
	controller.AwaitVerdict(t, sick.Name, "AnnotationRefused")
	respond(t, sick, "extend-until: "+told.Deadline.Add(20*time.Minute).UTC().Format(time.RFC3339))
	realcluster.Eventually(t, 15*time.Second, "the notice says how long the Pod may stay", func() error {
		if now, _ := awaitNotice(t, sick); now.Deadline.Sub(told.Deadline) != 20*time.Minute || !now.At.Equal(told.At) {
			return fmt.Errorf("it says %+v", now)
		}
		return nil
	})
	controller.Stays(t, sick, 2*time.Second)
	respond(t, sick, "done")
	story.AwaitReplacement(t, cluster, sick, 2)
	story.ExpectEvictedOnce(t, controller, sick)
	story.AwaitEvent(t, cluster, namespace, sick.Name, "AnsweredDone")
	awaitPeers("")
}

func TestALauncherWithoutADeviceHearsOfThePodThatGoesIfItsVolumeShowsTheNotice(t *testing.T) {
	namespace := cluster.Namespace(t)
	node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: gpus(4)})
	torch := workload.CustomKind{Group: "kubeflow.org", Kind: "PyTorchJob"}
	torch.Create(t, cluster)
	sick := torch.Own(t, cluster, namespace, "train", gpu)
	for name, listens := range map[string]bool{"master": true, "deaf": false} {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: sick.OwnerReferences}, Spec: workload.OneContainer("", "", "")}
		if listens {
			pod.Spec.Volumes = []corev1.Volume{{Name: "device-health", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "notice", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['device-health.io/notice']"}}}}}}}
		}
		if _, err := cluster.Client.CoreV1().Pods(namespace).Create(t.Context(), &pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	heard := func(name string) string {
		pod, err := cluster.Client.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return pod.Annotations["device-health.io/notice"]
	}
	controller := story.Start(t, cluster, dhc.Settings{Policy: dhc.Policy{Namespace: namespace, Notice: "{deadline: 10m, scope: Owner}"}.Text()})
	device, _ := workload.Device(sick)
	node.Break(t, gpu, device)
	told, _ := awaitNotice(t, sick)
	realcluster.Eventually(t, 15*time.Second, "the launcher hears of it", func() error {
		var said notice
		text := heard("master")
		if err := json.Unmarshal([]byte(text), &said); err != nil || said.Action != "peer" || said.Pod != sick.Name || !said.Deadline.Equal(told.Deadline) {
			return fmt.Errorf("it hears %q", text)
		}
		return nil
	})
	controller.Stays(t, sick, 2*time.Second)
	if text := heard("deaf"); text != "" {
		t.Errorf("a Pod that has no such volume hears %q", text)
	}
}

func TestASilentPodGoesAtTheDeadlineThatItWasToldAcrossARestartAndATenantsOwnNotice(t *testing.T) {
	node, namespace, pods := fleet(t, cluster, fakenode.Spec{})
	sick := story.Holder(t, pods, "gpu-0")
	settings := dhc.Settings{Policy: dhc.Policy{Namespace: namespace, Notice: "{deadline: 25s}"}.Text()}
	first := story.Start(t, cluster, settings)
	node.Break(t, gpu, "gpu-0")
	told, _ := awaitNotice(t, sick)
	first.Kill()
	forged := fmt.Sprintf(`{"metadata":{"annotations":{"device-health.io/notice":%q}}}`, `{"v":1,"action":"evict","at":"2099-01-01T00:00:00Z"}`)
	if _, err := cluster.Client.CoreV1().Pods(namespace).Patch(t.Context(), sick.Name, types.MergePatchType, []byte(forged), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	second := story.Start(t, cluster, settings)
	story.AwaitReplacement(t, cluster, sick, 2)
	at := second.EvictedAt(t, sick)
	if early := told.Deadline.Sub(at); early > 0 {
		t.Errorf("evicted %s before the deadline %s", early, told.Deadline)
	}
	if late := at.Sub(told.Deadline); late > 10*time.Second {
		t.Errorf("evicted %s after the deadline", late)
	}
	story.ExpectEvictedOnce(t, second, sick)
}
