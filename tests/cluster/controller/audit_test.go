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
	"device-health.io/controller/tests/cluster/story"
)

// What `replay --audit` says of a log, as far as the story asks.
type audited struct {
	Then, Now struct{ Evictions int }
	Fates     []struct {
		What, Namespace, Name, Device, NowMessage string
		BadSince, Then, Now                       *time.Time
	}
}

// Nothing of ours has run here: a real API server's audit log, written by the policy that docs/replay.md prints, tells what a policy would have done.
func TestAnAuditLogTellsWhatAPolicyWouldHaveDoneForWhoNeverRanTheController(t *testing.T) {
	node, namespace, pods := fleet(t, withoutWatchList, fakenode.Spec{})
	node.Break(t, gpu, "gpu-0")
	sick := story.Holder(t, pods, "gpu-0")
	story.AwaitHealth(t, withoutWatchList, sick, "Unhealthy")
	file := filepath.Join(t.TempDir(), "new.yaml")
	must(t, os.WriteFile(file, []byte(dhc.Policy{Namespace: namespace, After: "2s", Full: "{wait: 0s}"}.Text()), 0o600))

	deadline := time.Now().Add(time.Minute)
	for {
		must(t, node.PublishStatus(t.Context())) // a log that ends before the policy's time says nothing of it
		code, out, problems := dhc.Command(t, "replay", "--audit", filepath.Join(withoutWatchList.Logs, "audit.log"), "-f", file, "-o", "json")
		if code != 0 {
			t.Fatalf("replay ended with code %d: %s", code, problems)
		}
		var play audited
		must(t, json.Unmarshal([]byte(out), &play))
		if play.Then.Evictions != 0 {
			t.Fatalf("nothing of ours has run, and it says %d evictions of then", play.Then.Evictions)
		}
		if play.Now.Evictions == 0 && time.Now().Before(deadline) {
			continue
		}
		if play.Now.Evictions != 1 {
			t.Fatalf("%d evictions instead of one: %s", play.Now.Evictions, out)
		}
		for _, fate := range play.Fates {
			if fate.What != "evicted" || fate.Namespace != namespace || fate.Now == nil {
				continue
			}
			if fate.Name != sick.Name || !strings.HasSuffix(fate.Device, "gpu-0") || fate.Then != nil || fate.BadSince == nil ||
				fate.Now.Sub(*fate.BadSince) < 2*time.Second {
				t.Errorf("it would have evicted %+v instead of %s, 2 s after its device broke", fate, sick.Name)
			}
			return
		}
		t.Fatalf("the pod that it would have evicted is not among its fates: %s", out)
	}
}
