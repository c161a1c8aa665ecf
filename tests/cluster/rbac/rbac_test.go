// Package rbac takes each verb of manifests/ away in turn and shows which feature stops, so that no verb is there in vain.
package rbac

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/workload"
)

const gpu = "example.com/gpu"

// `list` is only used where WatchList is missing, so its cases run on the second one.
var cluster, withoutWatchList *realcluster.ControlPlane
var manifests dhc.Manifests

func TestMain(m *testing.M) {
	realcluster.Main(m, func(planes []*realcluster.ControlPlane) (err error) {
		cluster, withoutWatchList = planes[0], planes[1]
		if err := dhc.InstallOn(planes); err != nil {
			return err
		}
		manifests, err = dhc.ReadManifests(cluster)
		return err
	}, realcluster.Options{Name: "rbac"},
		realcluster.Options{Name: "rbac-without-watchlist", WithoutControllers: true, FeatureGates: map[string]bool{"WatchList": false, "GenericWorkload": true},
			RuntimeConfig: realcluster.Release().ServesPodGroups()}) // of what is not served no list is asked
}

// kinds as /readyz names them.
var kinds = map[string]string{
	"pods": "Pod", "nodes": "Node", "namespaces": "Namespace", "resourceclaims": "ResourceClaim", "resourceslices": "ResourceSlice",
	"devicetaintrules": "DeviceTaintRule", "jobs": "Job", "replicasets": "ReplicaSet", "statefulsets": "StatefulSet", "configmaps": "ConfigMap",
	"poddisruptionbudgets": "PodDisruptionBudget", "podgroups": "PodGroup",
	"leases": "Lease",
}

// owners are the kinds that own pods and are not watched, by group.
var owners = map[string][]string{
	"":                         {"pods", "replicationcontrollers"},
	"apps":                     {"deployments"},
	"apps.kruise.io":           {"clonesets", "statefulsets"},
	"argoproj.io":              {"cronworkflows", "rollouts", "workflows"},
	"batch":                    {"cronjobs"},
	"batch.volcano.sh":         {"jobs"},
	"jobset.x-k8s.io":          {"jobsets"},
	"kubeflow.org":             {"jaxjobs", "mpijobs", "notebooks", "paddlejobs", "pytorchjobs", "tfjobs", "xgboostjobs"},
	"kubevirt.io":              {"virtualmachineinstances", "virtualmachines"},
	"leaderworkerset.x-k8s.io": {"leaderworkersets"},
	"ray.io":                   {"rayclusters", "rayjobs", "rayservices"},
	"serving.knative.dev":      {"configurations", "revisions", "services"},
	"serving.kserve.io":        {"inferenceservices"},
	"sparkoperator.k8s.io":     {"scheduledsparkapplications", "sparkapplications"},
	"tekton.dev":               {"pipelineruns", "taskruns"},
	"trainer.kubeflow.org":     {"trainjobs"},
	"workload.codeflare.dev":   {"appwrappers"},
}

// The features of manifests/: this list is what a reviewer of the roles reads, so it is written out and not computed.
func expected() (all []dhc.Verb) {
	for _, verb := range []string{"list", "watch"} {
		for _, resource := range []string{"pods", "nodes", "namespaces"} {
			all = append(all, dhc.Verb{Group: "", Resource: resource, Verb: verb})
		}
		for _, name := range []string{dhc.ConfigMap, dhc.State, dhc.EarlierState} {
			all = append(all, dhc.Verb{Group: "", Resource: "configmaps", Verb: verb, Name: name})
		}
		for _, resource := range []string{"resourceclaims", "resourceslices", "devicetaintrules"} {
			all = append(all, dhc.Verb{Group: "resource.k8s.io", Resource: resource, Verb: verb})
		}
		all = append(all, dhc.Verb{Group: "batch", Resource: "jobs", Verb: verb},
			dhc.Verb{Group: "apps", Resource: "replicasets", Verb: verb}, dhc.Verb{Group: "apps", Resource: "statefulsets", Verb: verb},
			dhc.Verb{Group: "policy", Resource: "poddisruptionbudgets", Verb: verb},
			dhc.Verb{Group: "scheduling.k8s.io", Resource: "podgroups", Verb: verb})
	}
	for _, verb := range []string{"create", "patch", "delete"} {
		all = append(all, dhc.Verb{Group: "resource.k8s.io", Resource: "devicetaintrules", Verb: verb})
	}
	for _, verb := range []string{"create", "patch"} {
		for _, name := range []string{dhc.State, dhc.Status} {
			all = append(all, dhc.Verb{Group: "", Resource: "configmaps", Verb: verb, Name: name})
		}
	}
	all = append(all, dhc.Verb{Group: "batch", Resource: "jobs", Verb: "patch"})
	for group, resources := range owners {
		for _, resource := range resources {
			all = append(all, dhc.Verb{Group: group, Resource: resource, Verb: "get"})
		}
	}
	for _, verb := range []string{"get", "list", "watch", "create", "patch"} {
		all = append(all, dhc.Verb{Group: "coordination.k8s.io", Resource: "leases", Verb: verb, Name: dhc.ConfigMap})
	}
	all = append(all, dhc.Verb{Group: "", Resource: "pods", Verb: "get"}, dhc.Verb{Group: "resource.k8s.io", Resource: "resourceclaims", Verb: "get"},
		dhc.Verb{Group: "resource.k8s.io", Resource: "resourceslices", Verb: "get"}, dhc.Verb{Group: "batch", Resource: "jobs", Verb: "get"})
	return append(all, dhc.Verb{Group: "", Resource: "pods/status", Verb: "patch"}, dhc.Verb{Group: "", Resource: "pods/eviction", Verb: "create"},
		dhc.Verb{Group: "", Resource: "nodes", Verb: "patch"}, dhc.Verb{Group: "events.k8s.io", Resource: "events", Verb: "create"})
}

