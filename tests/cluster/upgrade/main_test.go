// Package upgrade tells what becomes of open incidents when release 0.1.0 is replaced by this version, and the other way round.
package upgrade

import (
	"fmt"
	"os"
	"testing"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/realcluster"
)

var (
	cluster *realcluster.ControlPlane
	earlier realcluster.Earlier
)

func TestMain(m *testing.M) {
	say := func(format string, args ...any) { fmt.Fprintf(os.Stderr, "cluster: "+format+"\n", args...) }
	realcluster.Main(m, func(planes []*realcluster.ControlPlane) (err error) {
		cluster = planes[0]
		if _, err := dhc.Binary(); err != nil {
			return err
		}
		earlier, err = realcluster.EnsureEarlier(say)
		return err
	}, realcluster.Options{Name: "upgrade", Earlier: true})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
