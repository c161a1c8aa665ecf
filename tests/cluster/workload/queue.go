package workload

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"device-health.io/controller/tests/cluster/realcluster"
)

// QueueLabel names the queue of a Job; the control plane needs Options.Kueue.
const QueueLabel = "kueue.x-k8s.io/queue-name"

const queues = "/apis/kueue.x-k8s.io/v1beta2"

// Queue makes a queue of so many devices of one resource for a namespace.
func Queue(t *testing.T, cp *realcluster.ControlPlane, namespace, name, resource string, devices int) {
	t.Helper()
	kubectl(t, cp, fmt.Sprintf(`
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: %[1]s}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: %[1]s}
spec:
  namespaceSelector: {}
  resourceGroups:
    - coveredResources: [%[3]s]
      flavors: [{name: %[1]s, resources: [{name: %[3]s, nominalQuota: %[4]d}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: %[2]s, namespace: %[1]s}
spec: {clusterQueue: %[1]s}
`, namespace, name, resource, devices), "create", "-f", "-")
}

// QueuedWorkload is what Kueue says of a Job.
type QueuedWorkload struct {
	UID        types.UID
	Conditions []metav1.Condition
}

// True is the condition of a type, if it is true; nil: it is not.
func (w QueuedWorkload) True(kind string) *metav1.Condition {
	for i, condition := range w.Conditions {
		if condition.Type == kind && condition.Status == metav1.ConditionTrue {
			return &w.Conditions[i]
		}
	}
	return nil
}

// Queued waits until Kueue has a Workload for the only Job of a namespace, and says how it is now.
func Queued(t *testing.T, cp *realcluster.ControlPlane, namespace string) (found QueuedWorkload) {
	t.Helper()
	realcluster.Eventually(t, time.Minute, "Kueue has a Workload", func() error {
		var list struct {
			Items []struct {
				metav1.ObjectMeta `json:"metadata"`
				Status            struct{ Conditions []metav1.Condition }
			}
		}
		read(t, cp, queues, "workloads", namespace, "", &list)
		if len(list.Items) != 1 {
			return fmt.Errorf("it has %d", len(list.Items))
		}
		found = QueuedWorkload{list.Items[0].UID, list.Items[0].Status.Conditions}
		return nil
	})
	return found
}
