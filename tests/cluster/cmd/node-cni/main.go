// Command node-cni is a CNI plugin that says it has made a network, and makes none: the Pods of these tests talk to nobody, and so
// the machine keeps no bridge, no rule and no address of ours. A Pod that needs the API server takes hostNetwork.
package main

import (
	"encoding/json"
	"hash/fnv"
	"io"
	"net"
	"os"
)

func main() {
	var config struct {
		CNIVersion string `json:"cniVersion"`
	}
	text, _ := io.ReadAll(os.Stdin)
	_ = json.Unmarshal(text, &config)
	answer := map[string]any{"cniVersion": config.CNIVersion}
	switch os.Getenv("CNI_COMMAND") {
	case "VERSION":
		answer["cniVersion"] = "1.0.0"
		answer["supportedVersions"] = []string{"0.4.0", "1.0.0"}
	case "ADD":
		sum := fnv.New32a()
		_, _ = sum.Write([]byte(os.Getenv("CNI_CONTAINERID")))
		address := net.IPv4(10, 244, byte(sum.Sum32()>>8), byte(sum.Sum32())|1)
		answer["interfaces"] = []map[string]string{{"name": os.Getenv("CNI_IFNAME"), "sandbox": os.Getenv("CNI_NETNS")}}
		answer["ips"] = []map[string]any{{"address": address.String() + "/16", "interface": 0}}
	default: // DEL, CHECK, STATUS, GC
		return
	}
	_ = json.NewEncoder(os.Stdout).Encode(answer)
}
