package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
)

// Two controllers on one cluster would undo each other's conditions, and most stories are long waits: so those that do not stop the
// controller run side by side under one, each with a policy for its own namespace. It starts with the first of them, which is
// after the last test that has a controller to itself.
var shared struct {
	once       sync.Once
	controller *dhc.Controller

	mutex    sync.Mutex
	policies []string
}

const sharedLimits = `apiVersion: device-health.io/v1alpha1
kind: ControllerLimits
metadata: {name: default}
spec:
  evictions: {perMinute: 600, maxInFlight: 50, perNode: 50, perOwner: 1}
  brake: {percent: 100, atLeast: 100}
  caps: {cluster: {percent: 100, atLeast: 1000}, node: {percent: 100, atLeast: 1000}, perDay: {percent: 100, atLeast: 1000}, ownerDevicesPerDay: {percent: 100, atLeast: 1000}}
`

// policy of one namespace, as it is written in YAML: spec.match without its namespaceSelector, and the rest of spec.
type policy struct{ Match, Rest string }

// text of one document. Lines of Match and Rest are given without their indentation.
func (p policy) text(name, namespace string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "apiVersion: device-health.io/v1alpha1\nkind: DeviceHealthPolicy\nmetadata: {name: %s}\nspec:\n  mode: enforce\n  match:\n", name)
	fmt.Fprintf(&text, "    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}\n", namespace)
	for _, line := range strings.Split(strings.TrimSpace(p.Match), "\n") {
		fmt.Fprintf(&text, "    %s\n", line)
	}
	for _, line := range strings.Split(strings.TrimSpace(p.Rest), "\n") {
		fmt.Fprintf(&text, "  %s\n", line)
	}
	return text.String()
}

// watchOver puts a namespace under the shared controller and returns when the policy is in force.
func watchOver(t *testing.T, namespace string, p policy) story.Run {
	t.Helper()
	shared.mutex.Lock()
	defer shared.mutex.Unlock()
	shared.policies = append(shared.policies, p.text(realcluster.Unique("story"), namespace))
	dhc.WriteConfigMap(t, cluster, strings.Join(append([]string{sharedLimits}, shared.policies...), "---\n"))
	shared.once.Do(func() { startShared(t) })
	if shared.controller == nil {
		t.Fatal("the controller that this story shares did not start")
	}
	realcluster.Eventually(t, time.Minute, "the policy is in force", func() error {
		return shared.controller.Says(`"configuration accepted"`, fmt.Sprintf(`"policies":%d,`, len(shared.policies)))
	})
	return story.Join(t, cluster, shared.controller, namespace)
}

func startShared(t *testing.T) {
	t.Helper()
	// Not in the test's own folder, which goes with it; and where the logs of a failed run are kept.
	kubeconfig := filepath.Join(cluster.Folder, "controller.kubeconfig")
	text, err := os.ReadFile(dhc.Kubeconfig(t, cluster, dhc.Account, ""))
	if err == nil {
		err = os.WriteFile(kubeconfig, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	controller, err := dhc.LaunchShared(cluster.Logs, dhc.Settings{Kubeconfig: kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	cluster.AtStop(func() []string {
		if err := controller.End(); err != nil {
			return []string{err.Error()}
		}
		return nil
	})
	controller.AwaitServing(t)
	controller.AwaitReady(t)
	shared.controller = controller
}

// alone fails a test that is about to start a controller beside the shared one: somebody before it forgot t.Parallel, which a parent of
// parallel subtests needs too.
func alone(t *testing.T) {
	t.Helper()
	if shared.controller != nil {
		t.Fatal("the shared controller runs already")
	}
}

// atOnce acts without any wait.
var atOnce = policy{Rest: "after: 0s\nevict: {after: 0s}"}
