package dhc

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"device-health.io/controller/tests/cluster/realcluster"
)

// Settings of one run of the controller. Kubeconfig is required; without Policy it reads the ConfigMap of the manifests.
type Settings struct {
	Kubeconfig string
	Policy     string // text of its configuration file
	Mode       string // default enforce
	WireFormat string // default that of the controller, protobuf
	NoEvents   bool
	Elect      bool     // it takes part in the election; only with InCluster
	InCluster  bool     // it knows its own namespace, as in a Pod, and keeps the devices' histories there
	Earlier    string   // the program of release 0.1.0, instead of the one to test
	Wrapper    []string // a program and its arguments that begin another one, the controller, under a limit of the machine
	Records    string   // a folder for its records, instead of one of its own; what is in it is not replayed
}

// Controller is a running binary. It is stopped, and its exit code checked, at the end of the test; what it has recorded is then replayed, and must be decided again as it was.
type Controller struct {
	program   string
	records   string // empty: it cannot record
	process   *realcluster.Process
	isEarlier bool // 0.1.0: its detail is beside its health, and a list of verdicts
	health    string
	detail    string
	metrics   string
}

// Binary is the controller to test: $DHC_BINARY, else build/release, else build/dev.
func Binary() (string, error) {
	if path := os.Getenv("DHC_BINARY"); path != "" {
		if info, err := os.Stat(path); err != nil || info.Mode()&0o111 == 0 {
			return "", fmt.Errorf("DHC_BINARY=%s is not a program", path)
		}
		return filepath.Abs(path)
	}
	for _, build := range []string{"release", "dev"} {
		path, err := realcluster.RepositoryFile("build/" + build + "/device-health-controller")
		if err != nil {
			return "", err
		}
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("there is no controller to test: build it (make build) or set DHC_BINARY; neither build/release nor build/dev has a device-health-controller")
}

// Launch starts the binary without waiting for anything.
func Launch(t *testing.T, settings Settings) *Controller {
	t.Helper()
	c, err := launch(t.TempDir(), settings)
	fatal(t, err)
	t.Cleanup(func() {
		c.stop(t)
		if t.Failed() {
			t.Logf("---- controller, last 60 lines\n%s", c.process.Tail(60))
		}
	})
	return c
}

// LaunchShared starts a binary that outlives the test: whoever calls this ends it with End. Its log is in the folder.
func LaunchShared(folder string, settings Settings) (*Controller, error) {
	return launch(folder, settings)
}

func launch(folder string, settings Settings) (*Controller, error) {
	binary, err := settings.Earlier, error(nil)
	if binary == "" {
		binary, err = Binary()
	}
	if err != nil {
		return nil, err
	}
	mode := settings.Mode
	if mode == "" {
		mode = "enforce"
	}
	arguments := []string{"run", "--kubeconfig", settings.Kubeconfig, "--mode", mode, "--events=" + strconv.FormatBool(!settings.NoEvents),
		"--log-format", "json", "--log-level", "debug", "--metrics-bind-address", "127.0.0.1:0", "--health-probe-bind-address", "127.0.0.1:0"}
	if settings.Earlier == "" {
		arguments = append(arguments, "--detail-bind-address", "127.0.0.1:0")
	}
	program, records := binary, ""
	switch {
	case settings.Records != "":
		arguments = append(arguments, "--record", settings.Records)
	case settings.Earlier == "":
		if records, err = os.MkdirTemp(folder, "records-"); err != nil {
			return nil, err
		}
		arguments = append(arguments, "--record", records)
	}
	if settings.WireFormat != "" {
		arguments = append(arguments, "--wire-format", settings.WireFormat)
	}
	if settings.Policy == "" {
		arguments = append(arguments, "--config-map", Namespace+"/"+ConfigMap)
	} else {
		file := filepath.Join(folder, "policy.yaml")
		if err := os.WriteFile(file, []byte(settings.Policy), 0o600); err != nil {
			return nil, err
		}
		arguments = append(arguments, "--config", file)
	}
	if settings.InCluster {
		arguments = append(arguments, "--leader-elect="+strconv.FormatBool(settings.Elect))
		arguments = append([]string{"POD_NAMESPACE=" + Namespace, binary}, arguments...)
		binary = "env"
	}
	if len(settings.Wrapper) > 0 {
		arguments = append(append(slices.Clone(settings.Wrapper[1:]), binary), arguments...)
		binary = settings.Wrapper[0]
	}
	process, err := realcluster.StartProcess("controller", filepath.Join(folder, "controller.log"), binary, arguments...)
	if err != nil {
		return nil, err
	}
	return &Controller{program: program, records: records, process: process, isEarlier: settings.Earlier != ""}, nil
}

// Start launches the binary and waits until it serves its pages.
func Start(t *testing.T, settings Settings) *Controller {
	t.Helper()
	c := Launch(t, settings)
	c.AwaitServing(t)
	return c
}

// AwaitServing waits until it serves its pages.
func (c *Controller) AwaitServing(t *testing.T) {
	t.Helper()
	realcluster.Eventually(t, 30*time.Second, "the controller serves", func() error {
		err := c.serves(t)
		if err != nil {
			select {
			case <-c.process.Done():
				t.Fatalf("the controller ended with code %d", c.process.ExitCode())
			default:
			}
		}
		return err
	})
}

// serves reads from its log where its pages are.
func (c *Controller) serves(t *testing.T) error {
	t.Helper()
	for _, line := range c.Log(t) {
		if line["msg"] == "serving" {
			address := fmt.Sprint("http://", line["address"])
			switch line["what"] {
			case "health":
				c.health = address
				if c.isEarlier {
					c.detail = address
				}
			case "detail":
				c.detail = address
			case "metrics":
				c.metrics = address
			}
		}
	}
	if c.health == "" || c.detail == "" || c.metrics == "" {
		return fmt.Errorf("no line says serving what=health, what=detail and what=metrics")
	}
	return nil
}

// Ready returns why it is not ready yet. It asks once, also a controller that has ended.
func (c *Controller) Ready(t *testing.T) error {
	t.Helper()
	if c.health == "" || c.detail == "" || c.metrics == "" {
		if err := c.serves(t); err != nil {
			return err
		}
	}
	if code, text := c.Readyz(t); code != http.StatusOK {
		return fmt.Errorf("%d %s", code, text)
	}
	return nil
}

// StartReady also waits until it is ready: every kind listed, a policy read.
func StartReady(t *testing.T, settings Settings) *Controller {
	t.Helper()
	c := Start(t, settings)
	c.AwaitReady(t)
	return c
}

// AwaitReady waits until it is ready.
func (c *Controller) AwaitReady(t *testing.T) {
	t.Helper()
	realcluster.Eventually(t, time.Minute, "the controller is ready", func() error {
		if code, text := c.Readyz(t); code != http.StatusOK {
			return fmt.Errorf("%d %s", code, text)
		}
		return nil
	})
}

// Kill ends the controller as a crash would, and returns when it is gone.
func (c *Controller) Kill() {
	_ = c.process.Signal(syscall.SIGKILL)
	<-c.process.Done()
}

// Signal sends one, such as SIGSTOP, and returns once it is sent.
func (c *Controller) Signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	fatal(t, c.process.Signal(signal))
}

