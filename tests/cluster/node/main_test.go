// Package node tells the controller's stories on a real node: a device plugin or a DRA driver says that a device is broken, and what
// the API server holds afterwards is compared with what should have happened. Nothing between the two is simulated.
package node

import (
	"fmt"
	"testing"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/realnode"
)

var (
	cluster *realcluster.ControlPlane
	node    *realnode.Node // where most stories play
	second  *realnode.Node // whose kubelet restarts
)

func TestMain(m *testing.M) {
	realcluster.Main(m, func(planes []*realcluster.ControlPlane) (err error) {
		cluster = planes[0]
		if _, err := dhc.Binary(); err != nil {
			return err
		}
		if err := dhc.Install(cluster); err != nil {
			return fmt.Errorf("installing the controller's roles: %w", err)
		}
		if node, err = realnode.Start(cluster, "node-a"); err != nil {
			return err
		}
		second, err = realnode.Start(cluster, "node-b")
		return err
	}, realcluster.Options{Name: "node", Node: true})
}
