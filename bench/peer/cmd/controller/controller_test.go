package main

import (
	"context"
	"io"
	"testing"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"device-health.io/controller/bench/peer/standin"
)

func TestItEvictsEachPodOfAFailedDeviceOnceWhateverItKeepsAndSpeaks(t *testing.T) {
	for name, transform := range map[string]cache.TransformFunc{"json": stripManagedFields, "protobuf": slim} {
		t.Run(name, func(t *testing.T) {
			s := standin.New(standin.Options{World: standin.World{Pods: 100, Seed: 1}, Unhealthy: 1, Linger: 10 * time.Millisecond})
			kubeconfig, err := s.Start(t.TempDir(), io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Close)
			client, err := connect(kubeconfig, name)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			f := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(transform))
			go newController(client, f).run(ctx, f, 4)
			gone := func(n int) func(standin.Stats) bool { return func(s standin.Stats) bool { return s.Pods == 100-n } }
			if err := s.Wait(ctx, gone(1)); err != nil {
				t.Fatal(err)
			}
			s.Fail(20, 0)
			if err := s.Wait(ctx, gone(21)); err != nil {
				t.Fatal(err, s.Stats())
			}
			if got := s.Stats(); len(got.Evictions) != 1 || got.Evictions["201"] != 21 || got.Counts["WATCHLIST pods"] != 1 {
				t.Fatal(got)
			}
		})
	}
}
