package standin

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"sort"
	"strings"
	"time"
)

// World is what is generated; the same World has the same objects, byte for byte.
type World struct {
	Pods       int
	Nodes      int // 0: one for each 30 pods
	Seed       uint64
	BareClaims bool // no driver has written conditions into the claims (KEP-4817)
	Full       bool // no node has a device to spare
	JobSize    int  // pods a Job; 0: 16
}

const (
	namespaceCount  = 50
	podsANode       = 30
	podsAJob        = 16
	gpusANode       = 6 // of each node that its device plugin shares out in time slices; two more are in MIG parts, behind DRA
	pluginPodsOfTen = 7 // of ten pods of a node so many hold a device of the plugin, the others one behind DRA
)

// generator fills a store. Values are those of the object that is made next.
type generator struct {
	World
	store  *store
	values map[string]string
	shapes map[string]*shape
	pods   [4]*shape // bit 0: DRA, bit 1: big
	buffer []byte
	began  time.Time
}

// generate fills the store and returns the JSON bytes of all pods: pods spread over the nodes, each with a device of its own.
func generate(s *store, w World) (podBytes int) {
	if w.Nodes == 0 {
		w.Nodes = max(1, w.Pods/podsANode)
	}
	if w.JobSize == 0 {
		w.JobSize = podsAJob
	}
	g := &generator{World: w, store: s, values: map[string]string{}, shapes: map[string]*shape{}, began: time.Date(2026, 11, 19, 0, 0, 0, 0, time.UTC)}
	g.compileShapes()
	g.namespaces()
	g.nodes()
	for i := range w.Pods {
		podBytes += g.pod(i)
	}
	for _, k := range s.kinds {
		sort.Strings(k.keys)
		k.oldest = s.rv
	}
	return podBytes
}

// devices is how many shares of plugin devices, and how many DRA devices, each node has.
func (g *generator) devices() (gpus, parts int) {
	perNode := (g.Pods + g.Nodes - 1) / g.Nodes
	if !g.Full {
		return max(4*gpusANode, (perNode*pluginPodsOfTen/10+gpusANode)/gpusANode*gpusANode), max(14, perNode)
	}
	for slot := range perNode {
		if slot%10 >= pluginPodsOfTen {
			parts = slot/10*3 + slot%10 - 6
		} else {
			gpus++
		}
	}
	return gpus, parts
}

func (g *generator) compileShapes() {
	env := strings.Fields("NCCL_DEBUG NCCL_IB_HCA NCCL_IB_GID_INDEX NCCL_SOCKET_IFNAME MASTER_ADDR MASTER_PORT WORLD_SIZE OMP_NUM_THREADS HF_HOME CHECKPOINT_DIR")
	v := variant{
		Bare: g.BareClaims, Env: env[:3], Mounts: []string{"ckpt", "data"}, Rdma: []string{"0", "1", "2"},
		Conds: []string{"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"},
	}
	gpus, parts := g.devices()
	g.values["gpus"] = fmt.Sprint(gpus)
	for d := range parts {
		v.Devices = append(v.Devices, draDevice(d))
	}
	for i := range g.pods {
		v.DRA, v.Big = i&1 == 1, i&2 == 2
		if v.Big {
			v.Env = env[:8]
		}
		g.pods[i] = compile("pod", v)
	}
	for _, name := range []string{"node", "slice", "namespace", "configmap", "job", "claim"} {
		g.shapes[name] = compile(name, v)
	}
}

// add makes one object of the present values, and returns its size in JSON.
func (g *generator) add(gv, plural string, sh *shape, ns, name, uid string) int {
	k := g.store.find(gv, plural)
	g.store.rv++
	g.values["rv"] = fmt.Sprint(g.store.rv)
	o := &object{ns: ns, name: name, uid: uid, shape: sh, vals: sh.pack(g.values)}
	k.objs[o.key()] = o // generated in any order, keys are sorted at the end
	k.keys = append(k.keys, o.key())
	g.buffer = o.json(g.buffer[:0])
	return len(g.buffer)
}

