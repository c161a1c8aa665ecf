package manifests

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/lint/support"
)

// withImage names the image that the kustomizations name, where the values name none: the chart has no default.
func withImage(values map[string]any) map[string]any {
	image, _ := values["image"].(map[string]any)
	if image == nil {
		image = map[string]any{}
	}
	if _, named := image["repository"]; !named {
		image["repository"] = "device-health-controller"
	}
	values["image"] = image
	return values
}

func helm(t *testing.T, values string) Objects {
	t.Helper()
	text, err := Helm(Chart(t), Namespace, withImage(Values(t, values)))
	if err != nil {
		t.Fatal(err)
	}
	return Read(t, text)
}

// sortedArgs makes the order of the program's flags no difference: kustomize appends --mode, the chart sets each.
func sortedArgs(objects Objects) Objects {
	for name, object := range objects {
		if strings.HasPrefix(name, "Deployment/") {
			args := container(object)["args"].([]any)
			slices.SortFunc(args, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
		}
	}
	return objects
}

func pod(deployment Object) map[string]any {
	return deployment["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
}

func container(deployment Object) map[string]any {
	return pod(deployment)["containers"].([]any)[0].(map[string]any)
}

func compare(t *testing.T, kustomized, charted Objects) {
	t.Helper()
	delete(kustomized, "Namespace//"+Namespace) // of the chart's user, who names it
	kustomized, charted = sortedArgs(kustomized), sortedArgs(charted)
	if !slices.Equal(kustomized.Names(), charted.Names()) {
		t.Fatalf("kustomize makes\n  %s\nthe chart\n  %s", strings.Join(kustomized.Names(), "\n  "), strings.Join(charted.Names(), "\n  "))
	}
	for name, object := range kustomized {
		if one, other := object.Text(), charted[name].Text(); one != other {
			t.Errorf("%s differs\n---- kustomize\n%s---- chart\n%s", name, one, other)
		}
	}
}

func TestObserveIsTheSameByKustomizeAndByHelm(t *testing.T) {
	compare(t, Kustomize(t, "overlays/observe"), helm(t, "{}"))
}

func TestEnforceIsTheSameByKustomizeAndByHelm(t *testing.T) {
	compare(t, Kustomize(t, "overlays/enforce"), helm(t, "mode: enforce"))
}

func TestEveryComponentIsTheSameByKustomizeAndByHelm(t *testing.T) {
	compare(t, Kustomize(t, "overlays/enforce", "components/service-monitor", "components/pod-monitor", "components/alerts", "components/dashboard", "components/admission-policy", "components/recreate-jobs", "components/hand-over", "components/hand-over-resource", "components/webhook"),
		helm(t, "{mode: enforce, serviceMonitor: {enabled: true}, podMonitor: {enabled: true}, alerts: {enabled: true}, dashboard: {enabled: true}, admissionPolicy: {enabled: true}, recreateJobs: {enabled: true}, handOver: {enabled: true, resource: true}, webhook: {secretName: device-health-webhook}}"))
	folders, err := os.ReadDir(filepath.Join(Root(t), "manifests/components"))
	if err != nil || len(folders) != 10 { // with the README
		t.Errorf("a component is not compared here: %v %v", folders, err)
	}
}

func TestARecordingAndAWebhookAreMountedTogether(t *testing.T) {
	deployment := func(values string) string {
		return helm(t, values)["Deployment/"+Namespace+"/device-health-controller"].Text()
	}
	both := deployment("{record: {enabled: true}, webhook: {secretName: hook}}")
	for _, wanted := range []string{"secretName: hook", "mountPath: /etc/device-health/webhook", "mountPath: /var/lib/device-health/records"} {
		if !strings.Contains(both, wanted) {
			t.Errorf("no %q in\n%s", wanted, both)
		}
	}
	if strings.Contains(deployment("{}"), "webhook") {
		t.Error("it mounts a Secret unasked")
	}
}

func TestEveryPresetIsTheSameByKustomizeAndByHelm(t *testing.T) {
	for _, preset := range presets(t) {
		compare(t, Kustomize(t, "overlays/observe", "presets/"+preset), helm(t, "presets: ["+preset+"]"))
	}
}

func presets(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(Root(t), "manifests/presets/*/kustomization.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no presets: %v", err)
	}
	for _, file := range files {
		names = append(names, filepath.Base(filepath.Dir(file)))
	}
	return names
}

// Roles that people may be given; bound to nobody, they give no right to anybody.
var forPeople = []string{"ClusterRole//device-health-reader", "ClusterRole//device-health-operator"}

// Writes in observe mode: Events, the Lease and our own state. A role that writes anything else carries the label and is left out.
func TestObserveModeHasNoRightToWriteOnWorkloads(t *testing.T) {
	allowed := []string{"events.k8s.io/events", "coordination.k8s.io/leases", "/configmaps"}
	objects := Kustomize(t, "overlays/observe")
	for name, object := range objects {
		_, bound := objects[strings.Replace(name, "Role/", "RoleBinding/", 1)]
		for _, rule := range rules(object) {
			if slices.Contains(forPeople, name) && !bound {
				break
			}
			for _, right := range rule {
				verb, resource, _ := strings.Cut(right, " ")
				if !slices.Contains([]string{"list", "watch", "get"}, verb) && !slices.Contains(allowed, resource) {
					t.Errorf("%s gives %s", name, right)
				}
			}
		}
		if strings.Contains(name, "RoleBinding/") {
			role := strings.Replace(name, "RoleBinding", "Role", 1)
			if _, there := objects[role]; !there {
				t.Errorf("%s binds a role that is not there", name)
			}
		}
	}
}

func rules(object Object) (all [][]string) {
	list, _ := object["rules"].([]any)
	for _, each := range list {
		rule := each.(map[string]any)
		var rights []string
		for _, group := range rule["apiGroups"].([]any) {
			for _, resource := range rule["resources"].([]any) {
				for _, verb := range rule["verbs"].([]any) {
					rights = append(rights, verb.(string)+" "+group.(string)+"/"+resource.(string))
				}
			}
		}
		all = append(all, rights)
	}
	return all
}

func TestNoRoleHasAWildcardOrReachesSecrets(t *testing.T) {
	rights := 0
	for name, object := range Kustomize(t, "overlays/enforce") {
		for _, rule := range rules(object) {
			for _, right := range rule {
				rights++
				if strings.Contains(right, "*") || strings.Contains(right, "secrets") || right == "delete /pods" || strings.Contains(right, "escalate") ||
					strings.Contains(right, "impersonate") || strings.HasPrefix(right, "bind ") {
					t.Errorf("%s gives %s", name, right)
				}
			}
		}
	}
	if rights < 20 {
		t.Errorf("only %d rights were looked at", rights)
	}
}

func TestEveryRoleFileIsInTheBase(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(Root(t), "manifests/base/*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(Root(t), "manifests/base/kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if name := filepath.Base(file); name != "kustomization.yaml" && !strings.Contains(string(text), "  - "+name+"\n") {
			t.Errorf("base/kustomization.yaml does not name %s", name)
		}
	}
}

func TestTheChartFollowsItsReleaseIntoAnyNamespace(t *testing.T) {
	text, err := Helm(Chart(t), "elsewhere", withImage(Values(t, "{mode: enforce, serviceMonitor: {enabled: true}, podMonitor: {enabled: true}, alerts: {enabled: true}, dashboard: {enabled: true}, admissionPolicy: {enabled: true}, recreateJobs: {enabled: true}}")))
	if err != nil {
		t.Fatal(err)
	}
	if at := strings.Index(text, Namespace); at >= 0 {
		t.Errorf("still names %s: %s", Namespace, text[max(0, at-200):at+50])
	}
	if !strings.Contains(text, "system:serviceaccount:elsewhere:device-health-controller") {
		t.Error("the admission policy does not name the account in its namespace")
	}
}

func TestTheChartsValuesReachTheDeployment(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	objects := helm(t, `{mode: enforce, replicas: 3, image: {repository: example.com/dhc, digest: "`+digest+`", pullPolicy: Always}, imagePullSecrets: [{name: pull}],
	  events: false, status: false, logLevel: debug, logFormat: text, priorityClassName: "", nodeSelector: {kubernetes.io/os: linux}, tolerations: [{operator: Exists}], podAnnotations: {a: b},
	  resources: {limits: {memory: 1Gi}}, networkPolicy: {enabled: false}, podDisruptionBudget: {enabled: false}, policies: {mine.yaml: "text: 1"}}`)
	deployment := objects["Deployment/"+Namespace+"/device-health-controller"]
	text := deployment.Text()
	for _, wanted := range []string{"example.com/dhc@" + digest, "replicas: 3", "imagePullPolicy: Always", "name: pull", "--events=false", "--status=false", "--log-level=debug", "--log-format=text", "--mode=enforce",
		"kubernetes.io/os: linux", "operator: Exists", "a: b", "memory: 1Gi"} {
		if !strings.Contains(text, wanted) {
			t.Errorf("no %q in\n%s", wanted, text)
		}
	}
	if strings.Contains(text, "priorityClassName") || strings.Contains(text, "--log-format=json") {
		t.Errorf("what was replaced is still there:\n%s", text)
	}
	for name := range objects {
		if strings.HasPrefix(name, "NetworkPolicy") || strings.HasPrefix(name, "PodDisruptionBudget") {
			t.Errorf("%s was switched off", name)
		}
	}
	data := objects["ConfigMap/"+Namespace+"/device-health-controller"]["data"].(map[string]any)
	if !maps.Equal(data, map[string]any{"mine.yaml": "text: 1"}) {
		t.Errorf("policies: %v", data)
	}
}

func TestTheChartGivesARecordingItsVolume(t *testing.T) {
	text := func(values string) string {
		deployment := helm(t, values)["Deployment/"+Namespace+"/device-health-controller"]
		return deployment.Text()
	}
	for values, wanted := range map[string][]string{
		"{record: {enabled: true}}":                      {"--record=/var/lib/device-health/records", "--record-max-size=512Mi", "sizeLimit: 640Mi", "mountPath: /var/lib/device-health/records"},
		"{record: {enabled: true, maxSize: 2Gi}}":        {"--record-max-size=2Gi", "sizeLimit: 2368Mi"},
		"{record: {enabled: true, existingClaim: mine}}": {"claimName: mine", "fsGroup: 65532"},
	} {
		for _, one := range wanted {
			if !strings.Contains(text(values), one) {
				t.Errorf("%s: no %q in\n%s", values, one, text(values))
			}
		}
	}
	if strings.Contains(text("{}"), "record") {
		t.Error("it records unasked")
	}
}

func TestAlertsNameTheirRunbooksWhereTheyArePublished(t *testing.T) {
	rules := func(values string) string {
		return helm(t, values)["PrometheusRule/"+Namespace+"/device-health-controller"].Text()
	}
	if text := rules(`{alerts: {enabled: true}}`); !strings.Contains(text, "runbook: docs/runbooks/DeviceHealthDeviceBad.md") || strings.Contains(text, "runbook_url") {
		t.Errorf("an alert does not name its page in the repository:\n%s", text)
	}
	text := rules(`{alerts: {enabled: true, runbookURL: "https://wiki.example.com/gpus"}}`)
	if !strings.Contains(text, "runbook_url: https://wiki.example.com/gpus/DeviceHealthDeviceBad.md") || strings.Contains(text, "docs/runbooks") {
		t.Errorf("an alert does not name its published page:\n%s", text)
	}
}

// What docs/install.md says to users of kustomize, done to what they render.
func TestTheRunbooksOfKustomizationsAreNamedByTheCommandOfThePage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(Root(t), "docs/install.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`\| sed '(s#[^']*#)' \|`).FindStringSubmatch(string(page))
	if found == nil {
		t.Fatal("the page has no such command")
	}
	command := exec.Command("sed", found[1])
	rendered := Kustomize(t, "overlays/observe", "components/alerts")["PrometheusRule/"+Namespace+"/device-health-controller"].Text()
	command.Stdin = strings.NewReader(rendered)
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	alerts := strings.Count(rendered, "alert: ")
	if urls := strings.Count(string(out), "runbook_url: https://wiki.example.com/device-health/DeviceHealth"); urls != alerts || alerts == 0 {
		t.Errorf("%d of %d alerts have a runbook_url", urls, alerts)
	}
	charted := helm(t, `{alerts: {enabled: true, runbookURL: "https://wiki.example.com/device-health"}}`)["PrometheusRule/"+Namespace+"/device-health-controller"].Text()
	sorted := Read(t, string(out))["PrometheusRule/"+Namespace+"/device-health-controller"].Text()
	if sorted != charted {
		t.Errorf("the chart says otherwise\n---- kustomize\n%s---- chart\n%s", sorted, charted)
	}
}

func TestWrongValuesAreRefused(t *testing.T) {
	for values, says := range map[string]string{
		"mode: off":              "mode",
		"moed: enforce":          "moed",
		"replicas: many":         "replicas",
		"image: {digest: abc}":   "digest",
		"policies: {a.txt: x}":   "policies",
		"presets: [nvidia-drra]": "amd aws-neuron dranet example-driver google-tpu intel-gaudi intel-gpu nvidia-device-plugin nvidia-dra sriov-rdma",
	} {
		if _, err := Helm(Chart(t), Namespace, withImage(Values(t, values))); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", values, err)
		}
	}
}

