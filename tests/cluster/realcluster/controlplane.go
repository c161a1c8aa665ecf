// Package realcluster starts a real Kubernetes control plane (etcd, kube-apiserver, kube-controller-manager, kube-scheduler) as
// processes of the test, on free ports, with certificates of its own, and leaves nothing behind.
package realcluster

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Options of one control plane. The zero value is a whole one with the release's own feature gates.
type Options struct {
	Name               string          // of its folder and in messages
	FeatureGates       map[string]bool // of the API server
	ControllerGates    map[string]bool // of the controller manager and the scheduler
	RuntimeConfig      string          // of the API server: which versions and kinds it serves
	WithoutControllers bool            // etcd and API server only: no Pods get scheduled, no ReplicaSet makes any
	ControllerProxy    bool            // the controller manager speaks through ControlPlane.ControllerProxy
	Owners             bool            // with the controllers of JobSet, LeaderWorkerSet, training-operator and KubeRay; see owners.go
	Kueue              bool            // with Kueue; see kueue.go
	Node               bool            // a real node will join: its programs are built too, and the API server restricts it
	NoController       bool            // our own program never runs against it: its audit log holds nothing to judge
	Earlier            bool            // release 0.1.0 of our program runs against it as well, and keeps its state where it did
	ReplayAudit        bool            // its audit log holds the whole objects that docs/replay.md asks for
	Network            bool            // Pods reach the API server where a Pod expects it, and it reaches kubelets; see network.go
}

// ControlPlane is a running cluster without nodes.
type ControlPlane struct {
	Options  Options
	Folder   string // certificates, kubeconfigs, etcd's data: removed by Stop
	Logs     string // one file per component, and audit.log: kept when a test fails
	Server   string // https://127.0.0.1:PORT
	CA       *Authority
	Admin    *rest.Config
	Client   kubernetes.Interface // as the administrator, without client-side throttling
	Binaries Binaries
	// ControllerProxy stands between the controller manager and the API server, if Options ask for it.
	ControllerProxy *Proxy

	etcdURL    string
	etcdPeer   string
	apiPort    int
	signingKey *rsa.PrivateKey
	owner      func()

	audit     auditLog
	mutex     sync.Mutex // tests run side by side
	processes map[string]*Process
	atStop    []func() (survivors []string)
}

var errPortTaken = errors.New("a port was taken by somebody else in between")

// Start brings a control plane up, in about five seconds.
func Start(binaries Binaries, options Options) (*ControlPlane, error) {
	if options.Name == "" {
		options.Name = "main"
	}
	var err error
	for range 3 {
		var cp *ControlPlane
		if cp, err = startOnce(binaries, options); !errors.Is(err, errPortTaken) {
			return cp, err
		}
	}
	return nil, err
}

func startOnce(binaries Binaries, options Options) (*ControlPlane, error) {
	folder, release, err := newRunFolder(options.Name)
	if err != nil {
		return nil, err
	}
	cp := &ControlPlane{Options: options, Folder: folder, Logs: filepath.Join(folder, "logs"), Binaries: binaries, processes: map[string]*Process{}, owner: release}
	remember(cp)
	started := false
	defer func() {
		if !started {
			cp.Stop()
		}
	}()
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	cp.etcdURL, cp.etcdPeer, cp.apiPort = local("http", ports[0]), local("http", ports[1]), ports[2]
	if options.Network {
		cp.apiPort = 443 // the network is ours alone
		if err := makeNetwork(); err != nil {
			return nil, err
		}
	}
	cp.Server = local("https", cp.apiPort)
	if err := cp.prepareIdentities(); err != nil {
		return nil, fmt.Errorf("certificates of the control plane: %w", err)
	}
	policy, err := auditPolicyOf(options)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(folder, "audit-policy.yaml"), []byte(policy), 0o600); err != nil {
		return nil, err
	}
	if err := cp.startEtcd(); err != nil {
		return nil, cp.explain(err)
	}
	if err := cp.startAPIServer(); err != nil {
		return nil, cp.explain(err)
	}
	if !options.WithoutControllers {
		if err := cp.startControllers(); err != nil {
			return nil, cp.explain(err)
		}
	}
	if options.Owners {
		if err := cp.startOwners(); err != nil {
			return nil, cp.explain(err)
		}
	}
	if options.Kueue {
		if err := cp.startKueue(); err != nil {
			return nil, cp.explain(fmt.Errorf("Kueue: %w", err))
		}
	}
	started = true
	return cp, nil
}

