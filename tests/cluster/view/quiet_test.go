package view

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

var lastWord = regexp.MustCompile(`(?m)^\[.\](\w+): .*last message (\d+) s ago`)

// Two idle limits of a stream (90 s each), after which the kind is listed afresh, and what their back-offs and a list take.
const oldestWord = 215 * time.Second

// A cluster where nothing happens must not come near the bound of 5 minutes, whatever bookmarks its API server sends. Kinds of which there
// is no object at all, such as DeviceTaintRules, are the ones to fear. $DHC_QUIET says for how long (make quiet: 30 minutes): a watch that
// has had no word since its first list is too old for this story at the end of four.
func TestAQuietClusterIsNeverTooOldToActOn(t *testing.T) {
	quiet := 4 * time.Minute
	if text := os.Getenv("DHC_QUIET"); text != "" {
		var err error
		if quiet, err = time.ParseDuration(text); err != nil {
			t.Fatalf("DHC_QUIET: %v", err)
		}
	}
	if quiet <= oldestWord {
		t.Fatalf("DHC_QUIET: in %v no watch can become too old", quiet)
	}
	t.Parallel()
	namespace, gpu := cluster.Namespace(t), "example.com/"+realcluster.Unique("gpu")
	node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: map[string][]string{gpu: {"gpu-0", "gpu-1", "gpu-2", "gpu-3"}}})
	pods := workload.Deployment{Namespace: namespace, Name: "infer", Replicas: 2, Resource: gpu}.Create(t, cluster)
	controller := story.Start(t, cluster, dhc.Settings{Policy: dhc.Policy{Namespace: namespace}.Text(), InCluster: true, Elect: true})
	oldest := map[string]int{}
	realcluster.Never(t, quiet, "every watch has had a word, and it is ready", func() error {
		code, text := controller.Readyz(t)
		if code != http.StatusOK {
			return fmt.Errorf("%d %s", code, text)
		}
		for _, line := range lastWord.FindAllStringSubmatch(text, -1) {
			age, err := strconv.Atoi(line[2])
			if err != nil {
				return err
			}
			oldest[line[1]] = max(oldest[line[1]], age)
			if time.Duration(age)*time.Second > oldestWord {
				return fmt.Errorf("the last word of %s is %d s old, and the kind was not listed afresh", line[1], age)
			}
		}
		return nil
	})
	t.Logf("oldest last words in %s, in seconds: %v", quiet, oldest)
	if len(oldest) < 9 {
		t.Errorf("/readyz tells the age of %d kinds only: %v", len(oldest), oldest)
	}
	for _, kind := range []string{"Pod", "DeviceTaintRule"} {
		t.Logf("%s: %v relists for silence", kind, controller.Metric(t, fmt.Sprintf(`device_health_watch_restarts_total{cause="Silent",kind=%q}`, kind)))
	}
	// And it acts at once when something happens.
	node.Break(t, gpu, "gpu-0")
	sick := story.Holder(t, pods, "gpu-0")
	story.AwaitReplacement(t, cluster, sick, 2)
	story.ExpectEvictedOnce(t, controller, sick)
}
