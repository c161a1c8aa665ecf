package incluster

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/realnode"
	"device-health.io/controller/tests/cluster/story"
)

const selector = "app.kubernetes.io/name=device-health-controller"

// replicas are the Pods of our Deployment that are not on their way out.
func replicas(t *testing.T) (pods []corev1.Pod) {
	t.Helper()
	list, err := cluster.Client.CoreV1().Pods(dhc.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
}

// expectApart says that both replicas run, on different nodes.
func expectApart(t *testing.T) {
	t.Helper()
	nodes := map[string]bool{}
	for _, pod := range replicas(t) {
		nodes[pod.Spec.NodeName] = true
	}
	if len(nodes) != 2 {
		t.Errorf("the replicas are on %v", nodes)
	}
}

// leader is the Pod that the Lease names.
func leader(t *testing.T) (name string) {
	t.Helper()
	realcluster.Eventually(t, time.Minute, "a replica leads", func() error {
		lease, err := cluster.Client.CoordinationV1().Leases(dhc.Namespace).Get(t.Context(), dhc.Account, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, pod := range replicas(t) {
			if lease.Spec.HolderIdentity != nil && strings.HasPrefix(*lease.Spec.HolderIdentity, pod.Name+"_") {
				name = pod.Name
				return nil
			}
		}
		return fmt.Errorf("the Lease is %+v", lease.Spec)
	})
	return name
}

// underPolicy gives the Deployment its configuration, by the ConfigMap that it watches, and returns when the leader says that it has it.
func underPolicy(t *testing.T, policy dhc.Policy) story.Run {
	t.Helper()
	cluster.ExplainFailure(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("---- replicas\n%s", logs(t, "--prefix", "--tail=60"))
		}
	})
	run := story.Audited(cluster)
	dhc.WriteConfigMap(t, cluster, policy.Text())
	who := leader(t)
	realcluster.Eventually(t, 30*time.Second, who+" has the policy", func() error {
		for _, line := range logOf(t, who) {
			// Where it differs from the one before is the namespace; the digest of the configuration is what the log has of it.
			if line["msg"] == "configuration accepted" && !wasBefore(line, run) {
				return nil
			}
		}
		return fmt.Errorf("it does not say so")
	})
	return run
}

func wasBefore(line map[string]any, run story.Run) bool {
	at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(line["ts"]))
	return err != nil || at.Before(run.Began())
}

// logs is what an operator reads.
func logs(t *testing.T, arguments ...string) string {
	t.Helper()
	text, err := cluster.Kubectl("", append([]string{"logs", "--namespace", dhc.Namespace, "--selector", selector}, arguments...)...)
	if err != nil {
		t.Errorf("kubectl logs: %v", err)
	}
	return text
}

// logOf is the log of one replica, of which every line is JSON.
func logOf(t *testing.T, pod string) (lines []map[string]any) {
	t.Helper()
	text, err := cluster.Kubectl("", "logs", "--namespace", dhc.Namespace, pod)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		fields := map[string]any{}
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("a line of %s's log is not JSON: %v: %s", pod, err, line)
		}
		lines = append(lines, fields)
	}
	return lines
}

// expectLine says that the log has a line with all of these fields.
func expectLine(t *testing.T, pod string, wanted map[string]string) {
	t.Helper()
	realcluster.Eventually(t, 20*time.Second, fmt.Sprintf("the log of %s has a line with %v", pod, wanted), func() error {
		for _, line := range logOf(t, pod) {
			all := true
			for key, value := range wanted {
				all = all && strings.Contains(fmt.Sprint(line[key]), value)
			}
			if all {
				return nil
			}
		}
		return fmt.Errorf("it has none")
	})
}

func deviceOf(t *testing.T, pod corev1.Pod) string {
	t.Helper()
	return story.DeviceOf(t, cluster, pod)
}

// expectEvictedAfterAllocatableFell compares the versions that the eviction and the kubelet's write made: etcd counts all objects together.
func expectEvictedAfterAllocatableFell(t *testing.T, seen *story.Watched, plugin *realnode.Plugin) {
	t.Helper()
	seen.AwaitDeletion(t)
	var fell uint64
	realcluster.Eventually(t, 0, "allocatable is seen to have fallen", func() (err error) {
		fell, err = strconv.ParseUint(plugin.AllocatableReached(2), 10, 64)
		return err
	})
	for _, version := range seen.Versions() {
		if version.Pod.DeletionTimestamp == nil {
			continue
		}
		if evicted, err := strconv.ParseUint(version.Pod.ResourceVersion, 10, 64); err != nil || evicted < fell {
			t.Errorf("evicted in version %d (%v), allocatable fell in version %d", evicted, err, fell)
		}
		return
	}
	t.Error("no version of the Pod was seen to be evicted")
}

// expectReplays says that each run of a replica, ended or not, is decided again as it was, and that the eviction of the Pod is in one of them.
func expectReplays(t *testing.T, evicted corev1.Pod) {
	t.Helper()
	realcluster.Eventually(t, 20*time.Second, "the eviction is recorded", func() error {
		files, err := filepath.Glob(filepath.Join(records(), "*.jsonl"))
		if err != nil {
			return err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			for line := range strings.Lines(string(text)) {
				if strings.HasPrefix(line, `{"plan"`) && strings.Contains(line, "EvictPod") && strings.Contains(line, evicted.Name) {
					return nil
				}
			}
		}
		return fmt.Errorf("%d files do not tell it", len(files))
	})
	runs, err := dhc.ReplayRuns(records(), t.TempDir())
	if err != nil {
		t.Error(err)
	} else if runs < 2 {
		t.Errorf("two replicas recorded %d runs", runs)
	}
}