func (g *generator) set(values map[string]string) { maps.Copy(g.values, values) }

func (g *generator) namespaces() {
	for i := range namespaceCount {
		name, uid := fmt.Sprintf("team-%02d", i), uuid(g.Seed, 'n', i)
		g.set(map[string]string{"time": g.began.Format(time.RFC3339), "ns": name, "uid": uid, "hex": strings.Repeat("MIIC", 300)})
		g.add("v1", "namespaces", g.shapes["namespace"], "", name, uid)
		g.add("v1", "configmaps", g.shapes["configmap"], name, "kube-root-ca.crt", uid)
	}
}

func (g *generator) nodes() {
	for i := range g.Nodes {
		node, uid := nodeName(i), uuid(g.Seed, 'N', i)
		g.set(map[string]string{"node": node, "uid": uid, "nodeuid": uid, "hex": plain(uid), "hostip": hostIP(i)})
		g.add("v1", "nodes", g.shapes["node"], "", node, uid)
		g.values["uid"] = uuid(g.Seed, 'S', i)
		g.add("resource.k8s.io/v1", "resourceslices", g.shapes["slice"], "", "00000-"+driver+"-"+node, g.values["uid"])
	}
}

// pod makes the pod with this number, with the first of each Job the Job, and with a DRA device its claim.
func (g *generator) pod(i int) (bytes int) {
	on, slot, j := i%g.Nodes, i/g.Nodes, i/g.JobSize
	set := fmt.Sprintf("train-llm-%05d", j)
	hex := plain(uuid(g.Seed, 'x', i) + uuid(g.Seed, 'y', i))
	job, rank := set+"-worker-0", fmt.Sprint(i%g.JobSize)
	g.set(map[string]string{
		"node": nodeName(on), "ns": fmt.Sprintf("team-%02d", j%namespaceCount), "set": set, "job": job, "jobuid": uuid(g.Seed, 'J', j),
		"uid": uuid(g.Seed, 'P', i), "claimuid": uuid(g.Seed, 'C', i), "rank": rank, "hex": hex, "hex2": hex[32:] + hex[:32], "rnd": hex[:5],
		"pod": job + "-" + rank + "-" + hex[:5], "time": g.began.Add(time.Duration(i%1440) * time.Minute).Format(time.RFC3339),
		"hostip": hostIP(on), "podip": fmt.Sprintf("10.%d.%d.%d", 100+i/62500, i/250%250, i%250),
	})
	v, which := g.values, 0
	if slot%10 >= pluginPodsOfTen {
		which |= 1
		v["dev"] = draDevice(slot/10*3 + slot%10 - pluginPodsOfTen)
		g.add("resource.k8s.io/v1", "resourceclaims", g.shapes["claim"], v["ns"], v["pod"]+"-gpu", v["claimuid"])
	} else {
		p := slot/10*pluginPodsOfTen + slot%10
		v["dev"] = fmt.Sprintf("%s::%d", uuid(g.Seed, 'G', on*gpusANode+p%gpusANode), p/gpusANode)
	}
	if i%g.JobSize == 0 {
		g.add("batch/v1", "jobs", g.shapes["job"], v["ns"], v["job"], v["jobuid"])
	}
	if i%10 == 0 {
		which |= 2
	}
	return g.add("v1", "pods", g.pods[which], v["ns"], v["pod"], v["uid"])
}

func nodeName(i int) string { return fmt.Sprintf("gpu-h100-%05d.us-east-1.example.internal", i) }

func hostIP(node int) string { return fmt.Sprintf("10.0.%d.%d", node/250, node%250) }

func draDevice(d int) string { return fmt.Sprintf("gpu-%d-mig-%d", gpusANode+d%2, d/2) }

// uuid is the same for the same seed, tag and number.
func uuid(seed uint64, tag byte, n int) string {
	r := rand.NewPCG(seed, uint64(tag)<<56|uint64(n))
	a, b := r.Uint64(), r.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>52, b&0xffffffffffff)
}

func plain(u string) string { return strings.ReplaceAll(u, "-", "") }
