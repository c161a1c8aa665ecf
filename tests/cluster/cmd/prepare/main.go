// Command prepare builds the programs of the control plane into the cache, with -node those of a node too, with -owners the controllers of
// JobSet, LeaderWorkerSet, training-operator and KubeRay too, with -kueue Kueue too, with -earlier only release 0.1.0 of ours, or with -sweep removes what killed runs left.
package main

import (
	"flag"
	"fmt"
	"os"

	"device-health.io/controller/tests/cluster/realcluster"
)

func main() {
	node := flag.Bool("node", false, "also the programs of a node")
	owners := flag.Bool("owners", false, "also the controllers of JobSet, LeaderWorkerSet, training-operator and KubeRay")
	kueue := flag.Bool("kueue", false, "also Kueue")
	earlier := flag.Bool("earlier", false, "only the controller's release 0.1.0, from its archive")
	sweep := flag.Bool("sweep", false, "only remove what killed runs left")
	flag.Parse()
	say := func(format string, args ...any) { fmt.Fprintf(os.Stderr, "cluster: "+format+"\n", args...) }
	removed, err := realcluster.Sweep()
	if len(removed) > 0 {
		say("removed what a killed run left: %v", removed)
	}
	switch {
	case err != nil || *sweep:
	case *earlier:
		_, err = realcluster.EnsureEarlier(say)
	default:
		ensure := realcluster.EnsureBinaries
		if *node {
			ensure = realcluster.EnsureNodeBinaries
		}
		if *owners {
			ensure = realcluster.EnsureOwnerBinaries
		}
		if *kueue {
			ensure = realcluster.EnsureKueueBinaries
		}
		_, err = ensure(say)
	}
	if err != nil {
		say("FAILED: %v", err)
		os.Exit(1)
	}
}
