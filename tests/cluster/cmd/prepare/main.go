// Command prepare builds the programs of the control plane into the cache, or with -sweep removes what killed runs left.
package main

import (
	"flag"
	"fmt"
	"os"

	"device-health.io/controller/tests/cluster/realcluster"
)

func main() {
	sweep := flag.Bool("sweep", false, "only remove what killed runs left")
	flag.Parse()
	say := func(format string, args ...any) { fmt.Fprintf(os.Stderr, "cluster: "+format+"\n", args...) }
	removed, err := realcluster.Sweep()
	if len(removed) > 0 {
		say("removed what a killed run left: %v", removed)
	}
	if err == nil && !*sweep {
		_, err = realcluster.EnsureBinaries(say)
	}
	if err != nil {
		say("FAILED: %v", err)
		os.Exit(1)
	}
}
