package main

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// now is CLOCK_MONOTONIC in seconds, as the stand-in's times are.
func now() float64 {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return float64(t.Nano()) / 1e9
}

// allProcesses is the CPU time of the whole machine in seconds.
func allProcesses() float64 {
	var user, nice, system, idle, iowait, irq, softirq float64
	text, _ := os.ReadFile("/proc/stat")
	fmt.Sscanf(string(text), "cpu %f %f %f %f %f %f %f", &user, &nice, &system, &idle, &iowait, &irq, &softirq)
	return (user + nice + system + irq + softirq) / 100 // USER_HZ
}

// loadAverage is that of the last minute.
func loadAverage() float64 {
	text, _ := os.ReadFile("/proc/loadavg")
	return field(string(text), "")
}

// begin prints on what, with what and how is measured: a table without these says nothing.
func begin(p plan, program string) {
	if _, err := os.Stat(program); err != nil {
		fail(fmt.Errorf("--program: %w", err))
	}
	version, _ := exec.Command(program, "version").Output()
	client, golang := "unknown", "unknown"
	if info, err := buildinfo.ReadFile(beside("controller")); err == nil {
		golang = info.GoVersion
		for _, m := range info.Deps {
			if m.Path == "k8s.io/client-go" {
				client = m.Version
			}
		}
	}
	cpu, _ := os.ReadFile("/proc/cpuinfo")
	memory, _ := os.ReadFile("/proc/meminfo")
	_, model, _ := strings.Cut(string(cpu), "model name\t: ")
	model, _, _ = strings.Cut(model, "\n")
	var kernel unix.Utsname
	unix.Uname(&kernel)
	release := strings.SplitN(unix.ByteSliceToString(kernel.Release[:]), ".", 3)
	fmt.Printf("- **When, where**: %s; %d cores (%s), %.0f GB, Linux %s; load average %.2f.\n", time.Now().UTC().Format("2006-01-02 15:04 UTC"),
		runtime.NumCPU(), model, field(string(memory), "MemTotal:")/1024/1024, strings.Join(release[:min(2, len(release))], "."), loadAverage())
	fmt.Printf("- **What**: %s; client-go %s, %s.\n", strings.TrimSpace(strings.SplitN(string(version), "\n", 2)[0]), client, golang)
	fmt.Printf("- **How**: seed %d; %v of quiet; %.0f pod updates a second for %v, then %d single failures in %v under the same load; a burst of %d (at most a tenth of the pods); rounds: %d.\n",
		p.seed, p.quiet, p.rate, p.load, p.singles, p.load, p.burst, p.rounds)
}