func TestTheManifestsGiveExactlyTheVerbsOfTheFeatures(t *testing.T) {
	given, wanted := fmt.Sprint(sorted(manifests.Verbs())), fmt.Sprint(sorted(expected()))
	if given != wanted {
		t.Errorf("given  %s\nwanted %s", given, wanted)
	}
	for _, role := range manifests.Roles {
		for _, rule := range role.Rules {
			if role.Namespace != dhc.Namespace || len(rule.ResourceNames) != 1 {
				t.Errorf("role %s/%s is not bound to one object of our namespace: %+v", role.Namespace, role.Name, rule)
			}
		}
	}
}

func sorted(verbs []dhc.Verb) (lines []string) {
	for _, verb := range verbs {
		lines = append(lines, verb.String())
	}
	slices.Sort(lines)
	return lines
}

func TestEachVerbNamesAFileThatExists(t *testing.T) {
	base, err := realcluster.RepositoryFile("manifests/base")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(base, "rbac-*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no role files: %v", err)
	}
	verb := regexp.MustCompile(`^ {6}- (\w+)(?:  # ([\w./-]+)\b.*)?$`)
	for _, file := range files {
		text, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer text.Close()
		for lines := bufio.NewScanner(text); lines.Scan(); {
			found := verb.FindStringSubmatch(lines.Text())
			if found == nil {
				continue
			}
			path, err := realcluster.RepositoryFile(found[2])
			if err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(path); found[2] == "" || err != nil || info.IsDir() {
				t.Errorf("%s: verb %s names %q, which is no file of the repository", filepath.Base(file), found[1], found[2])
			}
		}
	}
}

func TestWithAllVerbsItIsReady(t *testing.T) {
	for name, cp := range map[string]*realcluster.ControlPlane{"with WatchList": cluster, "without WatchList": withoutWatchList} {
		t.Run(name, func(t *testing.T) {
			dhc.WriteConfigMap(t, cp, dhc.Policy{Namespace: "none"}.Text())
			account := dhc.Account
			if cp.Options.WithoutControllers { // nobody aggregates roles there
				account = manifests.AccountWithout(t, cp)
			}
			controller := dhc.StartReady(t, dhc.Settings{Kubeconfig: dhc.Kubeconfig(t, cp, account, ""), InCluster: true, Elect: true})
			controller.AwaitSays(t, "permissions checked")
			if err := controller.Says("forbidden: "); err == nil {
				t.Error("it says that something is forbidden")
			}
		})
	}
}

func TestWithWatchListNoListVerbIsUsed(t *testing.T) {
	dhc.WriteConfigMap(t, cluster, dhc.Policy{Namespace: "none"}.Text())
	var lists []dhc.Verb
	for _, verb := range manifests.Verbs() {
		if verb.Verb == "list" {
			lists = append(lists, verb)
		}
	}
	account := manifests.AccountWithout(t, cluster, lists...)
	dhc.StartReady(t, dhc.Settings{Kubeconfig: dhc.Kubeconfig(t, cluster, account, ""), InCluster: true, Elect: true})
}

func TestWithoutOneReadingVerbItIsNeverReadyAndNamesTheKind(t *testing.T) {
	for _, verb := range expected() {
		cp := cluster
		switch verb.Verb {
		case "list":
			cp = withoutWatchList
		case "watch":
		default:
			continue
		}
		t.Run(verb.String(), func(t *testing.T) {
			dhc.WriteConfigMap(t, cp, dhc.Policy{Namespace: "none"}.Text())
			account := manifests.AccountWithout(t, cp, verb)
			controller := dhc.Start(t, dhc.Settings{Kubeconfig: dhc.Kubeconfig(t, cp, account, ""), InCluster: true, Elect: true})
			realcluster.Eventually(t, 15*time.Second, "/readyz names what is forbidden and all else is listed", func() error {
				code, text := controller.Readyz(t)
				if code == http.StatusOK {
					return fmt.Errorf("ready: %s", text)
				}
				for _, kind := range kinds {
					mark := "[+]" + kind + ":"
					if kind == kinds[verb.Resource] {
						mark = "[-]" + kind + ": forbidden"
					}
					if !strings.Contains(text, mark) {
						return fmt.Errorf("no %s in %s", mark, text)
					}
				}
				if read := strings.Contains(text, "[+]policy: loaded"); read == (verb.Resource == "configmaps" && verb.Name == dhc.ConfigMap) {
					return fmt.Errorf("the policy is loaded: %t: %s", read, text)
				}
				return nil
			})
			controller.AwaitSays(t, "forbidden: "+verb.Resource, verb.Verb)
		})
	}
}

