package realcluster

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const (
	kueue          = "kueue"
	kueueNamespace = "kueue-system"
	kueueManifests = kueue + "-manifests"
)

// KueueRecovery is how long a Job that is admitted may lack a Pod before Kueue takes all its Pods and queues it again. The Job controller alone lets
// 10 s go by before it replaces the first Pod that is lost.
const KueueRecovery = 40 * time.Second

// Kueue asks for a newer controller-runtime than the owners' controllers, and has a module of its own.
func kueueModules() []module {
	return []module{{
		name:     kueue,
		folder:   "kueue-controller",
		ldflags:  "-s -w",
		programs: map[string]string{kueue: "sigs.k8s.io/kueue/cmd/kueue"},
		copies:   map[string]copied{kueueManifests: {"sigs.k8s.io/kueue", "config/components"}},
	}}
}

// EnsureKueueBinaries does the same as EnsureBinaries, and for Kueue.
func EnsureKueueBinaries(say func(format string, args ...any)) (Binaries, error) {
	return ensureAll(append(controlPlaneModules(), kueueModules()...), say)
}

// startKueue starts Kueue for Jobs, with its kinds, their conversion and its webhooks as its own manifests have them, and waits until it serves
// these. It makes its certificate itself.
func (cp *ControlPlane) startKueue() error {
	folder := cp.file(kueue)
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	if err := cp.installKueue(folder, ports[0]); err != nil {
		return err
	}
	certificates := filepath.Join(folder, "certificates")
	if err := os.Mkdir(certificates, 0o700); err != nil {
		return err
	}
	config := filepath.Join(folder, "config.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, `apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
namespace: %s
health: {healthProbeBindAddress: "0"}
metrics: {bindAddress: "0"}
leaderElection: {leaderElect: false}
webhook: {host: 127.0.0.1, port: %d, certDir: %s}
featureGates: {VisibilityOnDemand: false} # it would serve on a fixed port
integrations: {frameworks: [batch/job]}
waitForPodsReady: {timeout: 5m, recoveryTimeout: %s}
`, kueueNamespace, ports[0], certificates, KueueRecovery), 0o600); err != nil {
		return err
	}
	if err := cp.startManager(kueue, "--config="+config); err != nil {
		return err
	}
	if err := cp.mountKueueCertificate(certificates); err != nil {
		return err
	}
	return cp.await(kueue, 60*time.Second, "its webhooks", func(ctx context.Context) error {
		dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // whether the API server trusts it, the first object of a story says
		connection, err := dialer.DialContext(ctx, "tcp", "127.0.0.1:"+strconv.Itoa(ports[0]))
		if err != nil {
			return err
		}
		return connection.Close()
	})
}

// mountKueueCertificate does what a kubelet does for Kueue's Pod: the Secret that Kueue fills is a folder of files.
func (cp *ControlPlane) mountKueueCertificate(folder string) error {
	return cp.await(kueue, 60*time.Second, "its certificate", func(ctx context.Context) error {
		secret, err := cp.Client.CoreV1().Secrets(kueueNamespace).Get(ctx, "kueue-webhook-server-cert", metav1.GetOptions{})
		if err != nil {
			return err
		}
		pair := Pair{Certificate: secret.Data["tls.crt"], Key: secret.Data["tls.key"]}
		if len(pair.Certificate) == 0 || len(pair.Key) == 0 {
			return errors.New("the Secret is empty")
		}
		return pair.write(folder, "tls")
	})
}

// installKueue makes what Kueue's own manifests say of its kinds, webhooks and certificate, with a Service that leads to a port of 127.0.0.1: there is
// no network of Pods.
func (cp *ControlPlane) installKueue(folder string, port int) error {
	components, err := filepath.Rel(folder, cp.Binaries[kueueManifests]) // kustomize takes no absolute path
	if err != nil {
		return err
	}
	kustomization := fmt.Sprintf("namespace: %s\nnamePrefix: kueue-\nresources: [%[2]s/crd, %[2]s/internalcert, %[2]s/webhook]\n", kueueNamespace, components)
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(kustomization), 0o600); err != nil {
		return err
	}
	text, err := cp.Kubectl("", "kustomize", folder)
	if err != nil {
		return err
	}
	var kinds []string
	others := []any{map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": kueueNamespace}}}
	for documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		var document map[string]any
		if err := documents.Decode(&document); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		if err := setServicePorts(document, port); err != nil {
			return err
		}
		switch document["kind"] {
		case "CustomResourceDefinition":
			name, err := cp.makeKind(document)
			if err != nil {
				return err
			}
			kinds = append(kinds, name)
			continue
		case "Service":
			document["spec"] = map[string]any{"type": "ExternalName", "externalName": "127.0.0.1"}
		}
		others = append(others, document)
	}
	list, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": others})
	if err != nil {
		return err
	}
	if _, err := cp.Kubectl(string(list), "create", "-f", "-"); err != nil {
		return err
	}
	return cp.awaitKinds(kinds)
}

// setServicePorts sets the port of every webhook's Service, and of a kind's conversion.
func setServicePorts(document map[string]any, port int) error {
	callers, _ := document["webhooks"].([]any)
	if conversion, found, _ := unstructured.NestedFieldNoCopy(document, "spec", "conversion", "webhook"); found {
		callers = append(callers, conversion)
	}
	for _, caller := range callers {
		if err := unstructured.SetNestedField(caller.(map[string]any), int64(port), "clientConfig", "service", "port"); err != nil {
			return err
		}
	}
	return nil
}
