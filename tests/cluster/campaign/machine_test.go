package campaign

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/realcluster"
)

// ailment is a machine, or a server, that is not well.
type ailment struct {
	name     string
	inSample bool
	twist    func(*testing.T, *plane) twist
}

// Each of them ends as the undisturbed story.
func TestAnAilingMachineOrServerEndsAsTheUndisturbedStory(t *testing.T) {
	wanted := os.Getenv("DHC_CAMPAIGN")
	if wanted != "" && wanted != "machine" {
		return
	}
	want, _ := undisturbed(t)
	for _, one := range slices.Concat(frozen(), restored(), setClocks(t), littleMeans()) {
		if wanted == "" && !one.inSample {
			continue
		}
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			on := <-free
			defer func() { free <- on }()
			began, done := time.Now(), false
			defer func() {
				note(t, on, result{"machine", 0, 0, one.name, true, done && !t.Failed(), time.Since(began).Seconds()})
			}()
			w, want := one.twist(t, on), want
			want.RulesMade += w.rulesMore
			if got, _ := on.tell(t, nil, w); got.String() != want.String() {
				t.Errorf("%s: it ends otherwise\n%s, not\n%s", one.name, got, want)
			}
			done = true
		})
	}
}

func (s *told) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// frozen is an API server that nobody hears of for a while, and whose connections stay.
func frozen() (all []ailment) {
	for _, long := range []time.Duration{10 * time.Second, 40 * time.Second, 100 * time.Second} {
		freeze := func(s *told) {
			s.must(s.on.cp.FreezeAPIServer())
			time.Sleep(long) // the story itself
			s.must(s.on.cp.ThawAPIServer())
			// A kubelet says again that it and its Pods are Ready once its node has been called unreachable, which takes the controller manager a moment.
			go func() {
				for range 12 {
					time.Sleep(time.Second)
					_ = s.node.SetReady(context.Background(), true)
					s.node.Forget()
				}
			}()
		}
		all = append(all,
			ailment{fmt.Sprint("frozen for ", long, " as the devices go bad"), false, func(*testing.T, *plane) twist { return twist{broken: freeze} }},
			ailment{fmt.Sprint("frozen for ", long, " when the taints stand"), long == 10*time.Second, func(*testing.T, *plane) twist {
				return twist{evictAfter: "1s", broken: func(s *told) {
					s.await("the taints stand", s.isTainted)
					freeze(s)
				}}
			}})
	}
	return all
}

func (s *told) isTainted() error {
	if rules := s.rules(); len(rules) != 2 {
		return fmt.Errorf("there are %d rules", len(rules))
	}
	return nil
}

// restored is an etcd as it was before the devices went bad: no taint, no credit, no state. The kubelet says again what it sees.
func restored() []ailment {
	return []ailment{{"etcd restored when the taints stand", false, func(_ *testing.T, on *plane) twist {
		return twist{evictAfter: "1m", rulesMore: 2, // made again
			before: func(s *told) { s.must(on.cp.SaveEtcd()) },
			broken: func(s *told) {
				s.await("the taints stand", s.isTainted)
				s.must(on.cp.Spend(s.t.Context(), s.namespace, 500)) // versions, so that the past does not catch up before anybody looks
				s.must(on.cp.RestoreEtcd(func() {}))
				s.node.Forget()
				s.must(s.node.PublishStatus(s.t.Context()))
			}}
	}}}
}

