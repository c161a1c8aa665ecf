package controller

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
)

// inProtobuf are the kinds that the controller reads in protobuf where the server offers it: it does for every built-in kind.
var inProtobuf = []string{"Pod", "ResourceClaim", "ResourceSlice", "Node", "Namespace", "DeviceTaintRule", "Job"}

// bytesOf is what a controller has received of a kind in one format.
func bytesOf(t *testing.T, controller story.Run, kind, format string) float64 {
	t.Helper()
	return controller.Metric(t, fmt.Sprintf(`device_health_watch_bytes_total{format="%s",kind="%s"}`, format, kind))
}

// said are the verdicts about a namespace, without the moments at which each controller saw it.
func said(t *testing.T, controller story.Run, namespace string) (all []string) {
	t.Helper()
	for _, v := range controller.Verdicts(t) {
		if v.Subject.Namespace == namespace {
			all = append(all, fmt.Sprint(v.Subject, v.Device, v.Policy, v.Reason))
		}
	}
	slices.Sort(all)
	return all
}

func TestAControllerSeesTheSameInProtobufAndInJSON(t *testing.T) {
	for name, cp := range map[string]*realcluster.ControlPlane{"with WatchList": cluster, "without WatchList": withoutWatchList} {
		t.Run(name, func(t *testing.T) {
			node, namespace, pods := fleet(t, cp, fakenode.Spec{})
			policy := dhc.Policy{Namespace: namespace}.Text()
			node.Break(t, gpu, "gpu-0")
			sick := story.Holder(t, pods, "gpu-0")
			protobuf := story.Start(t, cp, dhc.Settings{Mode: "observe", NoEvents: true, Policy: policy})
			json := story.Start(t, cp, dhc.Settings{Mode: "observe", NoEvents: true, Policy: policy, WireFormat: "json"})
			// One device was bad before they began (a list), the other breaks under their eyes (a watch).
			node.Break(t, gpu, "gpu-1")
			for _, pod := range []string{sick.Name, story.Holder(t, pods, "gpu-1").Name} {
				protobuf.AwaitSays(t, `"msg":"verdict"`, `"name":"`+pod+`"`)
				json.AwaitSays(t, `"msg":"verdict"`, `"name":"`+pod+`"`)
			}
			realcluster.Eventually(t, time.Minute, "both say the same", func() error {
				a, b := said(t, protobuf, namespace), said(t, json, namespace)
				if len(a) < 2 || !slices.Equal(a, b) {
					return fmt.Errorf("in protobuf %v, in JSON %v", a, b)
				}
				return nil
			})
			for _, kind := range inProtobuf {
				if bytesOf(t, protobuf, kind, "protobuf") == 0 || bytesOf(t, protobuf, kind, "json") != 0 {
					t.Errorf("%s: %v bytes in protobuf, %v in JSON", kind, bytesOf(t, protobuf, kind, "protobuf"), bytesOf(t, protobuf, kind, "json"))
				}
				if bytesOf(t, json, kind, "protobuf") != 0 || bytesOf(t, json, kind, "json") == 0 {
					t.Errorf("%s with --wire-format json: %v bytes in protobuf, %v in JSON", kind, bytesOf(t, json, kind, "protobuf"), bytesOf(t, json, kind, "json"))
				}
			}
			if bytesOf(t, protobuf, "ReplicaSet", "json") == 0 {
				t.Error("ReplicaSets, of which metadata is read, came in another format than JSON")
			}
		})
	}
}
