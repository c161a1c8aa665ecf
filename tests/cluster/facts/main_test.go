// Package facts shows what a real API server does where our client depends on it. When one of these fails after a new
// release, the client has to learn, not the test.
package facts

import (
	"testing"

	"device-health.io/controller/tests/cluster/realcluster"
)

var whole, withoutWatchList *realcluster.ControlPlane

func TestMain(m *testing.M) {
	realcluster.Main(m, func(planes []*realcluster.ControlPlane) error {
		whole, withoutWatchList = planes[0], planes[1]
		return nil
	}, realcluster.Options{Name: "whole", NoController: true},
		realcluster.Options{Name: "without-watchlist", WithoutControllers: true, NoController: true, FeatureGates: map[string]bool{"WatchList": false}})
}
