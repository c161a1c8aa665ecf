package fakenode

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func isConflict(err error) bool { return apierrors.IsConflict(err) }

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// sync does for one Pod what a kubelet would do next.
func (n *Node) sync(ctx context.Context, pod *corev1.Pod) error {
	if pod.DeletionTimestamp != nil {
		return n.end(ctx, pod)
	}
	if finished(pod) {
		delete(n.assigned, string(pod.UID)) // its devices are free again
		return nil
	}
	if n.assigned[string(pod.UID)] == nil {
		devices, lacking := n.assign(pod)
		if lacking != "" {
			return n.write(ctx, pod, map[string]any{"phase": "Failed", "reason": "UnexpectedAdmissionError",
				"message": "Allocate failed due to requested number of devices unavailable for " + lacking + ", which is unexpected"})
		}
		n.assigned[string(pod.UID)] = devices
	}
	return n.write(ctx, pod, n.runningStatus(pod))
}

// assign gives a Pod healthy free devices of each plugin resource that it asks for; DRA devices are in its claims already.
func (n *Node) assign(pod *corev1.Pod) (got map[device]bool, lacking string) {
	got = map[device]bool{}
	for _, container := range pod.Spec.Containers {
		for name, wanted := range container.Resources.Limits {
			for range wanted.Value() {
				if n.spec.Plugin[string(name)] == nil {
					break
				}
				d, ok := n.free(string(name), got)
				if !ok {
					return nil, string(name)
				}
				got[d] = true
			}
		}
	}
	return got, ""
}

func (n *Node) free(resource string, also map[device]bool) (device, bool) {
	for _, id := range n.spec.Plugin[resource] {
		d := device{resource, id}
		taken := also[d] || n.healthOf(d).health != "Healthy"
		for _, devices := range n.assigned {
			taken = taken || devices[d]
		}
		if !taken {
			return d, true
		}
	}
	return device{}, false
}

func (n *Node) runningStatus(pod *corev1.Pod) map[string]any {
	started := pod.CreationTimestamp.UTC().Format(time.RFC3339)
	containers, taken := []any{}, map[device]bool{}
	for _, container := range pod.Spec.Containers {
		status := map[string]any{
			"name": container.Name, "image": container.Image, "imageID": "none", "ready": true, "started": true, "restartCount": 0,
			"state": map[string]any{"running": map[string]any{"startedAt": started}},
		}
		if health := append(n.pluginHealth(pod, container, taken), n.claimHealth(pod, container)...); len(health) > 0 {
			status["allocatedResourcesStatus"] = health
		}
		containers = append(containers, status)
	}
	conditions := []any{}
	for _, kind := range []string{"PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"} {
		conditions = append(conditions, map[string]any{"type": kind, "status": "True", "lastTransitionTime": started})
	}
	status := map[string]any{"phase": "Running", "startTime": started, "conditions": conditions, "containerStatuses": containers}
	for field, value := range n.extra[pod.UID] {
		status[field] = value
	}
	return status
}

func (n *Node) pluginHealth(pod *corev1.Pod, container corev1.Container, taken map[device]bool) (entries []any) {
	for name, wanted := range container.Resources.Limits {
		var mine []device
		for d := range n.assigned[string(pod.UID)] {
			if d.source == string(name) && !taken[d] {
				mine = append(mine, d)
			}
		}
		if len(mine) == 0 {
			continue
		}
		sort.Slice(mine, func(i, j int) bool { return mine[i].id < mine[j].id })
		resources := []any{}
		for _, d := range mine[:min(int(wanted.Value()), len(mine))] {
			taken[d] = true
			resources = append(resources, map[string]any{"resourceID": d.id, "health": n.healthOf(d).health})
		}
		entries = append(entries, map[string]any{"name": string(name), "resources": resources})
	}
	return entries
}

// end finishes a terminating Pod as a kubelet does: a final phase, then removal of the object it is sure about.
func (n *Node) end(ctx context.Context, pod *corev1.Pod) error {
	uid := string(pod.UID)
	if n.ending[uid].IsZero() {
		n.ending[uid] = time.Now().Add(n.spec.Termination)
	}
	if n.spec.StepByStep && n.step < end || !n.spec.StepByStep && time.Now().Before(n.ending[uid]) {
		return nil
	}
	if !finished(pod) {
		phase := corev1.PodFailed
		if n.spec.ExitZero {
			phase = corev1.PodSucceeded
		}
		status := map[string]any{"phase": phase}
		if n.spec.ExitCode != 0 {
			status["containerStatuses"] = n.exited(pod)
		}
		if err := n.write(ctx, pod, status); err != nil {
			return err
		}
	}
	if n.spec.StepByStep && n.step < goAway {
		return nil
	}
	delete(n.assigned, uid)
	zero := int64(0)
	err := n.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero, Preconditions: &metav1.Preconditions{UID: &pod.UID}})
	if apierrors.IsNotFound(err) || isConflict(err) {
		return nil
	}
	return err
}

func (n *Node) exited(pod *corev1.Pod) (containers []any) {
	now := time.Now().UTC().Format(time.RFC3339)
	for _, container := range pod.Spec.Containers {
		containers = append(containers, map[string]any{
			"name": container.Name, "image": container.Image, "imageID": "none", "ready": false, "started": false, "restartCount": 0,
			"state": map[string]any{"terminated": map[string]any{"exitCode": n.spec.ExitCode, "reason": "Error", "finishedAt": now}},
		})
	}
	return containers
}

// write patches the Pod's status as the kubelet does: strategic merge, so that conditions of others stay. An unchanged status is
// not written again.
func (n *Node) write(ctx context.Context, pod *corev1.Pod, status map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return err
	}
	if n.shown[string(pod.UID)] == string(patch) {
		return nil
	}
	_, err = n.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) && strings.Contains(err.Error(), "uid") {
		return nil // the Pod went away, or its name is another Pod's by now
	}
	if err != nil {
		return fmt.Errorf("status: %w", err)
	}
	n.shown[string(pod.UID)] = string(patch)
	return nil
}