// grace is far more than the 5 s within which the controller promises to end: by its own clock, after which it ends with another code than 0.
const grace = 30 * time.Second

// End stops the controller and returns what is wrong with how it ended, also that it took more than 5 s.
func (c *Controller) End() error {
	if err := c.process.Stop(grace); err != nil {
		return err
	}
	if code := c.process.ExitCode(); code != 0 {
		return fmt.Errorf("after SIGTERM the controller ended with code %d", code)
	}
	return c.Replay()
}

// Replay gives what the controller has recorded to the same program again, after it has ended: an error says where it decides otherwise.
func (c *Controller) Replay() error {
	if c.records == "" {
		return nil
	}
	if files, err := filepath.Glob(filepath.Join(c.records, "*.jsonl")); err != nil || len(files) == 0 {
		return err // it ended before it could begin
	}
	if err := keep(c.records); err != nil {
		return err
	}
	return replay(c.program, c.records)
}

func replay(program, records string) error {
	out, err := exec.Command(program, "replay", records).CombinedOutput()
	if err != nil {
		return fmt.Errorf("replay of what the controller recorded: %w\n%s", err, out[:min(len(out), 20_000)])
	}
	return nil
}

// ReplayRuns gives each run of a folder to the program to test, by itself, as the runs of two replicas overlap, and returns how many there were. What still
// records is replayed as far as it has come.
func ReplayRuns(records, copies string) (runs int, err error) {
	program, err := Binary()
	if err != nil {
		return 0, err
	}
	files, err := filepath.Glob(filepath.Join(records, "*.jsonl"))
	if err != nil {
		return 0, err
	}
	of := map[string][]string{}
	for _, file := range files {
		run := filepath.Base(file[:strings.LastIndex(file, "-")]) // START-RUN-NUMBER.jsonl
		of[run] = append(of[run], file)
	}
	for run, files := range of {
		folder := filepath.Join(copies, run)
		if err := os.Mkdir(folder, 0o755); err != nil {
			return 0, err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return 0, err
			}
			if err := os.WriteFile(filepath.Join(folder, filepath.Base(file)), text, 0o600); err != nil {
				return 0, err
			}
		}
		if err := replay(program, folder); err != nil {
			return 0, fmt.Errorf("run %s: %w", run, err)
		}
	}
	return len(of), nil
}

