// Package view asks how old what the controller knows may be: an etcd restored to the past, a quiet cluster, a silent stream,
// an eviction or a condition that is accepted and never shows.
package view

import (
	"testing"
	"time"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/realcluster"
)

// What a loaded machine may need.
const patience = 2 * time.Minute

// The second one is restored to its past.
var cluster, restored *realcluster.ControlPlane

func TestMain(m *testing.M) {
	realcluster.Main(m, func(planes []*realcluster.ControlPlane) error {
		cluster, restored = planes[0], planes[1]
		return dhc.InstallOn(planes)
	}, realcluster.Options{Name: "view"}, realcluster.Options{Name: "restored"})
}
