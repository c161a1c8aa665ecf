package main

import (
	"fmt"
	"slices"
	"strings"
)

// contender is a controller that is measured. {kubeconfig} is replaced in its arguments.
type contender struct {
	name        string // of its log
	title       string // in tables
	argv        []string
	environment []string
	protobuf    bool // it asks for protobuf, which the stand-in makes beforehand
}

// contenders are ours first, then what it is compared with; only: those of these names.
func contenders(program, policy, only string) []contender {
	gopher := func(name, title string, flags ...string) contender {
		return contender{
			name: name, title: title, protobuf: slices.Contains(flags, "protobuf"),
			argv: append([]string{beside("controller"), "--kubeconfig", "{kubeconfig}"}, flags...),
		}
	}
	all := []contender{
		ours(program, policy),
		gopher("protobuf", "Go, protobuf", "--content-type", "protobuf"),
		gopher("protobuf-slim", "Go, protobuf, slim", "--content-type", "protobuf", "--transform", "slim"),
		gopher("json", "Go, JSON", "--content-type", "json"),
	}
	if only == "" {
		return all
	}
	var some []contender
	for name := range strings.SplitSeq(only, ",") {
		at := slices.IndexFunc(all, func(c contender) bool { return c.name == name })
		if at < 0 {
			fail(fmt.Errorf("--only: no contender %q", name))
		}
		some = append(some, all[at])
	}
	return some
}

// ours runs as it does in a cluster: it holds a Lease, and writes each eviction down in its ConfigMap before it sends it. Events
// are off, because the others write none.
func ours(program, policy string) contender {
	return contender{
		name: "ours", title: "ours", protobuf: true,
		argv: []string{program, "run", "--kubeconfig", "{kubeconfig}", "--config", policy, "--mode", "enforce", "--events=false", "--log-level", "warn",
			"--metrics-bind-address", "127.0.0.1:0", "--health-probe-bind-address", "0", "--detail-bind-address", "0"},
		environment: []string{"POD_NAMESPACE=device-health-system", "POD_NAME=device-health-controller-0"},
	}
}
