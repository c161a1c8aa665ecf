package realnode

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"device-health.io/controller/tests/cluster/realcluster"
)

// StatusEvery is how often the kubelet writes the node's status, capacity and allocatable in it. The default is 10 s.
const StatusEvery = 4 * time.Second

const containerdConfig = `version = 3
root = "{folder}/containerd/root"
state = "{folder}/containerd/state"
[grpc]
  address = "{folder}/containerd.sock"
[plugins.'io.containerd.cri.v1.images']
  snapshotter = "native"
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = "{image}"
[plugins.'io.containerd.cri.v1.runtime']
  enable_cdi = true
  cdi_spec_dirs = ["{folder}/cdi"]
  # without CAP_SYS_RESOURCE no score may be lowered
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["{programs}"]
    conf_dir = "{folder}/cni"
    use_internal_loopback = true
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = "{runc}"
      SystemdCgroup = false
`

const cniConfig = `{"cniVersion": "1.0.0", "name": "none", "plugins": [{"type": "node-cni"}]}
`

// With a network, which cmd/node-cni makes.
const cniConfigWithGateway = `{"cniVersion": "1.0.0", "name": "routed", "plugins": [{"type": "node-cni", "gateway": "{gateway}"}]}
`

const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: {address}
port: {port}
readOnlyPort: 0
healthzPort: 0
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: false}
  x509: {clientCAFile: "{ca}"}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
failSwapOn: false
failCgroupV1: false
containerRuntimeEndpoint: unix://{folder}/containerd.sock
localStorageCapacityIsolation: false
evictionHard: {}
makeIPTablesUtilChains: false
nodeStatusUpdateFrequency: {every}
syncFrequency: 5s
podLogsDir: {folder}/pod-logs
staticPodPath: {folder}/static-pods
maxPods: 200
featureGates: {gates}
kubeAPIQPS: 300
kubeAPIBurst: 500
serializeImagePulls: false
`

func (n *Node) writeFiles() error {
	cni := cniConfig
	n.address = "127.0.0.1"
	if n.cp.Options.Network {
		cni = cniConfigWithGateway
		n.address = fmt.Sprint("192.0.2.", 9+addresses.Add(1))
		if err := realcluster.AddAddress(n.address); err != nil {
			return err
		}
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	gates, err := json.Marshal(realcluster.Release().Gates(nil))
	if err != nil {
		return err
	}
	fill := strings.NewReplacer("{folder}", n.folder, "{programs}", n.programs, "{image}", Image, "{runc}", n.cp.Binaries["runc"],
		"{address}", n.address, "{gateway}", realcluster.Gateway, "{port}", fmt.Sprint(port), "{ca}", filepath.Join(n.cp.Folder, "ca.crt"), "{every}", StatusEvery.String(), "{gates}", string(gates))
	for name, text := range map[string]string{"containerd.toml": containerdConfig, "cni/10-network.conflist": cni, "kubelet.yaml": kubeletConfig} {
		if err := os.WriteFile(n.file(name), []byte(fill.Replace(text)), 0o644); err != nil {
			return err
		}
	}
	identity, err := n.cp.CA.Client("system:node:"+n.Name, "system:nodes")
	if err != nil {
		return err
	}
	return n.cp.WriteKubeconfig(n.file("kubelet.kubeconfig"), realcluster.Credentials{Client: identity})
}

var addresses atomic.Int64 // of nodes, given so far

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}
