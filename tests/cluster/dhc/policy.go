package dhc

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/realcluster"
)

// Policy is a configuration that acts fast, on one namespace only.
type Policy struct {
	Namespace  string
	Mode       string // of the policy; default enforce
	After      string // default 0s
	EvictAfter string // default 0s
	CordonWait string // of evict; default 30m
	Full       string // the map whenNoReplacement, as {wait: 0s}; empty: the default
	Notice     string // likewise notice, as {deadline: 20s}; empty: no notice
	Together   bool   // evict.groups: Together
	Shared     bool   // evict.sharedClaims: Together
	Untainted  bool   // evict.untainted
	NoEvict    bool
	Paused     bool
	Taint      string // the map of this key, as {device: NoSchedule}; empty: nothing is tainted
	Recover    string // likewise
	JobRetry   string // likewise; empty: no Job gets a retry back
	HandOver   string // likewise; empty: no node is handed over
	Caps       string // likewise; empty: none is ever reached
	Webhook    string // likewise, of ControllerLimits; empty: nobody is told
	Match      string // one more key of match, as deviceTaints: [{key: a/b}]
}

// Text is the configuration's documents.
func (p Policy) Text() string {
	mode, after, evict := p.Mode, p.After, "after: 0s"
	if p.EvictAfter != "" {
		evict = "after: " + p.EvictAfter
	}
	if p.CordonWait != "" {
		evict += ", cordonWait: " + p.CordonWait
	}
	if p.Full != "" {
		evict += ", whenNoReplacement: " + p.Full
	}
	if p.Notice != "" {
		evict += ", notice: " + p.Notice
	}
	if p.Together {
		evict += ", groups: Together"
	}
	if p.Shared {
		evict += ", sharedClaims: Together"
	}
	if p.Untainted {
		evict += ", untainted: true"
	}
	rules := "\n  evict: {" + evict + "}"
	if mode == "" {
		mode = "enforce"
	}
	if after == "" {
		after = "0s"
	}
	caps := p.Caps
	if caps == "" {
		caps = "{cluster: {percent: 100, atLeast: 1000}, node: {percent: 100, atLeast: 1000}, perDay: {percent: 100, atLeast: 1000}, ownerDevicesPerDay: {percent: 100, atLeast: 1000}}"
	}
	if p.NoEvict {
		rules = ""
	}
	if p.Taint != "" {
		rules += "\n  taint: " + p.Taint
	}
	if p.Recover != "" {
		rules += "\n  recover: " + p.Recover
	}
	if p.JobRetry != "" {
		rules += "\n  jobRetry: " + p.JobRetry
	}
	if p.HandOver != "" {
		rules += "\n  handOver: " + p.HandOver
	}
	webhook := ""
	if p.Webhook != "" {
		webhook = "  webhook: " + p.Webhook + "\n"
	}
	match := p.Match
	if match != "" {
		match = "\n    " + match
	}
	return fmt.Sprintf(strings.TrimPrefix(`
apiVersion: device-health.io/v1alpha1
kind: DeviceHealthPolicy
metadata: {name: test}
spec:
  mode: %s
  match:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}%s
  after: %s%s
---
apiVersion: device-health.io/v1alpha1
kind: ControllerLimits
metadata: {name: default}
spec:
  paused: %t
  evictions: {perMinute: 600, maxInFlight: 10, perNode: 10, perOwner: 10}
  caps: %s
%s`, "\n"), mode, p.Namespace, match, after, rules, p.Paused, caps, webhook)
}

// WriteConfigMap creates or replaces the controller's ConfigMap.
func WriteConfigMap(t *testing.T, cp *realcluster.ControlPlane, text string) {
	t.Helper()
	wanted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: ConfigMap}, Data: map[string]string{"policy.yaml": text}}
	maps := cp.Client.CoreV1().ConfigMaps(Namespace)
	_, err := maps.Update(t.Context(), wanted, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = maps.Create(t.Context(), wanted, metav1.CreateOptions{})
	}
	fatal(t, err)
}