// What an eviction rests on is read afresh before it: without that nothing is evicted, and both the log and the verdict say why.
func TestWithoutTheRightToReadAPodNothingIsEvictedAndItsVerdictSaysSo(t *testing.T) {
	namespace := cluster.Namespace(t)
	node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: map[string][]string{gpu: {"gpu-0", "gpu-1", "gpu-2", "gpu-3"}}})
	sick := workload.Deployment{Namespace: namespace, Name: "infer", Replicas: 1, Resource: gpu}.Create(t, cluster)[0]
	account, since := manifests.AccountWithout(t, cluster, dhc.Verb{Resource: "pods", Verb: "get"}), time.Now()
	controller := dhc.StartReady(t, dhc.Settings{Kubeconfig: dhc.Kubeconfig(t, cluster, account, ""), Policy: dhc.Policy{Namespace: namespace}.Text()})
	controller.AwaitSays(t, "forbidden: pods get (needed by: evict)")
	node.Break(t, gpu, "gpu-0")
	if verdict := controller.AwaitVerdict(t, sick.Name, "Refused"); !strings.Contains(verdict.Message, `cannot get resource "pods"`) {
		t.Errorf("the verdict says %q", verdict.Message)
	}
	sent, err := cluster.Audit(since, func(e realcluster.AuditEvent) bool {
		return e.User.Username == dhc.User(account) && e.ObjectRef.Subresource == "eviction"
	})
	if err != nil || len(sent) > 0 {
		t.Errorf("%d evictions were sent: %v", len(sent), err)
	}
}

// The writing verbs: without one its feature stops, is said, and the others go on.
func TestWithoutOneWritingVerbItsFeatureStopsAndTheOthersGoOn(t *testing.T) {
	for _, test := range []struct {
		verb                        dhc.Verb
		condition, evicted, noticed bool
	}{
		{dhc.Verb{Resource: "pods/status", Verb: "patch"}, false, true, true},
		{dhc.Verb{Resource: "pods/eviction", Verb: "create"}, true, false, true},
		{dhc.Verb{Group: "events.k8s.io", Resource: "events", Verb: "create"}, true, true, false},
	} {
		t.Run(test.verb.String(), func(t *testing.T) {
			namespace := cluster.Namespace(t)
			node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: map[string][]string{gpu: {"gpu-0", "gpu-1", "gpu-2", "gpu-3"}}})
			sick := workload.Deployment{Namespace: namespace, Name: "infer", Replicas: 1, Resource: gpu}.Create(t, cluster)[0]
			account, since := manifests.AccountWithout(t, cluster, test.verb), time.Now()
			controller := dhc.StartReady(t, dhc.Settings{Kubeconfig: dhc.Kubeconfig(t, cluster, account, ""), Policy: dhc.Policy{Namespace: namespace}.Text()})
			controller.AwaitSays(t, "forbidden: "+test.verb.Resource, test.verb.Verb)
			node.Break(t, gpu, "gpu-0")
			answers := func() map[string][]int {
				codes := map[string][]int{}
				events, err := cluster.Audit(since, func(e realcluster.AuditEvent) bool { return e.User.Username == dhc.User(account) && e.Writes() })
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range events {
					what := strings.Trim(e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource, "/")
					codes[what] = append(codes[what], e.Response.Code)
				}
				return codes
			}
			realcluster.Eventually(t, 20*time.Second, "what is allowed is done and what is not is refused", func() error {
				sent := answers()
				for what, allowed := range map[string]bool{"pods/status": test.condition, "pods/eviction": test.evicted, "events": test.noticed} {
					code := http.StatusForbidden
					if allowed {
						code = map[string]int{"pods/status": http.StatusOK, "pods/eviction": http.StatusCreated, "events": http.StatusCreated}[what]
					}
					if !slices.Contains(sent[what], code) {
						return fmt.Errorf("%s: no %d among %v", what, code, sent)
					}
				}
				return nil
			})
			if test.evicted {
				realcluster.Eventually(t, 15*time.Second, "the Pod is replaced", func() error {
					for _, pod := range workload.Pods(t, cluster, namespace, "infer") {
						if pod.UID != sick.UID && pod.Status.Phase == corev1.PodRunning {
							return nil
						}
					}
					return fmt.Errorf("not yet")
				})
			} else if now, err := cluster.Client.CoreV1().Pods(namespace).Get(t.Context(), sick.Name, metav1.GetOptions{}); err != nil || now.DeletionTimestamp != nil {
				t.Errorf("the Pod goes: %v", err)
			}
			if code, text := controller.Readyz(t); code != http.StatusOK {
				t.Errorf("a writing verb is no matter of readiness: %d %s", code, text)
			}
		})
	}
}
