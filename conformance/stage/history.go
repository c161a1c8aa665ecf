package stage

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Life of one pod as the API server told it.
type Life struct {
	Pod     *corev1.Pod // as last seen
	Devices []Device    // since its kubelet admitted it
	Told    time.Time   // to end, when that was first seen
	Grace   int64       // seconds of grace that it was then given
	Ends    metav1.Time // its deletionTimestamp as first seen
	Hurried bool        // the time that it was given was shortened afterwards
	Gone    bool
	GoneAt  time.Time

	admitted, completes, ended, byUs bool
	takes                            time.Duration // from being told to its end
	endsAt                           time.Time
}

// appLabel names the workload of a pod.
const appLabel = "app"

// saw notes what an event says of a pod.
func (s *Stage) saw(pod *corev1.Pod, deleted bool) {
	life := s.lifeOf(pod)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	life.Pod = pod
	if pod.DeletionTimestamp != nil && life.Told.IsZero() {
		life.Told, life.Ends = time.Now(), *pod.DeletionTimestamp
		if pod.DeletionGracePeriodSeconds != nil {
			life.Grace = *pod.DeletionGracePeriodSeconds
		}
	}
	// Our own removal of a pod that has ended sets both to now.
	if pod.DeletionTimestamp != nil && pod.DeletionTimestamp.Time.Before(life.Ends.Time) && !life.ended {
		life.Hurried = true
	}
	if deleted {
		life.Gone, life.GoneAt = true, time.Now()
		life.Hurried = life.Hurried || !life.ended // the object went before its pod had ended
		if life.Told.IsZero() {
			life.Told = life.GoneAt
		}
	}
	s.nudge()
}

func (s *Stage) lifeOf(pod *corev1.Pod) *Life {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	life := s.byUID[string(pod.UID)]
	if life == nil {
		life = &Life{Pod: pod}
		if took, err := time.ParseDuration(pod.Annotations[takesAnnotation]); err == nil {
			life.takes = took
		}
		s.byUID[string(pod.UID)] = life
		s.lives = append(s.lives, life)
	}
	return life
}

// Lives of a workload's pods so far, the oldest first.
func (s *Stage) Lives(app string) (lives []Life) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, life := range s.lives {
		if life.Pod.Labels[appLabel] == app {
			lives = append(lives, *life)
		}
	}
	return lives
}

// Now is what became of a pod.
func (s *Stage) Now(pod Life) Life {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return *s.byUID[string(pod.Pod.UID)]
}

// Lost are the pods of a workload that somebody else told to end, or that failed.
func (s *Stage) Lost(app string) (lost []Life) {
	return slices.DeleteFunc(s.Lives(app), func(l Life) bool {
		return l.byUs || l.Told.IsZero() && l.Pod.Status.Phase != corev1.PodFailed
	})
}

// Running are the pods of a workload that run and were not told to end.
func (s *Stage) Running(app string) (running []Life) {
	return slices.DeleteFunc(s.Lives(app), func(l Life) bool {
		return l.Gone || !l.Told.IsZero() || l.Pod.Status.Phase != corev1.PodRunning
	})
}

// Begin waits until so many pods of a workload run, and returns them.
func (s *Stage) Begin(app string, count int) (running []Life) {
	s.prepare(fmt.Sprintf("%d pods of %s run", count, app), func() error { return s.run(app, count, &running) })
	for _, life := range running {
		if status := life.Pod.Status.ContainerStatuses; len(s.health(life.Pod, &life)) > 0 && len(status[0].AllocatedResourcesStatus) == 0 {
			s.Skip("the API server drops the health of a pod's devices: its feature gate ResourceHealthStatus is off")
		}
	}
	return running
}

func (s *Stage) run(app string, count int, running *[]Life) error {
	if *running = s.Running(app); len(*running) == count {
		return nil
	}
	said := fmt.Sprintf("%d do", len(*running))
	for _, life := range s.Lives(app) {
		for _, condition := range life.Pod.Status.Conditions {
			if !life.Gone && condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
				said += fmt.Sprintf("; %s is not scheduled: %s", life.Pod.Name, condition.Message)
			}
		}
	}
	return fmt.Errorf("%s", said)
}

// Bad says whether a device is reported Unhealthy, tainted by its driver, or gone from its slice.
func (s *Stage) Bad(d Device) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	n := s.nodes[d.Node]
	return n.healthOf(d) == corev1.ResourceHealthStatusUnhealthy || n.taints[d] || n.gone[d]
}

// AwaitMoved waits until the pod is gone and so many of its workload run, each on good devices.
func (s *Stage) AwaitMoved(pod Life, count int) (running []Life) {
	return s.awaitMoved("the pod on the bad device runs elsewhere", pod, count)
}

func (s *Stage) awaitMoved(promise string, pod Life, count int) (running []Life) {
	s.Await(s.ReactWithin, promise, func() error { return s.moved(pod, count, &running) })
	return running
}

func (s *Stage) moved(pod Life, count int, running *[]Life) error {
	if !s.Now(pod).Gone {
		return fmt.Errorf("%s is still there", pod.Pod.Name)
	}
	if err := s.run(pod.Pod.Labels[appLabel], count, running); err != nil {
		return err
	}
	for _, life := range *running {
		if i := slices.IndexFunc(life.Devices, s.Bad); i >= 0 {
			return fmt.Errorf("%s got %s, which is bad", life.Pod.Name, life.Devices[i])
		}
	}
	return nil
}

// ExpectUntouched ends the story if somebody told the pod to end.
func (s *Stage) ExpectUntouched(who string, pod Life) {
	now := s.Now(pod)
	if now.Gone || !now.Told.IsZero() || now.Pod.Status.Phase != pod.Pod.Status.Phase {
		s.Fail("%s was lost (%s%s)", who, now.Pod.Name, disruption(now.Pod))
	}
}

func disruption(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.DisruptionTarget {
			return ": " + condition.Reason
		}
	}
	return ""
}

// AwaitMovedOr is AwaitMoved that also ends the story as soon as check does.
func (s *Stage) AwaitMovedOr(pod Life, count int, check func()) {
	next := time.Now()
	s.Await(s.ReactWithin, "the pod on the bad device runs elsewhere", func() error {
		if time.Now().After(next) {
			check()
			next = time.Now().Add(time.Second)
		}
		return s.moved(pod, count, new([]Life))
	})
}

// AwaitTold waits until somebody tells the pod to end.
func (s *Stage) AwaitTold(pod Life) {
	s.Await(s.ReactWithin, "the pod on the bad device is told to end", func() error {
		if s.Now(pod).Told.IsZero() {
			return fmt.Errorf("%s was not", pod.Pod.Name)
		}
		return nil
	})
}

// AwaitRunning waits until so many pods of a workload run.
func (s *Stage) AwaitRunning(promise, app string, count int) {
	s.AwaitRunningWithin(s.ReactWithin, promise, app, count)
}

// AwaitRunningWithin does so for as long.
func (s *Stage) AwaitRunningWithin(within time.Duration, promise, app string, count int) {
	s.Await(within, promise, func() error { return s.run(app, count, new([]Life)) })
}

// Runs says whether so many pods of a workload run, or what keeps them from it.
func (s *Stage) Runs(app string, count int) error { return s.run(app, count, new([]Life)) }

// HeldBy says whether a running pod of a workload has the device.
func (s *Stage) HeldBy(app string, d Device) error {
	if !slices.ContainsFunc(s.Running(app), func(l Life) bool { return slices.Contains(l.Devices, d) }) {
		return fmt.Errorf("no pod of %s has %s", app, d)
	}
	return nil
}
