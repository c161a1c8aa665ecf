package realnode

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/realcluster"
)

// DRADevice is what a driver says of one device. Taints and attributes are published in its slice; the conditions and network data are
// KEP-4817's, written into the claims.
type DRADevice struct {
	Health, Message string
	Taints          []resourcev1.DeviceTaint      `json:",omitempty"`
	Attributes      map[string]string             `json:",omitempty"`
	Conditions      []metav1.Condition            `json:",omitempty"`
	Network         *resourcev1.NetworkDeviceData `json:",omitempty"`
}

// Driver is a DRA driver that only one test uses. Its pool is named after the node.
type Driver struct {
	Name string

	node    *Node
	mutex   sync.Mutex
	state   driverState
	process *realcluster.Process
}

type driverState struct {
	OpaqueNames, CommonFirst, Mute bool
	Devices                        map[string]DRADevice
}

// DriverOptions of a driver.
type DriverOptions struct {
	Devices     int
	OpaqueNames bool // names of CDI devices that do not end in the device's name
	CommonFirst bool // before each device's own CDI name one that all have in common, as AMD's and the example driver do
	Mute        bool // says nothing of health to the kubelet, as NVIDIA's does while its gate is off
}

// NewDriver starts a driver with healthy devices gpu-0, gpu-1 and so on, and waits until they are published. It ends with the test.
func (n *Node) NewDriver(t *testing.T, options DriverOptions) *Driver {
	t.Helper()
	d := &Driver{Name: realcluster.Unique("gpu") + ".example.com", node: n,
		state: driverState{OpaqueNames: options.OpaqueNames, CommonFirst: options.CommonFirst, Mute: options.Mute, Devices: map[string]DRADevice{}}}
	for i := range options.Devices {
		d.state.Devices[fmt.Sprint("gpu-", i)] = DRADevice{Health: "Healthy"}
	}
	d.write(t)
	d.identify(t)
	d.Start(t)
	t.Cleanup(func() {
		d.Kill(t)
		// The kubelet would do it 30 s later, and the next test's scheduler should not see them.
		_ = n.cp.Client.ResourceV1().ResourceSlices().DeleteCollection(context.Background(), metav1.DeleteOptions{},
			metav1.ListOptions{FieldSelector: "spec.driver=" + d.Name})
	})
	d.AwaitSlices(t, 1)
	return d
}

// identify gives the driver a user of its own with the rights that a driver needs.
func (d *Driver) identify(t *testing.T) {
	t.Helper()
	identity, err := d.node.cp.CA.Client("dra-driver:" + d.Name)
	if err == nil {
		err = d.node.cp.WriteKubeconfig(d.kubeconfig(), realcluster.Credentials{Client: identity})
	}
	if err != nil {
		t.Fatal(err)
	}
	const role = "dra-driver"
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceslices"}, Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"}},
		{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceclaims"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceclaims/status"}, Verbs: []string{"update", "patch"}},
		{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceclaims/driver"},
			Verbs: []string{"associated-node:update", "associated-node:patch", "arbitrary-node:update", "arbitrary-node:patch"}},
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}},
	}
	_, err = d.node.cp.Client.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role}, Rules: rules}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	_, err = d.node.cp.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "dra-driver-" + d.Name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "dra-driver:" + d.Name}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// Start starts the driver, the first time or again, with the devices it has now.
func (d *Driver) Start(t *testing.T) {
	t.Helper()
	var err error
	d.process, err = d.node.Run(d.node.Name+"-driver-"+d.Name, filepath.Join(d.node.programs, "dra-driver"), "--kubeconfig", d.kubeconfig(),
		"--driver", d.Name, "--node", d.node.Name, "--cdi", d.node.file("cdi"), "--file", d.file())
	if err != nil {
		t.Fatal(err)
	}
	explain(t, d.process)
}

// Kill ends the driver as a crash would.
func (d *Driver) Kill(t *testing.T) {
	t.Helper()
	_ = d.process.Signal(syscall.SIGKILL)
	if err := d.process.Stop(0); err != nil {
		t.Error(err)
	}
}

// Set changes what the driver says of a device, within 50 ms.
func (d *Driver) Set(t *testing.T, device string, now DRADevice) {
	t.Helper()
	d.mutex.Lock()
	d.state.Devices[device] = now
	d.mutex.Unlock()
	d.write(t)
}

// AwaitSlices waits until the driver has published this many slices.
func (d *Driver) AwaitSlices(t *testing.T, count int) {
	t.Helper()
	realcluster.Eventually(t, 60*time.Second, fmt.Sprintf("%d slices of %s", count, d.Name), func() error {
		list, err := d.node.cp.Client.ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{FieldSelector: "spec.driver=" + d.Name})
		if err == nil && len(list.Items) != count {
			err = fmt.Errorf("there are %d", len(list.Items))
		}
		return err
	})
}

// AwaitPublished waits until the driver's slice has the taints and attributes of a device that were set last.
func (d *Driver) AwaitPublished(t *testing.T, device string) {
	t.Helper()
	d.mutex.Lock()
	wanted := d.state.Devices[device]
	d.mutex.Unlock()
	realcluster.Eventually(t, 60*time.Second, fmt.Sprintf("%s of %s is published as %+v", device, d.Name, wanted), func() error {
		list, err := d.node.cp.Client.ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{FieldSelector: "spec.driver=" + d.Name})
		if err != nil {
			return err
		}
		for _, slice := range list.Items {
			for _, now := range slice.Spec.Devices {
				if now.Name == device && wanted.isPublishedAs(now) {
					return nil
				}
			}
		}
		return fmt.Errorf("there are %+v", list.Items)
	})
}

func (d DRADevice) isPublishedAs(now resourcev1.Device) bool {
	same := len(d.Taints) == len(now.Taints) && len(d.Attributes) == len(now.Attributes)
	for i := range min(len(d.Taints), len(now.Taints)) {
		same = same && d.Taints[i].Key == now.Taints[i].Key && d.Taints[i].Effect == now.Taints[i].Effect
	}
	for name, value := range d.Attributes {
		said := now.Attributes[resourcev1.QualifiedName(name)].StringValue
		same = same && said != nil && *said == value
	}
	return same
}

func (d *Driver) file() string       { return d.node.file("state/" + d.Name + ".json") }
func (d *Driver) kubeconfig() string { return d.node.file("state/" + d.Name + ".kubeconfig") }

func (d *Driver) write(t *testing.T) {
	t.Helper()
	d.mutex.Lock()
	defer d.mutex.Unlock()
	writeState(t, d.file(), d.state)
}
