package taint

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// A driver that says by a taint in its ResourceSlice what the kubelet never hears of.

const namesTheTaint = "deviceTaints: [{key: driver.example.com/*}]"

// taints is what the driver says of one device.
func taints(device, value string, effect resourcev1.DeviceTaintEffect) map[string][]resourcev1.DeviceTaint {
	return map[string][]resourcev1.DeviceTaint{device: {{Key: "driver.example.com/xid", Value: value, Effect: effect}}}
}

func TestATaintOfTheDriverMovesThePodAndNeedsNoRuleOfOurs(t *testing.T) {
	r := newRack(t, cluster, 2)
	sick, device := r.holder(t)
	controller := r.start(t, dhc.Policy{Match: namesTheTaint, After: "2s"})
	must(t, r.node.PublishSlice(t.Context(), r.driver, taints(device, "79", resourcev1.DeviceTaintEffectNoSchedule)))
	next := story.AwaitReplacement(t, cluster, sick, 1)
	if again := deviceOf(next[0]); again == device {
		t.Errorf("the replacement is on %s again", again)
	}
	story.ExpectEvictedOnce(t, controller, sick)
	if rules := r.rules(t.Context(), t); len(rules) != 0 {
		t.Errorf("there are rules: %+v", rules)
	}
	event := story.AwaitEvent(t, cluster, r.namespace, sick.Name, "DeviceUnhealthy")
	if !strings.Contains(event.Note, "driver.example.com/xid=79:NoSchedule") {
		t.Errorf("the Event says %s", event.Note)
	}
	var slices []string
	for _, request := range controller.Requests(t, func(one realcluster.AuditEvent) bool { return one.Verb == "get" }) {
		if request.ObjectRef.Resource == "resourceslices" {
			slices = append(slices, fmt.Sprint(request.ObjectRef.Name, " ", request.Response.Code))
		}
	}
	if len(slices) != 1 || !strings.HasSuffix(slices[0], " 200") {
		t.Errorf("the slice was read before the eviction: %v", slices)
	}
}

func TestATaintThatNoPolicyNamesMovesNobody(t *testing.T) {
	r := newRack(t, cluster, 2)
	sick, device := r.holder(t)
	controller := r.start(t, dhc.Policy{})
	must(t, r.node.PublishSlice(t.Context(), r.driver, taints(device, "79", resourcev1.DeviceTaintEffectNoSchedule)))
	controller.Stays(t, sick, 3*time.Second)
	story.ExpectUntouched(t, controller, sick)
}

// The API server dates a taint anew with each update in which the driver leaves timeAdded out.
func TestATaintThatIsPublishedAgainAndAgainIsTheSameFault(t *testing.T) {
	r := newRack(t, cluster, 2)
	sick, device := r.holder(t)
	controller := r.start(t, dhc.Policy{Match: namesTheTaint, After: "6s"})
	began := time.Now()
	number := 79
	realcluster.Eventually(t, time.Minute, sick.Name+" is evicted", func() error {
		// Were each date a new fault, none would ever last long enough.
		must(t, r.node.PublishSlice(t.Context(), r.driver, taints(device, fmt.Sprint(number), resourcev1.DeviceTaintEffectNoSchedule)))
		number++
		now, err := cluster.Client.CoreV1().Pods(sick.Namespace).Get(t.Context(), sick.Name, metav1.GetOptions{})
		if err == nil && now.UID == sick.UID && now.DeletionTimestamp == nil {
			return fmt.Errorf("it still runs, at number %d", number)
		}
		return nil
	})
	story.AwaitReplacement(t, cluster, sick, 1)
	if at := controller.EvictedAt(t, sick); at.Sub(began) < 6*time.Second {
		t.Errorf("evicted %s after the taint", at.Sub(began))
	}
	story.ExpectEvictedOnce(t, controller, sick)
}

func TestAHarmlessWordOverAFaultNeitherActsNorEndsIt(t *testing.T) {
	r := newRack(t, cluster, 2)
	sick, device := r.holder(t)
	controller := r.start(t, dhc.Policy{Match: namesTheTaint, EvictAfter: "20s", Recover: "{healthyFor: 2s, hold: 24h}"})
	must(t, r.node.PublishSlice(t.Context(), r.driver, taints(device, "79", resourcev1.DeviceTaintEffectNoSchedule)))
	controller.AwaitVerdict(t, sick.Name, "WaitingForEvictAfter")
	must(t, r.node.PublishSlice(t.Context(), r.driver, taints(device, "43", resourcev1.DeviceTaintEffectNone)))
	controller.AwaitVerdict(t, sick.Name, "WaitingWhileUnknown")
	r.awaitRule(t, device, "NoSchedule") // ours: the driver's keeps nobody off any more
	must(t, r.node.PublishSlice(t.Context(), r.driver, nil))
	r.awaitNoRule(t, 30*time.Second)
	r.awaitSaid(t, controller, "Untainted", "for 2 s")
	story.ExpectUntouched(t, controller, sick)
}