// setClocks are steps of the controller's wall clock alone (a monotonic clock has none): what has begun goes on as if it had not been set.
func setClocks(t *testing.T) (all []ailment) {
	const library = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"
	if _, err := os.Stat(library); err != nil {
		t.Fatalf("the controller's clock cannot be set: %v (apt-get install faketime)", err)
	}
	for _, offset := range []string{"+3600", "-3600", "+86400", "-86400"} {
		all = append(all, ailment{"the controller's clock set by " + offset + " s when the taints stand", offset == "+3600", func(t *testing.T, _ *plane) twist {
			clock := filepath.Join(t.TempDir(), "clock")
			set := func(offset string) {
				if err := os.WriteFile(clock, []byte(offset+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			set("+0")
			return twist{
				wrapper: []string{"env", "LD_PRELOAD=" + library, "FAKETIME_TIMESTAMP_FILE=" + clock, "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1"},
				broken: func(s *told) {
					s.await("the taints stand", s.isTainted)
					set(offset)
					s.await("it knows of it", func() error {
						if text := s.running.ClockLine(s.t); strings.Contains(text, "within a second") {
							return fmt.Errorf("/readyz says %s", text)
						}
						return nil
					})
				}}
		}})
	}
	return all
}

// littleMeans are a controller's, who has more on a machine that is well.
func littleMeans() []ailment {
	return []ailment{
		{"64 KiB of disk for records", true, func(t *testing.T, _ *plane) twist {
			folder := t.TempDir()
			// A mount namespace of its own: the file system goes with the process.
			script := `mount -t tmpfs -o size=64k none "$0" && exec "$@"`
			return twist{records: folder, wrapper: []string{"unshare", "--mount", "sh", "-c", script, folder}}
		}},
		{"a twentieth of a processor", false, func(t *testing.T, on *plane) twist {
			return twist{wrapper: group(t, on, "cpu", "starved", "cpu.cfs_quota_us", "cpu.max", "5000")}
		}},
		{"64 MiB of memory", false, func(t *testing.T, on *plane) twist {
			return twist{wrapper: group(t, on, "memory", "narrow", "memory.limit_in_bytes", "memory.max", fmt.Sprint(64<<20))}
		}},
		{"200 open files", true, func(*testing.T, *plane) twist { return twist{wrapper: openFiles(200)} }},
	}
}

// group makes a control group that ends with the control plane, and returns what begins a program in it.
func group(t *testing.T, on *plane, controller, name, file1, file2, value string) []string {
	t.Helper()
	folder, file := filepath.Join("/sys/fs/cgroup", controller, filepath.Base(on.cp.Folder), name), file1
	if _, err := os.Stat(filepath.Dir(filepath.Dir(folder))); err != nil {
		folder, file = filepath.Join("/sys/fs/cgroup", filepath.Base(on.cp.Folder), name), file2 // version 2
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatalf("this machine lets nobody make a control group: %v", err)
	}
	if err := os.WriteFile(filepath.Join(folder, file), []byte(value), 0o600); err != nil {
		t.Fatalf("this machine lets nobody limit %s: %v", controller, err)
	}
	return []string{"sh", "-c", `echo $$ > "$0" && exec "$@"`, filepath.Join(folder, "cgroup.procs")}
}

func openFiles(most int) []string {
	return []string{"sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$@"`, most), "sh"}
}

// It cannot watch everything, so it takes part in nothing: it says so, and lives.
func TestAControllerThatMayOpenTooFewFilesIsNotReadyAndSaysWhy(t *testing.T) {
	if wanted := os.Getenv("DHC_CAMPAIGN"); wanted != "" && wanted != "machine" {
		return
	}
	on := <-free
	defer func() { free <- on }()
	one := dhc.Launch(t, dhc.Settings{Kubeconfig: dhc.Kubeconfig(t, on.cp, dhc.Account, ""), Policy: dhc.Policy{Namespace: on.cp.Namespace(t)}.Text(), InCluster: true, Elect: true,
		Wrapper: openFiles(48)})
	realcluster.Eventually(t, time.Minute, "/readyz says it", func() error {
		if err := one.Ready(t); err == nil || !strings.Contains(err.Error(), "Too many open files") {
			return fmt.Errorf("it says %v", err)
		}
		return nil
	})
}

// Whatever it lacks at its start, it says so and ends with a code, or runs without it: it is never killed by its own mistake.
func TestAStartWithoutThreadsOrFilesSaysWhatIsMissing(t *testing.T) {
	if wanted := os.Getenv("DHC_CAMPAIGN"); wanted != "" && wanted != "machine" {
		return
	}
	on := <-free
	defer func() { free <- on }()
	namespace := on.cp.Namespace(t)
	step := 18 // the sample
	if os.Getenv("DHC_CAMPAIGN") != "" {
		step = 1
	}
	try := func(t *testing.T, name string, wrapper []string) {
		began := time.Now()
		one, err := dhc.LaunchShared(t.TempDir(), dhc.Settings{Kubeconfig: dhc.Kubeconfig(t, on.cp, dhc.Account, ""), Policy: dhc.Policy{Namespace: namespace}.Text(), Mode: "observe",
			NoEvents: true, Wrapper: wrapper})
		if err != nil {
			t.Fatal(err)
		}
		code, ended := one.Ended(3 * time.Second)
		if ended && code < 0 {
			t.Errorf("with %s it dies of a signal:\n%s", name, tail(one.LogText(t)))
		} else if !ended {
			if err := one.End(); err != nil {
				t.Errorf("with %s: %v", name, err)
			}
		} else if text := one.LogText(t); code == 0 || !strings.Contains(text, "error") {
			t.Errorf("with %s it ends with code %d and says\n%s", name, code, tail(text))
		}
		note(t, on, result{"machine", 0, 0, "a start with " + name, true, !t.Failed(), time.Since(began).Seconds()})
	}
	for files := 4; files < 60; files += step {
		t.Run(fmt.Sprint(files, " files"), func(t *testing.T) {
			try(t, fmt.Sprint(files, " open files"), openFiles(files))
		})
	}
	for threads := 1; threads < 60; threads += step {
		t.Run(fmt.Sprint(threads, " threads"), func(t *testing.T) {
			try(t, fmt.Sprint(threads, " threads"), group(t, on, "pids", fmt.Sprint("few-", threads), "pids.max", "pids.max", fmt.Sprint(threads)))
		})
	}
}

func tail(text string) string { return text[max(0, len(text)-2000):] }
