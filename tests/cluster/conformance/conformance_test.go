// Package conformance runs the conformance suite of conformance/, as anybody would, against this controller, against two rivals, and where nobody acts.
package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/realcluster"
)

var (
	cluster    *realcluster.ControlPlane
	suite      string // the program
	kubeconfig string // of an account that may do what its role says, and no more
)

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		panic(err)
	}
	suite = filepath.Join(folder, "device-health-conformance")
	realcluster.Main(m, func(planes []*realcluster.ControlPlane) error {
		cluster = planes[0]
		planes[0].AtStop(func() []string { return left(os.RemoveAll(folder)) })
		source, err := realcluster.RepositoryFile("conformance")
		if err != nil {
			return err
		}
		build := exec.Command("go", "build", "-o", suite, ".")
		build.Dir = source
		if output, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("the suite does not compile: %w\n%s", err, output)
		}
		if _, err := dhc.Binary(); err != nil {
			return err
		}
		if kubeconfig, err = account(filepath.Join(source, "role.yaml"), folder); err != nil {
			return err
		}
		return dhc.Install(cluster)
	}, realcluster.Options{Name: "conformance"})
}

// account for the suite, with its role.
func account(role, folder string) (kubeconfig string, err error) {
	const name, namespace = "device-health-conformance", "default"
	for _, arguments := range [][]string{{"apply", "-f", role}, {"create", "serviceaccount", name, "--namespace", namespace},
		{"create", "clusterrolebinding", name, "--clusterrole", name, "--serviceaccount", namespace + ":" + name}} {
		if _, err := cluster.Kubectl("", arguments...); err != nil {
			return "", err
		}
	}
	token, err := cluster.Token(context.Background(), namespace, name)
	if err != nil {
		return "", err
	}
	kubeconfig = filepath.Join(folder, "kubeconfig")
	return kubeconfig, cluster.WriteKubeconfig(kubeconfig, realcluster.Credentials{Token: token})
}

func left(err error) []string {
	if err != nil {
		return []string{err.Error()}
	}
	return nil
}

// results is what the suite wrote with --json.
type results struct {
	Results []struct {
		ID, Status, Reason string
		Required           bool
	}
}