// A kubelet may publish slices of its own node alone, but under any pool's name: another card there, of a later generation.
func TestASliceOfAnotherNodeThatClaimsThePoolEndsNoIncident(t *testing.T) {
	r, liar := newRack(t, cluster, 2), newRack(t, cluster, 1)
	for _, device := range []string{"gpu-0", "gpu-1"} {
		r.node.SetCard(r.driver, device, "GPU-"+device)
	}
	must(t, r.node.PublishSlice(t.Context(), r.driver, nil))
	sick, device := r.holder(t)
	controller := r.start(t, dhc.Policy{Recover: "{hold: 24h}"})
	r.breaks(device)
	r.awaitRule(t, device, "NoSchedule")
	story.AwaitReplacement(t, cluster, sick, 1)
	r.awaitSaid(t, controller, "Tainted", "nobody reports on it")
	slices := cluster.Client.ResourceV1().ResourceSlices()
	other := "GPU-other"
	claim := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "liar-"},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: r.driver, NodeName: &liar.node.Name,
			Pool: resourcev1.ResourcePool{Name: r.node.Name, Generation: 999, ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{
				Name: device, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"uuid": {StringValue: &other}},
			}},
		},
	}
	claim, err := slices.Create(t.Context(), claim, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() { _ = slices.Delete(context.Background(), claim.Name, metav1.DeleteOptions{}) })
	ruleStays := func(when string) {
		realcluster.Never(t, 8*time.Second, "the rule stays "+when, func() error {
			if rules := r.rules(t.Context(), t); len(rules) != 1 {
				return fmt.Errorf("there are %+v", rules)
			}
			return nil
		})
	}
	ruleStays("beside the slice of another node")
	published, err := slices.List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + r.node.Name})
	must(t, err)
	for _, slice := range published.Items {
		must(t, slices.Delete(t.Context(), slice.Name, metav1.DeleteOptions{}))
	}
	ruleStays("while its driver is away")
	// Its own node's word counts.
	r.node.SetCard(r.driver, device, "GPU-new")
	r.heals(device)
	must(t, r.node.PublishSlice(t.Context(), r.driver, nil))
	r.awaitSaid(t, controller, "Untainted", "another physical device")
}

// The scheduler hands a tainted device to a claim that tolerates the taint, again and again.
func TestAPodWhoseClaimToleratesTheTaintIsNotEvictedAndCostsNobodyAnything(t *testing.T) {
	r := newRack(t, cluster, 3)
	templates := cluster.Client.ResourceV1().ResourceClaimTemplates(r.namespace)
	template, err := templates.Get(t.Context(), r.template, metav1.GetOptions{})
	must(t, err)
	template.ObjectMeta = metav1.ObjectMeta{Name: "tolerant"}
	template.Spec.Spec.Devices.Requests[0].Exactly.Tolerations = []resourcev1.DeviceToleration{{Operator: resourcev1.DeviceTolerationOpExists}}
	_, err = templates.Create(t.Context(), template, metav1.CreateOptions{})
	must(t, err)
	greedy := workload.Deployment{Namespace: r.namespace, Name: "greedy", Replicas: 1, ClaimTemplate: "tolerant"}.Create(t, cluster)[0]
	controller := r.start(t, dhc.Policy{Match: namesTheTaint})
	bad := taints(deviceOf(greedy), "79", resourcev1.DeviceTaintEffectNoSchedule)
	must(t, r.node.PublishSlice(t.Context(), r.driver, bad))
	controller.AwaitVerdict(t, greedy.Name, "TaintTolerated")
	story.AwaitEvent(t, cluster, r.namespace, greedy.Name, "DeviceUnhealthy")
	// Another one's device breaks too: it goes as ever.
	sick, device := r.holder(t)
	bad[device] = taints(device, "79", resourcev1.DeviceTaintEffectNoSchedule)[device]
	must(t, r.node.PublishSlice(t.Context(), r.driver, bad))
	story.AwaitReplacement(t, cluster, sick, 1)
	story.ExpectEvictedOnce(t, controller, sick)
	controller.AwaitVerdict(t, greedy.Name, "TaintTolerated")
	story.ExpectUntouched(t, controller, greedy)
}