// Without this the pods end in ErrImagePull, which says nothing of what is missing.
func TestWithoutAnImageTheChartFailsEarlyAndSaysWhatToDo(t *testing.T) {
	for _, values := range []string{"{}", "{mode: enforce}", `{image: {repository: ""}}`, "{image: {tag: 0.1.0}}"} {
		_, err := Helm(Chart(t), Namespace, Values(t, values))
		if err == nil || !strings.Contains(err.Error(), "image.repository: name the image") || !strings.Contains(err.Error(), "--set image.repository=REGISTRY/device-health-controller") {
			t.Errorf("%s: %v", values, err)
		}
	}
}

func TestHelmLintFindsNothing(t *testing.T) {
	linter := action.NewLint()
	linter.Strict, linter.Namespace = true, Namespace
	result := linter.Run([]string{filepath.Join(Root(t), "manifests")}, map[string]any{})
	for _, message := range result.Messages {
		if message.Severity > support.InfoSev {
			t.Error(message)
		}
	}
	if result.TotalChartsLinted != 1 || len(result.Errors) > 0 {
		t.Errorf("%d charts linted, %v", result.TotalChartsLinted, result.Errors)
	}
}

func TestAPackagedChartRendersTheSame(t *testing.T) {
	archive, err := chartutil.Save(Chart(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	packaged, err := loader.Load(archive)
	if err != nil {
		t.Fatal(err)
	}
	values := "{mode: enforce, presets: [amd, nvidia-dra], admissionPolicy: {enabled: true}, dashboard: {enabled: true}}"
	one, err := Helm(packaged, Namespace, withImage(Values(t, values)))
	if err != nil {
		t.Fatal(err)
	}
	other, err := Helm(Chart(t), Namespace, withImage(Values(t, values)))
	if err != nil {
		t.Fatal(err)
	}
	if one != other {
		t.Error("the package renders otherwise")
	}
}

func TestVersionsOfProgramChartAndImageAgree(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(Root(t), "CMakeLists.txt"))
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`project\(\S+ VERSION (\S+)`).FindStringSubmatch(string(text))
	if version == nil {
		t.Fatal("CMakeLists.txt has no version")
	}
	metadata := Chart(t).Metadata
	image := container(Kustomize(t, "overlays/observe")["Deployment/"+Namespace+"/device-health-controller"])["image"]
	if metadata.Version != version[1] || metadata.AppVersion != version[1] || image != "device-health-controller:"+version[1] {
		t.Errorf("program %s, chart %s of %s, image %v", version[1], metadata.Version, metadata.AppVersion, image)
	}
}
