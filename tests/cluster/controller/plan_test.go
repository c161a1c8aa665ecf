package controller

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// What a rehearsal of one subject says in JSON, as far as the story asks.
type rehearsed struct {
	Namespace, Name, Device string
	New                     []struct {
		Reason             string
		BeginsAfterSeconds int
	}
}

// Before anything of ours runs: what `plan` says of a new configuration is what the controller then does with it.
func TestARehearsalWritesNothingAndNamesTheVeryPodThatIsThenEvicted(t *testing.T) {
	namespace := cluster.Namespace(t)
	node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: gpus(3)})
	pods := workload.Deployment{Namespace: namespace, Name: "infer", Replicas: 2, Resource: gpu}.Create(t, cluster)
	node.Break(t, gpu, "gpu-0")
	sick := story.Holder(t, pods, "gpu-0")
	// Pods of other stories wait for devices, too: whether there is a place is not what this one asks.
	policy := dhc.Policy{Namespace: namespace, After: "5s", EvictAfter: "2s", Full: "{wait: 0s}"}.Text()
	file := filepath.Join(t.TempDir(), "new.yaml")
	must(t, os.WriteFile(file, []byte(policy), 0o600))

	since := time.Now()
	code, out, problems := dhc.Command(t, "plan", "--kubeconfig", filepath.Join(cluster.Folder, "admin.kubeconfig"), "-f", file, "-o", "json")
	if code != 0 || problems != "" {
		t.Fatalf("plan ended with code %d: %s", code, problems)
	}
	var plan struct{ Subjects []rehearsed }
	must(t, json.Unmarshal([]byte(out), &plan))
	var found []rehearsed
	for _, subject := range plan.Subjects {
		if subject.Namespace == namespace {
			found = append(found, subject)
		}
	}
	if len(found) != 1 || found[0].Name != sick.Name || !strings.HasSuffix(found[0].Device, "gpu-0") {
		t.Fatalf("it names %+v instead of %s alone", found, sick.Name)
	}
	evicts := -1
	for _, one := range found[0].New {
		if one.Reason == "WouldEvict" {
			evicts = one.BeginsAfterSeconds
		}
	}
	if evicts != 7 {
		t.Errorf("it says of %s: %+v", sick.Name, found[0].New)
	}
	wrote, err := cluster.Audit(since, func(e realcluster.AuditEvent) bool {
		return e.Writes() && e.User.Username == "test-administrator" && strings.HasPrefix(e.UserAgent, manager)
	})
	must(t, err)
	if len(wrote) > 0 {
		t.Errorf("it wrote: %v", wrote)
	}

	code, _, problems = dhc.Command(t, "plan", "--kubeconfig", filepath.Join(cluster.Folder, "admin.kubeconfig"), "-f", file, "--as", "nobody-in-particular")
	if code != 1 || !strings.Contains(problems, `User "nobody-in-particular" cannot `) {
		t.Errorf("plan for a user who may not list anything ended with code %d: %s", code, problems)
	}

	controller := story.Start(t, cluster, dhc.Settings{Policy: policy})
	story.AwaitReplacement(t, cluster, sick, 2)
	story.ExpectEvictedOnce(t, controller, sick)
}
