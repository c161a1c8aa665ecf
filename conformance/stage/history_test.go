package stage

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// running is a pod of "train" on one device, as its kubelet reports it.
func running(s *Stage, health corev1.ResourceHealthStatus) *corev1.Pod {
	source := &Source{Name: "gpu.example.com", DRA: true}
	s.sources = []*Source{source}
	d := Device{"node", source, "gpu-0"}
	s.nodes["node"] = &Node{Name: "node", health: map[Device]corev1.ResourceHealthStatus{}}
	container := corev1.ContainerStatus{Name: "main"}
	if health != "" {
		container.AllocatedResourcesStatus = []corev1.ResourceStatus{{Name: "claim:device", Resources: []corev1.ResourceHealth{{ResourceID: corev1.ResourceID(d.resourceID()), Health: health}}}}
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "train-0", UID: "1", Labels: map[string]string{appLabel: "train"}},
		Spec:       corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "device"}}}}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{container}},
	}
	life := s.lifeOf(pod)
	life.admitted, life.Devices = true, []Device{d}
	return pod
}

func empty(t *testing.T) *Stage {
	return &Stage{ctx: t.Context(), nodes: map[string]*Node{}, byUID: map[string]*Life{}, troubles: map[string]error{}, wake: make(chan struct{}, 1)}
}

// ended is how a story ends that does this.
func ended(act func()) (ending Ending) {
	defer func() {
		if problem := recover(); problem != nil {
			ending = problem.(Ending)
		}
	}()
	act()
	return Ending{Status: Passed}
}

func TestAServerThatDropsHealthIsNoFaultOfTheRemediator(t *testing.T) {
	s := empty(t)
	running(s, "")
	if got := ended(func() { s.Begin("train", 1) }); got.Status != NotApplicable || !strings.Contains(got.Reason, "ResourceHealthStatus") {
		t.Errorf("%+v", got)
	}
	s = empty(t)
	running(s, corev1.ResourceHealthStatusHealthy)
	if got := ended(func() { s.Begin("train", 1) }); got.Status != Passed {
		t.Errorf("%+v", got)
	}
}

func TestAReportIsShownOnceTheServerHasIt(t *testing.T) {
	s := empty(t)
	pod := running(s, corev1.ResourceHealthStatusHealthy)
	devices := s.lives[0].Devices
	if s.shown(corev1.ResourceHealthStatusHealthy, devices) != nil || s.shown(corev1.ResourceHealthStatusUnhealthy, devices) == nil {
		t.Error("Healthy is not what is shown")
	}
	pod.Status.Phase = corev1.PodSucceeded // nobody waits for a report about what has finished
	if err := s.shown(corev1.ResourceHealthStatusUnhealthy, devices); err != nil {
		t.Error(err)
	}
}

// Who cuts a pod's time short, or removes it before it has ended, is found out; the kubelet that ends it is not meant.
func TestAPodIsHurriedByOthersAlone(t *testing.T) {
	told := func(seconds int64) (s *Stage, pod *corev1.Pod) {
		s = empty(t)
		pod = running(s, corev1.ResourceHealthStatusHealthy)
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(metav1.NewTime(time.Unix(1000+seconds, 0))), &seconds
		s.saw(pod, false)
		return s, pod
	}
	s, pod := told(30)
	if life := s.lives[0]; life.Hurried || life.Grace != 30 || len(s.Lost("train")) != 1 {
		t.Errorf("told to end: %+v", life)
	}
	cut := pod.DeepCopy()
	cut.DeletionTimestamp = new(metav1.NewTime(time.Unix(1005, 0)))
	s.saw(cut, false)
	if !s.lives[0].Hurried {
		t.Error("its time was cut, and nobody noticed")
	}
	s, pod = told(30)
	s.saw(pod, true)
	if life := s.lives[0]; !life.Hurried || !life.Gone {
		t.Error("it was removed before it had ended, and nobody noticed")
	}
	s, pod = told(30)
	s.lives[0].ended = true
	s.saw(pod, true)
	if s.lives[0].Hurried {
		t.Error("its kubelet ended it in its time")
	}
}

func TestAStoryThatIsInterruptedSaysSo(t *testing.T) {
	s := empty(t)
	ctx, stop := context.WithTimeoutCause(t.Context(), 0, ErrTimeout)
	defer stop()
	s.ctx, s.ReactWithin = ctx, time.Minute
	<-ctx.Done()
	got := ended(func() { s.AwaitRunning("it runs", "train", 1) })
	if got.Status != Broken || !strings.Contains(got.Reason, "--timeout") || !strings.Contains(got.Reason, "0 do") {
		t.Errorf("%+v", got)
	}
}
