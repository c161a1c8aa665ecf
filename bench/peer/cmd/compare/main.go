// Command compare runs our controller and those of client-go alternately against a stand-in of an API server, and prints what
// each costs as tables in Markdown.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// plan is what a run consists of; README.md has its phases.
type plan struct {
	pods    []int
	nodes   int           // 0: one for each 30 pods
	seed    uint64        // of the objects and of the order of failures
	rounds  int           // runs of each contender and size
	quiet   time.Duration // in which nothing happens
	rate    float64       // pod updates a second under load
	load    time.Duration // of updates alone, and again with singles
	singles int           // devices that fail one by one under load
	burst   int           // devices that fail at once; at most a tenth of the pods
	rest    time.Duration // without load before the burst
	limit   time.Duration // longest wait for a sync
	folder  string        // for logs and kubeconfig
}

func main() {
	runtime.LockOSThread() // what we start dies with the thread that started it
	p, program, policy, only := flags()
	fighters := contenders(program, policy, only)
	begin(p, program)
	correct := true
	for _, pods := range p.pods {
		var results []result
		for range p.rounds {
			for _, c := range fighters {
				r, err := p.run(c, pods)
				if err != nil {
					fail(fmt.Errorf("%s, %d pods: %w", c.name, pods, err))
				}
				fmt.Fprintf(os.Stderr, "%s, %d pods: %s\n", c.name, pods, r)
				results = append(results, r)
			}
		}
		correct = table(os.Stdout, pods, results) && correct
	}
	if !correct {
		fail(fmt.Errorf("not each failure has led to exactly one eviction: the times of such runs do not count"))
	}
}

func flags() (p plan, program, policy, only string) {
	sizes := flag.String("pods", "2000,20000", "numbers of pods, comma separated")
	flag.IntVar(&p.nodes, "nodes", 0, "nodes (default pods/30)")
	flag.Uint64Var(&p.seed, "seed", 1, "same seed, same objects and same order of failures")
	flag.IntVar(&p.rounds, "rounds", 1, "runs of each contender and size")
	flag.DurationVar(&p.quiet, "quiet", 20*time.Second, "how long nothing happens")
	flag.Float64Var(&p.rate, "rate", 1000, "pod updates a second under load")
	flag.DurationVar(&p.load, "load", 10*time.Second, "length of the load without failures, and of that with single failures")
	flag.IntVar(&p.singles, "singles", 100, "devices that fail one by one under load")
	flag.IntVar(&p.burst, "burst", 1000, "devices that fail at once, at most a tenth of the pods")
	flag.DurationVar(&p.rest, "rest", 3*time.Second, "time without load before the burst")
	flag.DurationVar(&p.limit, "limit", 10*time.Minute, "longest wait for a sync")
	flag.StringVar(&p.folder, "folder", os.TempDir(), "for logs and kubeconfig")
	flag.StringVar(&program, "program", "", "our controller")
	flag.StringVar(&policy, "policy", "", "its configuration")
	flag.StringVar(&only, "only", "", "names of contenders, comma separated, as their logs are called (default all)")
	flag.Parse()
	for size := range strings.SplitSeq(*sizes, ",") {
		n, err := strconv.Atoi(size)
		if err != nil || n < 10 {
			fail(fmt.Errorf("--pods %s: at least 10", size))
		}
		p.pods = append(p.pods, n)
	}
	return p, program, policy, only
}

// beside is a program that was built together with this one.
func beside(name string) string {
	self, err := os.Executable()
	if err != nil {
		fail(err)
	}
	return filepath.Join(filepath.Dir(self), name)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "compare:", err)
	os.Exit(1)
}
