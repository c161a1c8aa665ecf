package taint

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

func version(t *testing.T, text string) int64 {
	t.Helper()
	number, err := strconv.ParseInt(text, 10, 64)
	must(t, err)
	return number
}

// A Job's and a StatefulSet's replacement comes back to the bad device when nothing taints it: seen without a controller.
func TestTheTaintStandsBeforeTheEvictionAndTheReplacementGetsAnotherDevice(t *testing.T) {
	for name, create := range map[string]func(*testing.T, rack) corev1.Pod{
		"a Job's": func(t *testing.T, r rack) corev1.Pod {
			return workload.Job{Namespace: r.namespace, Name: "train", Parallelism: 1, BackoffLimit: 3, ClaimTemplate: r.template}.Create(t, r.cp)[0]
		},
		"a StatefulSet's": func(t *testing.T, r rack) corev1.Pod {
			return workload.StatefulSetOf(t, r.cp, r.namespace, "train", 1, workload.OneContainer("", r.template, ""))[0]
		},
		"a Deployment's": func(t *testing.T, r rack) corev1.Pod {
			pod, _ := r.holder(t)
			return pod
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRack(t, cluster, 2)
			sick := create(t, r)
			device := deviceOf(sick)
			watched := story.WatchPod(t, cluster, sick)
			controller := r.start(t, dhc.Policy{})
			stream, err := cluster.Client.ResourceV1().DeviceTaintRules().Watch(t.Context(), metav1.ListOptions{})
			must(t, err)
			t.Cleanup(stream.Stop)
			r.breaks(device)
			rule := r.awaitRule(t, device, "NoSchedule")
			made := version(t, added(t, stream, rule.UID).ResourceVersion)
			replacement := story.AwaitReplacement(t, cluster, sick, 1)[0]
			if got := deviceOf(replacement); got == device || got == "" {
				t.Errorf("the replacement is on %q, the bad one is %s", got, device)
			}
			story.ExpectEvictedOnce(t, controller, sick)
			expectRuleWrites(t, controller, "patch 201 NoSchedule")
			if said := rule.Annotations["device-health.io/said"]; said != "Xid 79" {
				t.Errorf("the rule repeats %q as the driver's words", said)
			}
			first := story.AwaitEvent(t, cluster, r.namespace, sick.Name, "DeviceUnhealthy")
			if !strings.Contains(first.Note, "Xid 79; next: eviction, due at ") || !strings.HasSuffix(first.Note, " annotate pod "+sick.Name+" device-health.io/opt-out=true") {
				t.Errorf("the first Event does not say what comes next: %s", first.Note)
			}
			owner := metav1.GetControllerOf(&sick)
			told := story.AwaitEvent(t, cluster, r.namespace, owner.Name, "Evicted")
			if told.Regarding.UID != owner.UID || told.Regarding.Kind != owner.Kind || !strings.HasPrefix(told.Note, "pod "+sick.Name+" on ") || !strings.HasSuffix(told.Note, "Xid 79") {
				t.Errorf("the Pod's %s was told: %+v", owner.Kind, told)
			}
			for _, e := range controller.Writes(t) {
				if e.ObjectRef.Resource == "devicetaintrules" && !e.Received.Before(controller.EvictedAt(t, sick)) {
					t.Errorf("the rule was sent at %s, the eviction at %s", e.Received, controller.EvictedAt(t, sick))
				}
			}
			watched.AwaitDeletion(t)
			began := false
			for _, seen := range watched.Versions() { // etcd's own order
				if seen.Pod.DeletionTimestamp != nil && !began {
					began = true
					if ended := version(t, seen.Pod.ResourceVersion); ended <= made {
						t.Errorf("the rule is of version %d, the Pod began to end at %d", made, ended)
					}
				}
			}
			if !began {
				t.Error("nobody saw the Pod end")
			}
			r.awaitSaid(t, controller, "Tainted", "DeviceTaintRule "+rule.Name)
		})
	}
}

// added is the rule as it was made, before kube-controller-manager wrote its status.
func added(t *testing.T, stream watch.Interface, uid types.UID) *resourcev1.DeviceTaintRule {
	t.Helper()
	for deadline := time.After(time.Minute); ; {
		select {
		case event := <-stream.ResultChan():
			if rule, ok := event.Object.(*resourcev1.DeviceTaintRule); ok && event.Type == watch.Added && rule.UID == uid {
				return rule
			}
		case <-deadline:
			t.Fatal("nobody saw the rule being made")
		}
	}
}

func TestWhileTheRuleIsNotSeenThePodStays(t *testing.T) {
	r := newRack(t, cluster, 2)
	proxy, err := realcluster.NewProxy(cluster)
	must(t, err)
	t.Cleanup(proxy.Close)
	sick, device := r.holder(t)
	settings := r.settings(t, dhc.Policy{})
	settings.Kubeconfig = dhc.Kubeconfig(t, cluster, dhc.Account, proxy.Server)
	controller := story.Start(t, cluster, settings)
	proxy.Hold(func(request *http.Request) bool {
		return strings.HasSuffix(request.URL.Path, "/devicetaintrules") && request.URL.Query().Get("watch") != ""
	})
	r.breaks(device)
	r.awaitRule(t, device, "NoSchedule")
	controller.AwaitVerdict(t, sick.Name, "WaitingForTaint")
	controller.Stays(t, sick, 3*time.Second)
	expectRuleWrites(t, controller, "patch 201 NoSchedule")
	proxy.Hold(nil)
	story.AwaitReplacement(t, cluster, sick, 1)
	story.ExpectEvictedOnce(t, controller, sick)
}