func local(scheme string, port int) string { return scheme + "://127.0.0.1:" + strconv.Itoa(port) }

func (cp *ControlPlane) file(name string) string { return filepath.Join(cp.Folder, name) }

func (cp *ControlPlane) prepareIdentities() error {
	if err := os.MkdirAll(cp.Logs, 0o755); err != nil {
		return err
	}
	var err error
	if cp.CA, err = NewAuthority("device-health test cluster " + cp.Options.Name); err != nil {
		return err
	}
	if err := os.WriteFile(cp.file("ca.crt"), cp.CA.PEM, 0o600); err != nil {
		return err
	}
	server, err := cp.CA.Server()
	if err != nil {
		return err
	}
	if err := server.write(cp.Folder, "apiserver"); err != nil {
		return err
	}
	kubelet, err := cp.CA.Client("kube-apiserver-kubelet-client", "system:masters")
	if err != nil {
		return err
	}
	if err := kubelet.write(cp.Folder, "kubelet-client"); err != nil {
		return err
	}
	if cp.signingKey, err = writeServiceAccountKey(cp.Folder); err != nil {
		return err
	}
	admin, err := cp.CA.Client("test-administrator", "system:masters")
	if err != nil {
		return err
	}
	if err := cp.WriteKubeconfig(cp.file("admin.kubeconfig"), Credentials{Client: admin}); err != nil {
		return err
	}
	for _, component := range []string{"kube-controller-manager", "kube-scheduler"} {
		pair, err := cp.CA.Client("system:" + component)
		if err != nil {
			return err
		}
		if err := cp.WriteKubeconfig(cp.file(component+".kubeconfig"), Credentials{Client: pair}); err != nil {
			return err
		}
	}
	cp.Admin = &rest.Config{
		Host: cp.Server, QPS: -1, UserAgent: "tests-cluster-witness",
		TLSClientConfig: rest.TLSClientConfig{CAData: cp.CA.PEM, CertData: admin.Certificate, KeyData: admin.Key},
	}
	witness := rest.CopyConfig(cp.Admin)
	Release().speak(witness)
	cp.Client, err = kubernetes.NewForConfig(witness)
	return err
}

func (cp *ControlPlane) start(name string, arguments ...string) error {
	p, err := StartProcess(name, filepath.Join(cp.Logs, name+".log"), cp.Binaries[name], arguments...)
	if err == nil {
		cp.Add(p)
	}
	return err
}

// Add makes a program that somebody started a component: the end of its log is shown when a test fails.
func (cp *ControlPlane) Add(p *Process) {
	cp.mutex.Lock()
	defer cp.mutex.Unlock()
	cp.processes[p.Name] = p
}

// AtStop is called before the control plane stops, the last one first; what it returns is reported as left behind.
func (cp *ControlPlane) AtStop(stop func() (survivors []string)) {
	cp.mutex.Lock()
	defer cp.mutex.Unlock()
	cp.atStop = append(cp.atStop, stop)
}

func (cp *ControlPlane) component(name string) *Process {
	cp.mutex.Lock()
	defer cp.mutex.Unlock()
	return cp.processes[name]
}

func (cp *ControlPlane) startEtcd() error {
	if err := cp.start("etcd", "--name=test", "--data-dir="+cp.file("etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls="+cp.etcdURL, "--advertise-client-urls="+cp.etcdURL,
		"--listen-peer-urls="+cp.etcdPeer, "--initial-advertise-peer-urls="+cp.etcdPeer, "--initial-cluster=test="+cp.etcdPeer); err != nil {
		return err
	}
	// An API server gives etcd 20 s and then ends: on a busy machine etcd may need longer, and a port that somebody took is etcd's to say.
	return cp.await("etcd", 60*time.Second, "/health of etcd", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, cp.etcdURL+"/health", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return errors.New(response.Status)
		}
		return nil
	})
}

