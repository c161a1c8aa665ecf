// Command standin runs the stand-in of an API server as a process of its own, so that its cost is not the controller's.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"runtime/debug"
	"time"

	"device-health.io/controller/bench/peer/standin"
)

func main() {
	var o standin.Options
	flag.IntVar(&o.Pods, "pods", 20000, "number of pods")
	flag.IntVar(&o.Nodes, "nodes", 0, "number of nodes (default pods/30)")
	flag.Uint64Var(&o.Seed, "seed", 1, "same seed, same objects and same order of failing devices")
	flag.IntVar(&o.Unhealthy, "unhealthy", 0, "pods whose device is Unhealthy from the start")
	flag.DurationVar(&o.Linger, "linger", 500*time.Millisecond, "time from an eviction to the DELETED event")
	flag.BoolVar(&o.BareClaims, "bare-claims", false, "claims without status.devices: no driver has written conditions (KEP-4817)")
	flag.BoolVar(&o.Full, "full", false, "no node has a device to spare")
	flag.IntVar(&o.JobSize, "job-size", 16, "pods a Job")
	flag.BoolVar(&o.Protobuf, "protobuf", false, "encode all objects in protobuf before the start")
	folder := flag.String("folder", ".", "where kubeconfig and ca.crt are written")
	flag.Parse()
	debug.SetGCPercent(25) // a million pods fit into memory
	s := standin.New(o)
	kubeconfig, err := s.Start(*folder, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "standin:", err)
		os.Exit(1)
	}
	json.NewEncoder(os.Stdout).Encode(map[string]any{
		"control": httptest.NewServer(s.Control()).URL, "kubeconfig": kubeconfig, "pods": o.Pods, "pod_bytes": s.PodBytes / max(1, o.Pods),
	})
	select {}
}