// keep leaves a copy of a recording in the folder that $DHC_RECORDINGS names, for tests/model/conform.
func keep(records string) error {
	folder := os.Getenv("DHC_RECORDINGS")
	if folder == "" {
		return nil
	}
	err := os.CopyFS(filepath.Join(folder, filepath.Base(records)), os.DirFS(records))
	if errors.Is(err, fs.ErrExist) {
		return nil // it was replayed before
	}
	return err
}

// LogOf is the end of the log, only lines that name a namespace.
func (c *Controller) LogOf(namespace string, lines int) string {
	text, err := os.ReadFile(c.process.LogPath)
	if err != nil {
		return err.Error()
	}
	var kept []string
	for _, line := range strings.Split(string(text), "\n") {
		if strings.Contains(line, namespace) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept[max(0, len(kept)-lines):], "\n")
}

// stop sends SIGTERM: the controller promises to end within 5 s with code 0.
func (c *Controller) stop(t *testing.T) {
	defer func() {
		if err := c.Replay(); err != nil {
			t.Error(err)
		}
	}()
	select {
	case <-c.process.Done(): // it ended by itself, which the test has seen or caused
		_ = c.process.Stop(0)
		return
	default:
	}
	began := time.Now()
	_ = c.process.Signal(syscall.SIGTERM)
	select {
	case <-c.process.Done():
		if code := c.process.ExitCode(); code != 0 {
			t.Errorf("after SIGTERM the controller ended with code %d", code)
		}
	case <-time.After(grace):
		t.Errorf("the controller still runs %s after SIGTERM", time.Since(began))
	}
	if err := c.process.Stop(0); err != nil {
		t.Error(err)
	}
}

// Ended waits for the controller to end by itself.
func (c *Controller) Ended(within time.Duration) (code int, ended bool) {
	select {
	case <-c.process.Done():
		return c.process.ExitCode(), true
	case <-time.After(within):
		return 0, false
	}
}

// Log is every JSON line written so far; a line that is not JSON is under "raw".
func (c *Controller) Log(t *testing.T) (lines []map[string]any) {
	t.Helper()
	file, err := os.Open(c.process.LogPath)
	fatal(t, err)
	defer file.Close()
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		line := map[string]any{}
		if json.Unmarshal(scanner.Bytes(), &line) != nil {
			line = map[string]any{"raw": scanner.Text()}
		}
		lines = append(lines, line)
	}
	return lines
}

// LogText is the whole log.
func (c *Controller) LogText(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(c.process.LogPath)
	fatal(t, err)
	return string(text)
}

// Says returns an error unless one line of the log contains every one of these texts.
func (c *Controller) Says(texts ...string) error {
	log, err := os.ReadFile(c.process.LogPath)
	if err != nil {
		return err
	}
	for _, line := range strings.Split(string(log), "\n") {
		all := true
		for _, text := range texts {
			all = all && strings.Contains(line, text)
		}
		if all {
			return nil
		}
	}
	return fmt.Errorf("no line of the log contains all of %q", texts)
}

// AwaitSays waits until one line of the log contains every one of these texts.
func (c *Controller) AwaitSays(t *testing.T, texts ...string) {
	t.Helper()
	realcluster.Eventually(t, 30*time.Second, "the log says it", func() error { return c.Says(texts...) })
}

