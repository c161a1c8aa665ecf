package owners

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// claiming is an indivisible PodGroup with a claim of its own, made of a template, for one device: two of its Pods name it, two others do not.
type claiming struct {
	namespace, driver string
	node              *fakenode.Node
	holders, others   []corev1.Pod
	claim             string
}

func newClaiming(t *testing.T) claiming {
	t.Helper()
	realcluster.Needs(t, realcluster.PodGroups)
	c := claiming{namespace: grouping.Namespace(t), driver: realcluster.Unique("gpu") + ".example.com"}
	c.node = fakenode.Start(t, grouping, fakenode.Spec{DRA: map[string][]string{c.driver: {"gpu-0", "gpu-1"}}, Termination: time.Second})
	template := workload.DeviceClass(t, grouping, c.namespace, c.driver)
	groups := grouping.Client.SchedulingV1beta1().PodGroups(c.namespace)
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "train"}, Spec: schedulingv1beta1.PodGroupSpec{
		SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{Basic: &schedulingv1beta1.BasicSchedulingPolicy{}},
		DisruptionMode:   &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}},
		ResourceClaims:   []schedulingv1beta1.PodGroupResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &template}}}}
	made, err := groups.Create(t.Context(), group, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.holders = workload.Deployment{Namespace: c.namespace, Name: "train", Replicas: 2, ClaimTemplate: template, PodGroup: "train"}.Create(t, grouping)
	c.others = workload.Deployment{Namespace: c.namespace, Name: "feed", Replicas: 2, PodGroup: "train"}.Create(t, grouping)
	if made, err = groups.Get(t.Context(), made.Name, metav1.GetOptions{}); err != nil || len(made.Status.ResourceClaimStatuses) != 1 {
		t.Fatalf("the claims of the group are %+v, %v", made.Status.ResourceClaimStatuses, err)
	}
	c.claim = *made.Status.ResourceClaimStatuses[0].ResourceClaimName
	reserved := c.now(t).Status.ReservedFor
	if len(reserved) != 1 || reserved[0].APIGroup != schedulingv1beta1.GroupName || reserved[0].Resource != "podgroups" || reserved[0].UID != made.UID {
		t.Fatalf("the claim is reserved for %+v", reserved)
	}
	return c
}

func (c claiming) now(t *testing.T) *resourcev1.ResourceClaim {
	t.Helper()
	claim, err := grouping.Client.ResourceV1().ResourceClaims(c.namespace).Get(t.Context(), c.claim, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return claim
}

// device that the claim is allocated to.
func (c claiming) device(t *testing.T) string {
	t.Helper()
	if allocation := c.now(t).Status.Allocation; allocation != nil {
		return allocation.Devices.Results[0].Device
	}
	return ""
}

// What no eviction can free: only the group's end does.
func TestAPodGroupsClaimKeepsItsDeviceWhenNoneOfItsPodsIsLeft(t *testing.T) {
	c := newClaiming(t)
	before := c.device(t)
	for _, name := range []string{"train", "feed"} {
		if err := grouping.Client.AppsV1().Deployments(c.namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, pod := range append(append([]corev1.Pod{}, c.holders...), c.others...) {
		story.AwaitGone(t, grouping, pod)
	}
	realcluster.Never(t, 5*time.Second, "the claim is the group's", func() error {
		if now := c.now(t).Status; len(now.ReservedFor) != 1 || c.device(t) != before {
			return fmt.Errorf("it is %+v", now)
		}
		return nil
	})
	if err := grouping.Client.SchedulingV1beta1().PodGroups(c.namespace).Delete(t.Context(), "train", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	realcluster.Eventually(t, time.Minute, "the claim is gone", func() error {
		_, err := grouping.Client.ResourceV1().ResourceClaims(c.namespace).Get(t.Context(), c.claim, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is still there: %v", err)
		}
		return nil
	})
}

// The claim names no pod: who holds the device is said by the pods. The group keeps its claim, and the claim its device, as long as the group exists, whatever its policy says of those
// who share: nobody goes in vain.
func TestTheHoldersOfAPodGroupsClaimAreToldAndNoneIsEvictedInVain(t *testing.T) {
	c := newClaiming(t)
	policy := dhc.Policy{Namespace: c.namespace, Full: "{wait: 0s}", Taint: "{device: NoSchedule}"}
	dhc.WriteConfigMap(t, grouping, policy.Text())
	controller := story.Start(t, grouping, dhc.Settings{})
	bad := c.device(t)
	c.node.SetHealth(c.driver, bad, "Unhealthy", "Xid 79")
	for _, pod := range c.holders {
		story.AwaitCondition(t, grouping, pod, corev1.ConditionTrue)
	}
	for _, said := range []struct{ shared, together bool }{{}, {shared: true}, {shared: true, together: true}} {
		policy.Shared, policy.Together = said.shared, said.together
		dhc.WriteConfigMap(t, grouping, policy.Text())
		for _, pod := range c.holders {
			held := controller.AwaitVerdict(t, pod.Name, "SharedClaim")
			if !strings.Contains(held.Message, "claim "+c.namespace+"/"+c.claim+" is reserved for PodGroup train, which keeps it") {
				t.Errorf("of %s it says %s", pod.Name, held.Message)
			}
		}
		controller.Stays(t, c.holders[0], 3*time.Second)
	}
	for _, pod := range append(append([]corev1.Pod{}, c.holders...), c.others...) {
		story.ExpectUntouched(t, controller, pod)
	}
	if now := c.device(t); now != bad {
		t.Errorf("the claim is on %q now", now)
	}
	if evicted := controller.EvictedIn(t, c.namespace); evicted != 0 {
		t.Errorf("%d pods were evicted", evicted)
	}
}
