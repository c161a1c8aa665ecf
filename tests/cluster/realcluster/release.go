package realcluster

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// KubernetesRelease is one that these tests can run on.
type KubernetesRelease struct {
	Minor   string // 1.37
	Version string // what its folder's go.mod names; the binaries report it as their own

	folder        string
	gates         map[string]bool // of every component: what the release has, and is off in it
	runtimeConfig string          // APIs that are off in it
	rules         string          // the version of its DeviceTaintRules, if it is not client-go's v1
	podGroups     string          // that of its PodGroups, if it has any; its gate GenericWorkload needs it
	lacks         []Feature
}

// Feature is something that stories need and that not every release can do, whatever is turned on.
type Feature string

const (
	HealthMessages        Feature = "the driver's words about a device in the pod's status (ResourceHealth.message)"
	StandaloneClaimHealth Feature = "the health of a claim's devices if pods name the claim itself, without a template"
	PodGroups             Feature = "PodGroups of scheduling.k8s.io/v1beta1, and claims of theirs"
)

// Features are those of a node: for each there is a story that it is there, or is not. PodGroups are the control plane's.
var Features = []Feature{HealthMessages, StandaloneClaimHealth}

// The newest is what CI runs. Of the others, all that our controller can use is turned on.
var releases = []KubernetesRelease{
	{Minor: "1.37", Version: "1.37.1", folder: "control-plane", podGroups: "v1beta1"},
	{Minor: "1.36", Version: "1.36.3", folder: "control-plane-1.36", gates: map[string]bool{"DRADeviceTaintRules": true},
		runtimeConfig: "resource.k8s.io/v1beta2=true", rules: "v1beta2", podGroups: "v1alpha2",
		lacks: []Feature{PodGroups}},
	{Minor: "1.35", Version: "1.35.4", folder: "control-plane-1.35",
		gates:         map[string]bool{"ResourceHealthStatus": true, "DRADeviceTaints": true, "DRADeviceTaintRules": true},
		runtimeConfig: "resource.k8s.io/v1alpha3=true", rules: "v1alpha3", lacks: []Feature{HealthMessages, StandaloneClaimHealth, PodGroups}},
}

// Release is the one that $DHC_K8S names by its minor version, else the newest.
func Release() KubernetesRelease {
	wanted := os.Getenv("DHC_K8S")
	var known []string
	for _, release := range releases {
		if wanted == "" || wanted == release.Minor {
			return release
		}
		known = append(known, release.Minor)
	}
	panic(fmt.Sprintf("DHC_K8S=%s: there are only %s", wanted, strings.Join(known, ", ")))
}

// Has says whether the release can do it.
func (r KubernetesRelease) Has(feature Feature) bool { return !slices.Contains(r.lacks, feature) }

// Needs ends the test of a story that cannot happen in this release: as skipped, not as passed, with the reason.
func Needs(t *testing.T, feature Feature) {
	t.Helper()
	if release := Release(); !release.Has(feature) {
		t.Skipf("this story does not exist in Kubernetes %s, which lacks %s", release.Version, feature)
	}
}

func (r KubernetesRelease) ldflags() string {
	major, minor, _ := strings.Cut(r.Minor, ".")
	return "-s -w -X k8s.io/component-base/version.gitVersion=v" + r.Version +
		" -X k8s.io/component-base/version.gitMajor=" + major + " -X k8s.io/component-base/version.gitMinor=" + minor
}

// Gates are the feature gates of its components, those given last.
func (r KubernetesRelease) Gates(more map[string]bool) map[string]bool {
	all := map[string]bool{}
	for _, some := range []map[string]bool{r.gates, more} {
		for gate, on := range some {
			all[gate] = on
		}
	}
	return all
}

// ServesPodGroups is the configuration of an API server that does, whatever client-go knows of them; empty: the release has none.
func (r KubernetesRelease) ServesPodGroups() string {
	if r.podGroups == "" {
		return ""
	}
	return "scheduling.k8s.io/" + r.podGroups + "=true"
}

// speak makes client-go's types do for a server of the release.
func (r KubernetesRelease) speak(config *rest.Config) {
	if r.rules != "" {
		config.ContentType = "application/json" // in which olderRules can read
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return olderRules{next, r.rules} })
	}
}

// served is what the API server is told to serve, those said last.
func (r KubernetesRelease) served(more string) string {
	return strings.Trim(r.runtimeConfig+","+more, ",")
}
