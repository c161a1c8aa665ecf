package standin

import (
	"bytes"
	"fmt"
	"strconv"
	"time"
)

// driver is the DRA driver of the devices behind claims.
const driver = "gpu.nvidia.com"

var (
	wellWords    = []byte(`"health":"Healthy"`)
	sickWords    = []byte(`"health":"Unhealthy"`)
	sickWordsDRA = []byte(`"health":"Unhealthy","message":"Xid 79: GPU has fallen off the bus"`)
	lastTimeKey  = []byte(`"lastTransitionTime":"`)
	leavingKey   = []byte(`"deletionTimestamp":"`)
	nodeKey      = []byte(`"nodeName":"`)
	claimID      = []byte(`"resourceID":"k8s.gpu.nvidia.com/claim=`)
	xidTaint     = []byte(`"taints":[{"key":"gpu.nvidia.com/xid","value":"79","effect":"NoSchedule","timeAdded":"2026-11-20T00:00:00Z"}],`)
)

// turned is how a pod looks whose device has failed (or, with well, is healthy again); nil when nothing is to change.
func (o *object) turned(well bool) []byte {
	raw := o.text()
	from, to := wellWords, sickWords
	if bytes.Contains(raw, []byte(`"name":"claim:`)) {
		to = sickWordsDRA
	}
	if well {
		from, to = to, from
	}
	if bytes.Contains(raw, leavingKey) || !bytes.Contains(raw, from) {
		return nil
	}
	return bytes.Replace(raw, from, to, 1)
}

// sicken makes the device of one pod Unhealthy; false when the pod is gone, leaving or already sick. First the node says
// that it has one less to give (device plugins), or the driver taints the device in its slice (DRA). pb: see put.
func (s *store) sicken(key string, batch int, pb []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.pods().objs[key]
	if o == nil {
		return false
	}
	raw := o.turned(false)
	if raw == nil {
		return false
	}
	s.publishDevice(raw, false)
	p := &probe{Namespace: o.ns, Name: o.name, UID: o.uid, Batch: batch}
	s.probes[o.uid] = p
	if pb == nil && o.encoded() != nil {
		pb = encode(s.pods(), raw)
	}
	s.put(s.pods(), "MODIFIED", o, raw, pb, p)
	return true
}

// Heal makes every failed device healthy again whose pod is still there, and says how many those were.
func (s *store) Heal() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.probes {
		o := s.pods().objs[p.Namespace+"/"+p.Name]
		if o == nil || o.uid != p.UID {
			continue
		}
		if raw := o.turned(true); raw != nil {
			s.publishDevice(raw, true)
			s.put(s.pods(), "MODIFIED", o, raw, nil, nil)
			n++
		}
	}
	return n
}

// publishDevice tells of a pod's device what its node's kubelet (allocatable) or its driver (a taint) tells. A real kubelet
// lowers allocatable up to 10 s after the pod's status: that wait is no controller's cost, so here it comes first. The caller
// holds mu.
//
// Source: docs/kubernetes-behaviour.md (allocatable), KEP-5055 (taints in a ResourceSlice).
func (s *store) publishDevice(pod []byte, well bool) {
	node := word(pod, nodeKey)
	if id := word(pod, claimID); len(id) > 37 {
		s.taintInSlice(node, id[37:], well) // after the claim's UID and a dash
	} else {
		s.countInNode(node, well)
	}
}

func (s *store) taintInSlice(node, device string, well bool) {
	k := s.find("resource.k8s.io/v1", "resourceslices")
	o := k.objs["/00000-"+driver+"-"+node]
	if o == nil {
		return
	}
	from := fmt.Appendf(nil, `{"name":"%s",`, device)
	to := append(bytes.Clone(from), xidTaint...)
	if well {
		from, to = to, from
	}
	s.put(k, "MODIFIED", o, bytes.Replace(o.text(), from, to, 1), nil, nil)
}

func (s *store) countInNode(node string, well bool) {
	k := s.find("v1", "nodes")
	o := k.objs["/"+node]
	if o == nil {
		return
	}
	head, rest, _ := bytes.Cut(o.text(), []byte(`"allocatable":{`))
	before, after, _ := bytes.Cut(rest, []byte(`"nvidia.com/gpu":"`))
	number, tail, _ := bytes.Cut(after, []byte(`"`))
	n, _ := strconv.Atoi(string(number))
	if n--; well {
		n += 2
	}
	s.put(k, "MODIFIED", o, fmt.Appendf(nil, `%s"allocatable":{%s"nvidia.com/gpu":"%d"%s`, head, before, max(n, 0), tail), nil, nil)
}

// heartbeat rewrites one condition time of one pod: a status update that means nothing.
func (s *store) heartbeat(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.pods()
	o := k.objs[k.keys[i%len(k.keys)]]
	for ; o == nil; i++ {
		o = k.objs[k.keys[i%len(k.keys)]]
	}
	raw := bytes.Clone(o.text())
	if at := bytes.LastIndex(raw, lastTimeKey); at >= 0 {
		copy(raw[at+len(lastTimeKey):], wallTime())
	}
	s.put(k, "MODIFIED", o, raw, withLastTime(o.encoded(), time.Now()), nil)
}

// terminate marks a pod as leaving, as the API server does on eviction. The caller holds mu.
func (s *store) terminate(o *object) {
	mark := fmt.Appendf(nil, `%s%s","deletionGracePeriodSeconds":30,%s`, leavingKey, wallTime(), versionKey)
	s.put(s.pods(), "MODIFIED", o, bytes.Replace(o.text(), versionKey, mark, 1), nil, nil)
}