func (cp *ControlPlane) startAPIServer() error {
	arguments := []string{
		"--etcd-servers=" + cp.etcdURL, "--secure-port=" + strconv.Itoa(cp.apiPort),
		"--tls-cert-file=" + cp.file("apiserver.crt"), "--tls-private-key-file=" + cp.file("apiserver.key"), "--client-ca-file=" + cp.file("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + cp.file("service-account.pub"),
		"--service-account-signing-key-file=" + cp.file("service-account.key"), "--service-cluster-ip-range=10.96.0.0/16",
		"--authorization-mode=RBAC,Node", "--cert-dir=" + cp.Folder, "--endpoint-reconciler-type=none",
		"--enable-admission-plugins=" + cp.admission(),
		"--audit-policy-file=" + cp.file("audit-policy.yaml"), "--audit-log-path=" + filepath.Join(cp.Logs, "audit.log"),
		"--feature-gates=" + gates(Release().Gates(cp.Options.FeatureGates)), "--runtime-config=" + Release().served(cp.Options.RuntimeConfig)}
	if cp.Options.Network {
		arguments = append(arguments, "--bind-address=0.0.0.0", "--advertise-address="+serverAddress, "--kubelet-preferred-address-types=InternalIP",
			"--kubelet-client-certificate="+cp.file("kubelet-client.crt"), "--kubelet-client-key="+cp.file("kubelet-client.key"))
	} else {
		arguments = append(arguments, "--bind-address=127.0.0.1")
	}
	if err := cp.start("kube-apiserver", arguments...); err != nil {
		return err
	}
	return cp.waitReady(60 * time.Second)
}

func (cp *ControlPlane) admission() string {
	if cp.Options.Node {
		return "NodeRestriction" // as every cluster with real kubelets has it
	}
	return ""
}

func gates(all map[string]bool) string {
	var listed []string
	for gate, on := range all {
		listed = append(listed, gate+"="+strconv.FormatBool(on))
	}
	sort.Strings(listed)
	return strings.Join(listed, ",")
}

func (cp *ControlPlane) startControllers() error {
	if cp.Options.ControllerProxy {
		if err := cp.proxyControllers(context.Background()); err != nil {
			return err
		}
	}
	err := cp.start("kube-controller-manager", "--kubeconfig="+cp.file("kube-controller-manager.kubeconfig"), "--leader-elect=false",
		"--use-service-account-credentials", "--service-account-private-key-file="+cp.file("service-account.key"),
		"--root-ca-file="+cp.file("ca.crt"), "--secure-port=0", "--kube-api-qps=300", "--kube-api-burst=500", "--feature-gates="+gates(Release().Gates(cp.Options.ControllerGates)))
	if err != nil {
		return err
	}
	// A scheduler that misses the update which freed a claim, and sees only its deletion, wakes no pod that waits for the device
	// (kubernetes/kubernetes#140831): after 20 s instead of five minutes it looks again by itself.
	if err := cp.start("kube-scheduler", "--kubeconfig="+cp.file("kube-scheduler.kubeconfig"), "--leader-elect=false", "--secure-port=0",
		"--pod-max-in-unschedulable-pods-duration=20s", "--kube-api-qps=300", "--kube-api-burst=500", "--feature-gates="+gates(Release().Gates(cp.Options.ControllerGates))); err != nil {
		return err
	}
	// A Pod is refused until its Namespace has a default service account, which the controller manager makes.
	return cp.await("kube-controller-manager", 60*time.Second, "the default service account", func(ctx context.Context) error {
		_, err := cp.Client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// proxyControllers gives the controller manager a kubeconfig that leads through a proxy: with a token, because a proxy cannot pass a
// client's certificate on.
func (cp *ControlPlane) proxyControllers(ctx context.Context) error {
	const account, namespace = "proxied-controller-manager", "kube-system"
	_, err := cp.Client.CoreV1().ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = cp.Client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: account},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: namespace}}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	token, err := cp.Token(ctx, namespace, account)
	if err != nil {
		return err
	}
	if cp.ControllerProxy, err = NewProxy(cp); err != nil {
		return err
	}
	cp.AtStop(func() []string { cp.ControllerProxy.Close(); return nil })
	return cp.WriteKubeconfig(cp.file("kube-controller-manager.kubeconfig"), Credentials{Server: cp.ControllerProxy.Server, Token: token})
}

func (cp *ControlPlane) waitReady(limit time.Duration) error {
	return cp.await("kube-apiserver", limit, "/readyz of the API server", func(ctx context.Context) error {
		return cp.Client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// await polls until try succeeds, the component ends, or the limit is over.
func (cp *ControlPlane) await(component string, limit time.Duration, what string, try func(context.Context) error) error {
	deadline := time.Now().Add(limit)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		err := try(ctx)
		cancel()
		if err == nil {
			return nil
		}
		p := cp.component(component)
		select {
		case <-p.Done():
			if strings.Contains(p.Tail(200), "address already in use") {
				return errPortTaken
			}
			return fmt.Errorf("%s ended with code %d before %s was there", component, p.ExitCode(), what)
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s not there after %s: %w", what, limit, err)
		}
	}
}

// explain adds the end of each component's log to an error of the start.
func (cp *ControlPlane) explain(err error) error {
	if errors.Is(err, errPortTaken) {
		return err
	}
	return fmt.Errorf("control plane %q did not start: %w\n%s", cp.Options.Name, err, cp.Tails(30))
}

// Tails is the end of every component's log.
func (cp *ControlPlane) Tails(lines int) string {
	cp.mutex.Lock()
	defer cp.mutex.Unlock()
	var names []string
	for name := range cp.processes {
		names = append(names, name)
	}
	sort.Strings(names)
	var text strings.Builder
	for _, name := range names {
		fmt.Fprintf(&text, "---- %s of %s, last %d lines\n%s\n", name, cp.Options.Name, lines, cp.processes[name].Tail(lines))
	}
	return text.String()
}

// StopAPIServer ends the API server only: etcd keeps what is stored.
func (cp *ControlPlane) StopAPIServer() error {
	return cp.component("kube-apiserver").Stop(5 * time.Second)
}

// FreezeAPIServer stops the API server where it is: its connections stay, and nobody answers.
func (cp *ControlPlane) FreezeAPIServer() error {
	return cp.component("kube-apiserver").Signal(syscall.SIGSTOP)
}

// ThawAPIServer lets it go on.
func (cp *ControlPlane) ThawAPIServer() error {
	return cp.component("kube-apiserver").Signal(syscall.SIGCONT)
}

// StartAPIServer starts it again, on the same port, with an empty watch cache.
func (cp *ControlPlane) StartAPIServer() error { return cp.startAPIServer() }

// Forget makes the API server unable to serve any version seen so far: it restarts, and etcd's history is compacted meanwhile.
func (cp *ControlPlane) Forget(ctx context.Context) error {
	if err := cp.StopAPIServer(); err != nil {
		return err
	}
	if _, err := cp.Compact(ctx); err != nil {
		return err
	}
	return cp.StartAPIServer()
}

// Stop ends every component and removes the folder. What is still there afterwards is named.
func (cp *ControlPlane) Stop() (survivors []string) {
	cp.mutex.Lock()
	first := cp.atStop
	cp.atStop = nil
	cp.mutex.Unlock()
	for _, stop := range slices.Backward(first) {
		survivors = append(survivors, stop()...)
	}
	// An API server whose etcd is gone never ends by itself: etcd goes last.
	for _, name := range []string{"kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"} {
		if p := cp.component(name); p != nil {
			if err := p.Stop(3 * time.Second); err != nil {
				survivors = append(survivors, err.Error())
			}
		}
	}
	if err := removeCgroups(filepath.Base(cp.Folder)); err != nil {
		survivors = append(survivors, err.Error())
	}
	if err := os.RemoveAll(cp.Folder); err != nil {
		survivors = append(survivors, "folder "+cp.Folder+": "+err.Error())
	}
	cp.owner()
	alive.Lock()
	delete(alive.planes, cp)
	alive.Unlock()
	return survivors
}

var alive struct {
	sync.Mutex
	planes map[*ControlPlane]bool
}

func remember(cp *ControlPlane) {
	alive.Lock()
	defer alive.Unlock()
	if alive.planes == nil {
		alive.planes = map[*ControlPlane]bool{}
	}
	alive.planes[cp] = true
}

func everyControlPlane() (planes []*ControlPlane) {
	alive.Lock()
	defer alive.Unlock()
	for cp := range alive.planes {
		planes = append(planes, cp)
	}
	return planes
}
