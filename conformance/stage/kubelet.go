package stage

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// nudge has the kubelet look again.
func (s *Stage) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// runKubelet does for the pods of all nodes of the stage what their kubelets would do, until the stage closes.
func (s *Stage) runKubelet() {
	heart := time.NewTicker(heartbeat)
	defer heart.Stop()
	shown := map[types.UID]string{} // the status last written
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-heart.C:
			for _, n := range s.everyNode() {
				s.report("heartbeat of "+n.Name, s.beat(s.ctx, n))
			}
		case <-s.wake:
			again := false
			for _, pod := range s.sortedPods() {
				if pod.Spec.NodeName == "" || s.node(pod.Spec.NodeName) == nil {
					continue
				}
				err := s.sync(pod, shown)
				s.report("kubelet of "+pod.Name, err)
				again = again || err != nil
			}
			if again {
				time.AfterFunc(200*time.Millisecond, s.nudge)
			}
		}
	}
}

func (s *Stage) report(what string, err error) {
	if s.ctx.Err() != nil {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if delete(s.troubles, what); err != nil {
		s.troubles[what] = err
	}
}

func (s *Stage) node(name string) *Node {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.nodes[name]
}

func (s *Stage) sortedPods() (pods []*corev1.Pod) {
	for _, object := range s.pods.List() {
		pods = append(pods, object.(*corev1.Pod))
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

func (s *Stage) sync(pod *corev1.Pod, shown map[types.UID]string) error {
	if pod.DeletionTimestamp != nil {
		return s.end(pod, shown)
	}
	if finished(pod) {
		return nil
	}
	life := s.lifeOf(pod)
	if !life.admitted {
		devices, lacking, err := s.allocate(pod)
		if err != nil {
			return err
		}
		if lacking != "" {
			return s.write(pod, shown, map[string]any{"phase": "Failed", "reason": "UnexpectedAdmissionError",
				"message": "Allocate failed due to requested number of devices unavailable for " + lacking + ", which is unexpected"})
		}
		s.mutex.Lock()
		life.admitted, life.Devices = true, devices
		s.mutex.Unlock()
	}
	s.mutex.Lock()
	completes := life.completes
	s.mutex.Unlock()
	if completes {
		return s.write(pod, shown, s.status(pod, life, corev1.PodSucceeded, 0))
	}
	return s.write(pod, shown, s.status(pod, life, corev1.PodRunning, 0))
}

// allocate finds the devices that the scheduler gave to the pod's claims, and gives it healthy free ones of each plugin.
func (s *Stage) allocate(pod *corev1.Pod) (devices []Device, lacking string, err error) {
	for _, entry := range pod.Spec.ResourceClaims {
		results, err := s.results(pod, entry.Name)
		if err != nil {
			return nil, "", err
		}
		devices = append(devices, s.devicesOf(results)...)
	}
	if status := pod.Status.ExtendedResourceClaimStatus; status != nil {
		claim, err := s.Client.ResourceV1().ResourceClaims(pod.Namespace).Get(s.ctx, status.ResourceClaimName, metav1.GetOptions{})
		if err != nil || claim.Status.Allocation == nil {
			return nil, "", fmt.Errorf("claim of extended resources: %w", err)
		}
		return s.devicesOf(claim.Status.Allocation.Devices.Results), "", nil
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, source := range s.sources {
		if source.DRA {
			continue
		}
		wanted := pod.Spec.Containers[0].Resources.Limits[corev1.ResourceName(source.Name)]
		for range wanted.Value() {
			d, ok := s.free(s.nodes[pod.Spec.NodeName], source, devices)
			if !ok {
				return nil, source.Name, nil
			}
			devices = append(devices, d)
		}
	}
	return devices, "", nil
}

func (s *Stage) free(n *Node, source *Source, also []Device) (Device, bool) {
	for _, name := range n.devices[source] {
		d := Device{n.Name, source, name}
		taken := slices.Contains(also, d) || n.healthOf(d) != corev1.ResourceHealthStatusHealthy
		for _, life := range s.lives {
			taken = taken || !life.Gone && !life.ended && slices.Contains(life.Devices, d)
		}
		if !taken {
			return d, true
		}
	}
	return Device{}, false
}

// results are the devices of one of the pod's claims.
func (s *Stage) results(pod *corev1.Pod, podClaim string) ([]resourcev1.DeviceRequestAllocationResult, error) {
	name := ""
	for _, entry := range pod.Spec.ResourceClaims {
		if entry.Name == podClaim && entry.ResourceClaimName != nil {
			name = *entry.ResourceClaimName
		}
	}
	for _, made := range pod.Status.ResourceClaimStatuses {
		if made.Name == podClaim && made.ResourceClaimName != nil {
			name = *made.ResourceClaimName
		}
	}
	claim, err := s.Client.ResourceV1().ResourceClaims(pod.Namespace).Get(s.ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if claim.Status.Allocation == nil {
		return nil, fmt.Errorf("claim %s has no devices yet", name)
	}
	return claim.Status.Allocation.Devices.Results, nil
}

func (s *Stage) devicesOf(results []resourcev1.DeviceRequestAllocationResult) (devices []Device) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, result := range results {
		for _, source := range s.sources {
			if source.DRA && source.Name == result.Driver {
				devices = append(devices, Device{result.Pool, source, result.Device})
			}
		}
	}
	return devices
}

// status is what a kubelet shows of a pod in this phase.
func (s *Stage) status(pod *corev1.Pod, life *Life, phase corev1.PodPhase, exit int) map[string]any {
	started := pod.CreationTimestamp.UTC().Format(time.RFC3339)
	running, ready := phase == corev1.PodRunning, "False"
	state := map[string]any{"running": map[string]any{"startedAt": started}}
	if running {
		ready = "True"
	} else {
		state = map[string]any{"running": nil, "terminated": map[string]any{"exitCode": exit, "reason": map[bool]string{true: "Completed", false: "Error"}[exit == 0],
			"startedAt": started, "finishedAt": time.Now().UTC().Format(time.RFC3339)}}
	}
	container := map[string]any{"name": pod.Spec.Containers[0].Name, "image": pod.Spec.Containers[0].Image, "imageID": "none",
		"ready": running, "started": running, "restartCount": 0, "state": state}
	if health := s.health(pod, life); len(health) > 0 {
		container["allocatedResourcesStatus"] = health
	}
	conditions := []any{}
	for _, kind := range []string{"PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"} {
		conditions = append(conditions, map[string]any{"type": kind, "status": ready, "lastTransitionTime": started})
	}
	return map[string]any{"phase": phase, "startTime": started, "conditions": conditions, "containerStatuses": []any{container}}
}

// health is what it shows of the pod's devices: of a plugin by resource, of a claim by claim, of claims for extended resources nothing.
func (s *Stage) health(pod *corev1.Pod, life *Life) (entries []any) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, source := range s.sources {
		resources := []any{}
		for _, d := range life.Devices {
			if d.Source != source || source.Extended != "" {
				continue
			}
			entry := map[string]any{"resourceID": d.resourceID(), "health": s.nodes[d.Node].healthOf(d)}
			if source.DRA && entry["health"] == corev1.ResourceHealthStatusUnhealthy {
				entry["message"] = "it does not answer"
			}
			resources = append(resources, entry)
		}
		if len(resources) == 0 {
			continue
		}
		name := source.Name
		if source.DRA {
			name = "claim:" + pod.Spec.Containers[0].Resources.Claims[0].Name
		}
		entries = append(entries, map[string]any{"name": name, "resources": resources})
	}
	return entries
}

// end finishes a pod that was told to end, once it has had its time: a last status, then the removal of the object.
func (s *Stage) end(pod *corev1.Pod, shown map[types.UID]string) error {
	life := s.lifeOf(pod)
	s.mutex.Lock()
	if life.endsAt.IsZero() {
		life.endsAt = time.Now().Add(life.takes)
	}
	left := time.Until(life.endsAt)
	s.mutex.Unlock()
	if left > 0 {
		time.AfterFunc(left, s.nudge)
		if finished(pod) || !life.admitted {
			return nil
		}
		return s.write(pod, shown, s.status(pod, life, corev1.PodRunning, 0)) // until then it runs, and its devices' health is reported
	}
	if !finished(pod) {
		if err := s.write(pod, shown, s.status(pod, life, corev1.PodFailed, 143)); err != nil {
			return err
		}
	}
	s.mutex.Lock()
	life.ended = true
	s.mutex.Unlock()
	err := s.Client.CoreV1().Pods(pod.Namespace).Delete(s.ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{UID: &pod.UID}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// write patches the pod's status as a kubelet does, so that conditions of others stay. What is shown already is not written again.
func (s *Stage) write(pod *corev1.Pod, shown map[types.UID]string, status map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return err
	}
	if shown[pod.UID] == string(patch) {
		return nil
	}
	_, err = s.Client.CoreV1().Pods(pod.Namespace).Patch(s.ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsInvalid(err) && strings.Contains(err.Error(), "uid") {
		return nil // the pod went away, or its name is another pod's by now
	}
	if err != nil {
		return err
	}
	shown[pod.UID] = string(patch)
	return nil
}