func (r results) are(status string, required bool) (ids []string) {
	for _, one := range r.Results {
		if one.Status == status && one.Required == required {
			ids = append(ids, one.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

func domainOf(short string) string { return short + ".example.com" }

// tell runs the suite against whoever acts on devices of this domain, and returns its exit code and results. Its report is kept where
// $DHC_CONFORMANCE_REPORTS says.
func tell(t *testing.T, name, short string, restart func(), more ...string) (code int, r results, junit string) {
	t.Helper()
	domain, folder := domainOf(short), t.TempDir()
	reports := os.Getenv("DHC_CONFORMANCE_REPORTS")
	if reports == "" {
		reports = folder
	}
	must(t, os.MkdirAll(reports, 0o755))
	report := filepath.Join(reports, strings.ReplaceAll(name, " ", "-")+".json")
	request := filepath.Join(folder, "restart")
	// All of them at once on one control plane: on a busy machine a story of three faults in a row needs more than its own time.
	arguments := append([]string{"--kubeconfig", kubeconfig, "--name", name, "--domain", domain, "--qps", "1000", "--react-within", "40s", "--recover-within", "40s", "--timeout", "4m", "--parallel", "16",
		"--json", report, "--junit", filepath.Join(folder, "junit.xml"), "-v"}, more...)
	if restart != nil {
		arguments = append(arguments, "--restart-command", fmt.Sprintf("touch %s; while [ -e %[1]s ]; do sleep 0.1; done", request))
	}
	command := exec.Command(suite, arguments...)
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	began := time.Now()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	for over := false; !over; {
		select {
		case err := <-ended:
			if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
				t.Fatal(err)
			}
			over = true
		case <-time.After(100 * time.Millisecond):
			if _, err := os.Stat(request); err == nil {
				restart()
				if err := os.Remove(request); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	t.Logf("%s: %s, %s\n%s", name, time.Since(began).Round(time.Second), command.ProcessState, &said)
	text, err := os.ReadFile(report)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	xml, err := os.ReadFile(filepath.Join(folder, "junit.xml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, required := range []bool{true, false} {
		expect(t, "could not be told", r.are("error", required))
	}
	return command.ProcessState.ExitCode(), r, string(xml)
}

// ours is this controller with a policy as in production, but for its times.
func ours(t *testing.T, domain string) (restart func()) {
	policy := fmt.Sprintf(`
apiVersion: device-health.io/v1alpha1
kind: DeviceHealthPolicy
metadata: {name: conformance}
spec:
  mode: enforce
  match:
    drivers: ["*.%[1]s"]
    resources: ["*.%[1]s/*"]
    deviceTaints: [{key: "*/broken"}]
  after: %[2]s
  taint: {}
  jobRetry: {settle: 2s}
  evict: {sharedClaims: Together}
  recover: {healthyFor: 15s}
---
apiVersion: device-health.io/v1alpha1
kind: ControllerLimits
metadata: {name: default}
spec:
  evictions: {perMinute: 600, maxInFlight: 20}
`, domain, delay)
	settings := dhc.Settings{Kubeconfig: dhc.Kubeconfig(t, cluster, dhc.Account, ""), Policy: policy, InCluster: true}
	controller := dhc.StartReady(t, settings)
	return func() {
		controller.Kill()
		controller = dhc.StartReady(t, settings)
	}
}

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("%s: %q, not %q", what, got, want)
	}
}

// expectAmong says that these are there. On a slow machine a rival may break more, such as what has to be done in time.
func expectAmong(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	for _, one := range want {
		if !slices.Contains(got, one) {
			t.Errorf("%s: %q, without %s", what, got, one)
		}
	}
}

func TestTheSuite(t *testing.T) {
	began := time.Now()
	t.Run("against", func(t *testing.T) {
		t.Run("this controller", keepsEveryPromise)
		t.Run("a NoExecute rule", aRuleForEachDevice)
		t.Run("a drain of the node", aDrainOfTheNode)
		t.Run("who deletes at once whatever is not Healthy", breaksWhatOthersKeep)
		t.Run("who evicts and taints nothing", givesTheBadDeviceAway)
		t.Run("nobody", noPromiseIsKeptWhereNobodyActs)
	})
	nothingIsLeft(t)
	t.Run("interrupted, it cleans up", interrupted)
	t.Run("killed, it leaves what --clean-up deletes", killed)
	nothingElseIsWritten(t, began)
}

func keepsEveryPromise(t *testing.T) {
	t.Parallel()
	restart := ours(t, domainOf("ours"))
	code, r, junit := tell(t, "device-health-controller", "ours", restart, "--opt-out", "device-health.io/opt-out=true")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, required := range []bool{true, false} {
		expect(t, "broken promises", r.are("failed", required))
		expect(t, "not applicable", r.are("not applicable", required))
	}
	var report struct {
		Suites []struct {
			Tests    int        `xml:"tests,attr"`
			Failures int        `xml:"failures,attr"`
			Cases    []struct{} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(junit), &report); err != nil || len(report.Suites) != 1 || report.Suites[0].Tests != len(r.Results) || len(report.Suites[0].Cases) != len(r.Results) {
		t.Errorf("the JUnit report does not have the %d stories: %v", len(r.Results), err)
	}
	// Where there are device plugins alone, most stories are told of theirs.
	code, r, _ = tell(t, "plugins", "ours", restart, "--devices", "plugin", "--only", "^(kept-off|neighbour|unknown|budget-held|job-moves|liar|roll-out|grace|prioritized)$")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func aRuleForEachDevice(t *testing.T) {
	t.Parallel()
	code, r, junit := tell(t, "NoExecute rule", "rule", rival(t, "rule", noExecute))
	expect(t, "required, broken", r.are("failed", true), "budget-held", "job-kept", "liar", "moves-plugin")
	expectAmong(t, "recommended, broken", r.are("failed", false), "bare-pod", "extended-resource", "job-moves", "two-budgets")
	if code != 1 || !strings.Contains(junit, "<failure") {
		t.Errorf("exit code %d", code)
	}
}

func aDrainOfTheNode(t *testing.T) {
	t.Parallel()
	// A flapping device costs nobody a pod unless it is given away while it says that it is well, which a busy machine needs the time for.
	code, r, _ := tell(t, "drain the node", "drain", rival(t, "drain", drain), "--settle", "8s")
	expect(t, "required, broken", r.are("failed", true), "job-kept", "liar", "neighbour", "no-device", "node-usable")
	expectAmong(t, "recommended, broken", r.are("failed", false), "bare-pod", "flapping", "job-moves", "job-parallel")
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
}

// What neither rival breaks, or only where it is in time (finished), this one and the next do: so every promise that something does not happen is known to fail.
func breaksWhatOthersKeep(t *testing.T) {
	t.Parallel()
	stories := []string{"unknown", "blip", "roll-out", "grace", "finished", "terminating", "daemonset", "opted-out", "job-failure-policy", "recovery"}
	_, r, _ := tell(t, "deletes at once", "hasty", rival(t, "hasty", hasty), "--opt-out", "example.com/keep=true", "--blip", "4s", "--only", "^("+strings.Join(stories, "|")+")$")
	expect(t, "broken", slices.Sorted(slices.Values(append(r.are("failed", true), r.are("failed", false)...))), stories...)
}

func givesTheBadDeviceAway(t *testing.T) {
	t.Parallel()
	_, r, _ := tell(t, "taints nothing", "untainting", rival(t, "untainting", untainting), "--only", "^kept-off$")
	if len(r.Results) != 1 || !strings.Contains(r.Results[0].Reason, "which was known to be bad") {
		t.Errorf("%+v", r.Results)
	}
}

func noPromiseIsKeptWhereNobodyActs(t *testing.T) {
	t.Parallel()
	code, r, _ := tell(t, "nobody", "nobody", nil, "--react-within", "4s", "--recover-within", "4s", "--timeout", "3m", "--parallel", "8")
	for _, required := range []bool{true, false} {
		expect(t, "kept", r.are("passed", required))
	}
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
}

// begun is a run that has made objects, and goes on.
func begun(t *testing.T) *exec.Cmd {
	t.Helper()
	command := exec.Command(suite, "--kubeconfig", kubeconfig, "--domain", "nobody.example.com", "--only", "moves", "--react-within", "5m")
	must(t, command.Start())
	realcluster.Eventually(t, time.Minute, "a story's pods run", func() error {
		pods, err := cluster.Client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{LabelSelector: "device-health-conformance/run", FieldSelector: "status.phase=Running"})
		if err == nil && len(pods.Items) == 0 {
			err = errors.New("none does")
		}
		return err
	})
	return command
}

func interrupted(t *testing.T) {
	run := begun(t)
	must(t, run.Process.Signal(os.Interrupt))
	if err := run.Wait(); err == nil {
		t.Error("it ended as if every promise had been kept")
	}
	nothingIsLeft(t)
}

func killed(t *testing.T) {
	run := begun(t)
	must(t, run.Process.Kill())
	_ = run.Wait()
	if output, err := exec.Command(suite, "--kubeconfig", kubeconfig, "--clean-up").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, output)
	}
	nothingIsLeft(t)
}

// nothingIsLeft of any run.
func nothingIsLeft(t *testing.T) {
	t.Helper()
	list := metav1.ListOptions{LabelSelector: "device-health-conformance/run"}
	namespaces, err := cluster.Client.CoreV1().Namespaces().List(t.Context(), list)
	must(t, err)
	nodes, err := cluster.Client.CoreV1().Nodes().List(t.Context(), list)
	must(t, err)
	slices, err := cluster.Client.ResourceV1().ResourceSlices().List(t.Context(), list)
	must(t, err)
	classes, err := cluster.Client.ResourceV1().DeviceClasses().List(t.Context(), list)
	must(t, err)
	leases, err := cluster.Client.CoordinationV1().Leases("").List(t.Context(), list)
	must(t, err)
	if count := []int{len(namespaces.Items), len(nodes.Items), len(slices.Items), len(classes.Items), len(leases.Items)}; fmt.Sprint(count) != "[0 0 0 0 0]" {
		t.Errorf("namespaces, nodes, slices, classes and leases that are left: %v", count)
	}
}

// nothingElseIsWritten by the suite than what it made.
func nothingElseIsWritten(t *testing.T, since time.Time) {
	t.Helper()
	all, others := 0, map[string]int{}
	_, err := cluster.Audit(since, func(e realcluster.AuditEvent) bool {
		if !strings.HasPrefix(e.UserAgent, "device-health-conformance") || !e.Writes() {
			return false
		}
		all++
		if !strings.HasPrefix(e.ObjectRef.Namespace, "conformance-") && !strings.HasPrefix(e.ObjectRef.Name, "conformance-") {
			others[fmt.Sprint(e.Verb, " ", e.ObjectRef)]++
		}
		return false
	})
	must(t, err)
	if all == 0 || len(others) > 0 {
		t.Errorf("of %d writes, these are of others' objects: %v", all, others)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
