package realcluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// ownerController is a program that owns Jobs or Pods. It serves its own admission webhooks, which are part of how it works: those of
// LeaderWorkerSet number the Pods of a group.
type ownerController struct {
	program  string
	module   string
	crds     string // folders of its module
	webhooks string
	config   string // apiVersion of its configuration
}

var ownerControllers = []ownerController{
	{program: "jobset", module: "sigs.k8s.io/jobset", crds: "config/components/crd/bases", webhooks: "config/components/webhook", config: "config.jobset.x-k8s.io/v1alpha1"},
	{program: "lws", module: "sigs.k8s.io/lws", crds: "config/crd/bases", webhooks: "config/webhook", config: "config.lws.x-k8s.io/v1alpha1"},
}

func ownerModules() []module {
	copies := map[string]copied{trainingOperator + "-crds": trainingOperatorKinds, rayOperator + "-crds": rayOperatorKinds}
	for _, o := range ownerControllers {
		copies[o.program+"-crds"] = copied{o.module, o.crds}
		copies[o.program+"-webhooks"] = copied{o.module, o.webhooks}
	}
	return []module{{
		name:    "owner-controllers",
		folder:  "owner-controllers",
		ldflags: "-s -w",
		programs: map[string]string{"jobset": "sigs.k8s.io/jobset", "lws": "sigs.k8s.io/lws/cmd",
			trainingOperator: trainingOperatorPackage, rayOperator: rayOperatorPackage},
		copies: copies,
	}}
}

// EnsureOwnerBinaries does the same as EnsureBinaries, and for the controllers of JobSet, LeaderWorkerSet, training-operator and KubeRay.
func EnsureOwnerBinaries(say func(format string, args ...any)) (Binaries, error) {
	return ensureAll(append(controlPlaneModules(), ownerModules()...), say)
}

// startOwners starts the owners' controllers side by side: most of a start is waiting.
func (cp *ControlPlane) startOwners() error {
	starts := []func() error{cp.startGroups, cp.startTrainingOperator, cp.startRayOperator}
	problems := make([]error, len(starts))
	var started sync.WaitGroup
	for i, start := range starts {
		started.Go(func() { problems[i] = start() })
	}
	started.Wait()
	return errors.Join(problems...)
}

// startManager starts a program of controllers as an administrator. It needs no more: its kinds are served, and it lists what was there before it.
func (cp *ControlPlane) startManager(program string, arguments ...string) error {
	client, err := cp.CA.Client(program+"-controller", "system:masters")
	if err != nil {
		return err
	}
	kubeconfig := cp.file(program + ".kubeconfig")
	if err := cp.WriteKubeconfig(kubeconfig, Credentials{Client: client}); err != nil {
		return err
	}
	return cp.start(program, append(arguments, "--kubeconfig="+kubeconfig)...)
}

// startGroups installs the kinds of JobSet and LeaderWorkerSet and starts their controllers, each with its webhooks on a port of 127.0.0.1, and
// waits until the webhooks answer.
func (cp *ControlPlane) startGroups() error {
	for _, o := range ownerControllers {
		if err := cp.startKinds(filepath.Join(cp.Binaries[o.program+"-crds"], "*.yaml")); err != nil {
			return fmt.Errorf("the kinds of %s: %w", o.program, err)
		}
		ports, err := freePorts(1)
		if err != nil {
			return err
		}
		if err := cp.startOwner(o, ports[0]); err != nil {
			return fmt.Errorf("the controller of %s: %w", o.program, err)
		}
		if err := cp.registerWebhooks(o, ports[0]); err != nil {
			return fmt.Errorf("the webhooks of %s: %w", o.program, err)
		}
	}
	return nil
}

func (cp *ControlPlane) startOwner(o ownerController, port int) error {
	folder := cp.file(o.program)
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	server, err := cp.CA.Server()
	if err != nil {
		return err
	}
	if err := server.write(folder, "tls"); err != nil {
		return err
	}
	config := fmt.Sprintf(`apiVersion: %s
kind: Configuration
internalCertManagement: {enable: false}
leaderElection: {leaderElect: false}
metrics: {bindAddress: "0"}
health: {healthProbeBindAddress: "0"}
webhook: {host: 127.0.0.1, port: %d, certDir: %s}
`, o.config, port, folder)
	file := filepath.Join(folder, "config.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return err
	}
	if err := cp.startManager(o.program, "--config="+file, "--leader-elect=false"); err != nil {
		return err
	}
	return cp.await(o.program, 60*time.Second, "its webhooks", func(ctx context.Context) error {
		trusted := x509.NewCertPool()
		trusted.AppendCertsFromPEM(cp.CA.PEM)
		dialer := tls.Dialer{Config: &tls.Config{RootCAs: trusted}}
		connection, err := dialer.DialContext(ctx, "tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err != nil {
			return err
		}
		return connection.Close()
	})
}

// registerWebhooks tells the API server of the webhooks as the module's own manifests do, except for where they are served: there is no
// network of Pods, and so no Service.
func (cp *ControlPlane) registerWebhooks(o ownerController, port int) error {
	text, err := cp.Kubectl("", "kustomize", cp.Binaries[o.program+"-webhooks"])
	if err != nil {
		return err
	}
	var registered []string
	for documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		var document map[string]any
		if err := documents.Decode(&document); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		webhooks, found := document["webhooks"].([]any)
		if !found {
			continue // the Service
		}
		document["metadata"] = map[string]any{"name": o.program}
		for _, webhook := range webhooks {
			path, found, err := unstructured.NestedString(webhook.(map[string]any), "clientConfig", "service", "path")
			if err != nil || !found {
				return fmt.Errorf("a webhook without a path: %v", webhook)
			}
			webhook.(map[string]any)["clientConfig"] = map[string]any{"url": local("https", port) + path, "caBundle": cp.CA.PEM}
		}
		text, err := json.Marshal(document)
		if err != nil {
			return err
		}
		if _, err := cp.Kubectl(string(text), "create", "-f", "-"); err != nil {
			return err
		}
		registered = append(registered, fmt.Sprint(document["kind"]))
	}
	if slices.Sort(registered); !slices.Equal(registered, []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}) {
		return fmt.Errorf("its manifests register %v, not one configuration that mutates and one that validates", registered)
	}
	return nil
}
