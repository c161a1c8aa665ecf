// Command controller is what our controller is compared with: a well-written one of client-go. Shared informers, a work queue,
// an eviction with the UID as its precondition for each pod that holds an Unhealthy device; nothing else that ours does.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "path to a kubeconfig")
	contentType := flag.String("content-type", "protobuf", "json or protobuf")
	transform := flag.String("transform", "strip", "strip: without managedFields; slim: only the fields that are read")
	workers := flag.Int("workers", 8, "goroutines that evict")
	flag.Parse()
	transforms := map[string]cache.TransformFunc{"strip": stripManagedFields, "slim": slim}
	if transforms[*transform] == nil || *contentType != "json" && *contentType != "protobuf" {
		fail(fmt.Errorf("--transform is strip or slim, --content-type json or protobuf; not %q and %q", *transform, *contentType))
	}
	client, err := connect(*kubeconfig, *contentType)
	if err != nil {
		fail(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	f := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(transforms[*transform]))
	newController(client, f).run(ctx, f, *workers)
}

// connect makes a client without a limit of its own.
func connect(kubeconfig, contentType string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.ContentType = "application/json"
	if contentType == "protobuf" {
		config.ContentType = "application/vnd.kubernetes.protobuf"
		config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	}
	config.QPS = -1
	return kubernetes.NewForConfig(config)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "controller:", err)
	os.Exit(1)
}