func get(url string) (code int, body string, err error) {
	client := http.Client{Timeout: time.Minute}
	response, err := client.Get(url)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// Readyz is the readiness page; code 0 if it does not answer.
func (c *Controller) Readyz(t *testing.T) (code int, text string) {
	t.Helper()
	code, text, err := get(c.health + "/readyz")
	if err != nil {
		return 0, err.Error()
	}
	return code, text
}

// ClockLine is what its readiness page says of the clocks.
func (c *Controller) ClockLine(t *testing.T) string {
	t.Helper()
	_, text := c.Readyz(t)
	for line := range strings.Lines(text) {
		if strings.Contains(line, "clock: ") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// Metric is the sum of all samples of that name with at least these labels, as in `name{action="EvictPod",outcome="ok"}`; 0 if there is none.
func (c *Controller) Metric(t *testing.T, sample string) float64 {
	t.Helper()
	_, text, err := get(c.metrics + "/metrics")
	fatal(t, err)
	name, wanted, _ := strings.Cut(strings.TrimSuffix(sample, "}"), "{")
	sum := 0.0
	for _, found := range regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(name)+`(?:\{(.*)\})? (\S+)$`).FindAllStringSubmatch(text, -1) {
		has := true
		for _, label := range strings.FieldsFunc(wanted, func(r rune) bool { return r == ',' }) {
			has = has && strings.Contains(","+found[1]+",", ","+label+",")
		}
		if has {
			number, err := strconv.ParseFloat(found[2], 64)
			fatal(t, err)
			sum += number
		}
	}
	return sum
}

// Verdict as /verdicts shows it.
type Verdict struct {
	Subject                         struct{ Kind, Namespace, Name, UID string }
	Device, Policy, Reason, Message string
	Since                           string
	NextStepAt                      *string
}

// Said is what /verdicts answers; Verdicts is nil where the replica judges nothing.
type Said struct {
	Leader, Role, Mode, Message string
	ViewAges                    map[string]*int
	Verdicts                    []Verdict
}

// Said asks for /verdicts: 200 with verdicts, 503 without.
func (c *Controller) Said(t *testing.T) (code int, said Said) {
	t.Helper()
	code, said, err := c.Ask()
	fatal(t, err)
	return code, said
}

// Ask is Said for who goes on without an answer: the end of a failed test, whose controller may have died of it.
func (c *Controller) Ask() (code int, said Said, err error) {
	code, text, err := get(c.detail + "/verdicts")
	if err != nil {
		return code, said, err
	}
	if c.isEarlier {
		if err := json.Unmarshal([]byte(text), &said.Verdicts); err != nil {
			return code, said, fmt.Errorf("/verdicts: %d %w: %s", code, err, text)
		}
		return code, said, nil
	}
	if err := json.Unmarshal([]byte(text), &said); err != nil {
		return code, said, fmt.Errorf("/verdicts: %d %w: %s", code, err, text)
	}
	if (code == http.StatusOK) != (said.Verdicts != nil) || (code == http.StatusServiceUnavailable) != (said.Message != "") {
		return code, said, fmt.Errorf("/verdicts: %d %s", code, text)
	}
	return code, said, nil
}

// Verdicts now held; none while this replica judges nothing.
func (c *Controller) Verdicts(t *testing.T) []Verdict {
	t.Helper()
	_, said := c.Said(t)
	return said.Verdicts
}

// AwaitSaidOf waits until a subject has had a verdict with this reason, be it gone again: its log has every one that begins.
func (c *Controller) AwaitSaidOf(t *testing.T, name, reason string) {
	t.Helper()
	c.AwaitSays(t, `"msg":"verdict"`, `"reason":"`+reason+`"`, `"name":"`+name+`"`)
}

// AwaitVerdict waits until a subject has a verdict with this reason.
func (c *Controller) AwaitVerdict(t *testing.T, name, reason string) (found Verdict) {
	t.Helper()
	realcluster.Eventually(t, time.Minute, fmt.Sprintf("verdict %s on %s", reason, name), func() error {
		var others []string
		for _, verdict := range c.Verdicts(t) {
			if verdict.Subject.Name == name && verdict.Reason == reason {
				found = verdict
				return nil
			}
			others = append(others, verdict.Subject.Name+":"+verdict.Reason)
		}
		return fmt.Errorf("there are %v", others)
	})
	return found
}
