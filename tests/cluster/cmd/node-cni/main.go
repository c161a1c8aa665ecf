// Command node-cni is a CNI plugin. Without a gateway in its configuration it says it has made a network, and makes none: such Pods talk to
// nobody, and so the machine keeps no bridge, no rule and no address of ours. With a gateway, in a network namespace that is the test's own,
// it ties each Pod by a line of its own (veth) to that namespace, where the gateway, the nodes and the API server are addresses.
package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
)

func main() {
	var config struct {
		CNIVersion string `json:"cniVersion"`
		Gateway    string `json:"gateway"`
	}
	text, _ := io.ReadAll(os.Stdin)
	_ = json.Unmarshal(text, &config)
	answer := map[string]any{"cniVersion": config.CNIVersion}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(os.Getenv("CNI_CONTAINERID")))
	line := fmt.Sprintf("pod%08x", sum.Sum32()) // our end of it
	switch os.Getenv("CNI_COMMAND") {
	case "VERSION":
		answer["cniVersion"] = "1.0.0"
		answer["supportedVersions"] = []string{"0.4.0", "1.0.0"}
	case "ADD":
		address := pick(sum.Sum32())
		if config.Gateway != "" {
			var err error
			if address, err = connect(line, os.Getenv("CNI_NETNS"), os.Getenv("CNI_IFNAME"), config.Gateway, sum.Sum32()); err != nil {
				_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"cniVersion": config.CNIVersion, "code": 100, "msg": err.Error()})
				os.Exit(1)
			}
		}
		answer["interfaces"] = []map[string]string{{"name": os.Getenv("CNI_IFNAME"), "sandbox": os.Getenv("CNI_NETNS")}}
		answer["ips"] = []map[string]any{{"address": address.String() + "/16", "interface": 0}}
	case "DEL":
		if config.Gateway != "" {
			_ = run("ip", "link", "delete", line) // gone already if the Pod's namespace is
		}
		return
	default: // CHECK, STATUS, GC
		return
	}
	_ = json.NewEncoder(os.Stdout).Encode(answer)
}

// pick is an address of 10.244.0.0/16 that is not the gateway's.
func pick(number uint32) net.IP { return net.IPv4(10, 244, byte(number>>8), byte(number)|2) }

// connect makes the line and returns the Pod's address. The route to it is what says that it is taken.
func connect(line, namespace, name, gateway string, number uint32) (net.IP, error) {
	if err := run("ip", "link", "add", line, "type", "veth", "peer", "name", name, "netns", namespace); err != nil {
		return nil, err
	}
	if err := run("ip", "link", "set", line, "up"); err != nil {
		return nil, err
	}
	var address net.IP
	var err error
	for range 100 {
		address = pick(number)
		if err = run("ip", "route", "add", address.String()+"/32", "dev", line); err == nil || !strings.Contains(err.Error(), "exists") {
			break
		}
		number += 4
	}
	if err != nil {
		return nil, err
	}
	for _, step := range []string{"address add " + address.String() + "/32 dev " + name, "link set " + name + " up",
		"route add " + gateway + " dev " + name, "route add default via " + gateway + " dev " + name} {
		if err := run("nsenter", append([]string{"--net=" + namespace, "ip"}, strings.Fields(step)...)...); err != nil {
			return nil, err
		}
	}
	return address, nil
}

func run(program string, arguments ...string) error {
	if output, err := exec.Command(program, arguments...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, strings.Join(arguments, " "), err, output)
	}
	return nil
}
