// Command dra-driver is a DRA driver whose devices a test scripts: a file holds the devices with their health, message, taints,
// attributes, conditions and network data, and each new content is published, reported and written into the claims at once.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"log"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

const (
	look     = 50 * time.Millisecond
	reported = 10 * time.Second // the kubelet takes a report for Unknown after 30 s
)

// State is the file that a test writes.
type State struct {
	// OpaqueNames gives CDI devices names that do not say which device they are.
	OpaqueNames bool
	// CommonFirst gives every device first a CDI device that all have in common: the kubelet reports by that name.
	CommonFirst bool
	// Mute says nothing of health to the kubelet.
	Mute    bool
	Devices map[string]Device
}

// Device of the state.
type Device struct {
	Health, Message string
	Taints          []resourcev1.DeviceTaint      `json:",omitempty"` // in the slice, as are the attributes
	Attributes      map[string]string             `json:",omitempty"`
	Conditions      []metav1.Condition            `json:",omitempty"` // KEP-4817
	Network         *resourcev1.NetworkDeviceData `json:",omitempty"`
}

type driver struct {
	name, node, cdi, file string
	client                kubernetes.Interface

	mutex sync.Mutex
	claim sync.Mutex // one writer of claims' status at a time
	state State
}

func (d *driver) now() State {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.state
}

func (d *driver) read() bool {
	var state State
	text, err := os.ReadFile(d.file)
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	if err != nil {
		log.Printf("state: %v", err)
		return false
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	changed := !reflect.DeepEqual(state, d.state)
	d.state = state
	return changed
}

// The CDI kind belongs to this driver alone.
func (d *driver) kind() string { return d.name + "/device" }

// The CDI device that all have in common.
const common = "common"

func (d *driver) cdiFile(of string) string {
	return filepath.Join(d.cdi, d.name+"-"+of+".json")
}

func (d *driver) writeCDI(of string, devices ...map[string]any) error {
	text, err := json.Marshal(map[string]any{"cdiVersion": "0.6.0", "kind": d.kind(), "devices": devices})
	if err != nil {
		return err
	}
	return os.WriteFile(d.cdiFile(of), text, 0o644)
}

func (d *driver) PrepareResourceClaims(ctx context.Context, claims []*resourcev1.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	results := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		result := kubeletplugin.PrepareResult{}
		var edits []map[string]any
		for i, given := range claim.Status.Allocation.Devices.Results {
			if given.Driver != d.name {
				continue
			}
			name := string(claim.UID) + "-" + given.Device
			if d.now().OpaqueNames {
				name = string(claim.UID) + "-part-" + string(rune('a'+i))
			}
			edits = append(edits, map[string]any{"name": name, "containerEdits": map[string]any{"env": []string{"DEVICE=" + given.Device}}})
			ids := []string{d.kind() + "=" + name}
			if d.now().CommonFirst {
				ids = append([]string{d.kind() + "=" + common}, ids...)
			}
			result.Devices = append(result.Devices, kubeletplugin.Device{Requests: []string{given.Request}, PoolName: given.Pool,
				DeviceName: given.Device, CDIDeviceIDs: ids})
		}
		err := d.writeCDI(string(claim.UID), edits...)
		if err == nil {
			err = d.writeStatus(ctx, claim)
		}
		log.Printf("prepared %s/%s: %d devices, %v", claim.Namespace, claim.Name, len(result.Devices), err)
		result.Err = err
		results[claim.UID] = result
	}
	return results, nil
}

func (d *driver) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	results := map[types.UID]error{}
	for _, claim := range claims {
		err := os.Remove(d.cdiFile(string(claim.UID)))
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		log.Printf("unprepared %s/%s: %v", claim.Namespace, claim.Name, err)
		results[claim.UID] = err
	}
	return results, nil
}

func (d *driver) HandleError(_ context.Context, err error, message string) {
	log.Printf("%s: %v", message, err)
}

// writeStatus says in the claim how its devices are.
func (d *driver) writeStatus(ctx context.Context, claim *resourcev1.ResourceClaim) error {
	d.claim.Lock()
	defer d.claim.Unlock()
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		fresh, err := d.client.ResourceV1().ResourceClaims(claim.Namespace).Get(ctx, claim.Name, metav1.GetOptions{})
		if err != nil || fresh.UID != claim.UID || fresh.Status.Allocation == nil {
			return err
		}
		wanted := fresh.DeepCopy()
		state := d.now()
		for _, given := range fresh.Status.Allocation.Devices.Results {
			if given.Driver != d.name {
				continue
			}
			status := d.entry(wanted, given)
			meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: "Prepared", Status: "True", Reason: "Prepared"})
			for _, condition := range state.Devices[given.Device].Conditions {
				meta.SetStatusCondition(&status.Conditions, condition)
			}
			status.NetworkData = state.Devices[given.Device].Network
		}
		if reflect.DeepEqual(fresh.Status, wanted.Status) {
			return nil
		}
		_, err = d.client.ResourceV1().ResourceClaims(claim.Namespace).UpdateStatus(ctx, wanted, metav1.UpdateOptions{})
		return err
	})
}

func (d *driver) entry(claim *resourcev1.ResourceClaim, given resourcev1.DeviceRequestAllocationResult) *resourcev1.AllocatedDeviceStatus {
	for i := range claim.Status.Devices {
		if s := &claim.Status.Devices[i]; s.Driver == given.Driver && s.Pool == given.Pool && s.Device == given.Device {
			return s
		}
	}
	claim.Status.Devices = append(claim.Status.Devices, resourcev1.AllocatedDeviceStatus{Driver: given.Driver, Pool: given.Pool, Device: given.Device})
	return &claim.Status.Devices[len(claim.Status.Devices)-1]
}

func (d *driver) writeAllStatus(ctx context.Context) {
	claims, err := d.client.ResourceV1().ResourceClaims("").List(ctx, metav1.ListOptions{})
	if err != nil {
		log.Printf("claims: %v", err)
		return
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if claim.Status.Allocation == nil || len(claim.Status.ReservedFor) == 0 {
			continue
		}
		if err := d.writeStatus(ctx, claim); err != nil {
			log.Printf("status of %s/%s: %v", claim.Namespace, claim.Name, err)
		}
	}
}

func (d *driver) WatchHealthStatus(ctx context.Context, reports chan<- kubeletplugin.DeviceHealthReport) error {
	var last State
	var sent time.Time
	for {
		if now := d.now(); !now.Mute && (!reflect.DeepEqual(now, last) || time.Since(sent) > reported) {
			last, sent = now, time.Now()
			report := kubeletplugin.DeviceHealthReport{}
			for name, device := range now.Devices {
				report.Devices = append(report.Devices, kubeletplugin.DeviceHealth{PoolName: d.node, DeviceName: name,
					Health: kubeletplugin.HealthStatus(device.Health), Message: device.Message, LastUpdated: time.Now()})
			}
			select {
			case <-ctx.Done():
				return nil
			case reports <- report:
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(look):
		}
	}
}

func (d *driver) resources() resourceslice.DriverResources {
	var devices []resourcev1.Device
	state := d.now()
	for _, name := range slices.Sorted(maps.Keys(state.Devices)) {
		device := resourcev1.Device{Name: name, Taints: slices.Clone(state.Devices[name].Taints)}
		for attribute, value := range state.Devices[name].Attributes {
			if device.Attributes == nil {
				device.Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}
			}
			device.Attributes[resourcev1.QualifiedName(attribute)] = resourcev1.DeviceAttribute{StringValue: &value}
		}
		devices = append(devices, device)
	}
	return resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{d.node: {Slices: []resourceslice.Slice{{Devices: devices}}}}}
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "of the API server")
	root := flag.String("root", "/var/lib/kubelet", "the kubelet's folder")
	d := &driver{}
	flag.StringVar(&d.name, "driver", "", "name of the driver")
	flag.StringVar(&d.node, "node", "", "name of the node, and of the pool")
	flag.StringVar(&d.cdi, "cdi", "", "folder for CDI files")
	flag.StringVar(&d.file, "file", "", "the devices and their state")
	flag.Parse()
	if !d.read() {
		log.Fatal("no state to begin with")
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	d.client = kubernetes.NewForConfigOrDie(config)
	data := filepath.Join(*root, "plugins", d.name)
	if err := os.MkdirAll(data, 0o755); err != nil {
		log.Fatal(err)
	}
	if d.now().CommonFirst {
		if err := d.writeCDI(common, map[string]any{"name": common, "containerEdits": map[string]any{"env": []string{"DRIVER=" + d.name}}}); err != nil {
			log.Fatal(err)
		}
	}
	ctx := context.Background()
	helper, err := kubeletplugin.Start(ctx, d, kubeletplugin.KubeClient(d.client), kubeletplugin.NodeName(d.node), kubeletplugin.DriverName(d.name),
		kubeletplugin.RegistrarDirectoryPath(filepath.Join(*root, "plugins_registry")), kubeletplugin.PluginDataDirectoryPath(data))
	if err != nil {
		log.Fatal(err)
	}
	published := d.resources()
	if err := helper.PublishResources(ctx, d.resources()); err != nil {
		log.Fatal(err)
	}
	log.Print("running")
	for range time.Tick(look) {
		if !d.read() {
			continue
		}
		log.Printf("state is now %+v", d.now())
		if wanted := d.resources(); !reflect.DeepEqual(wanted, published) {
			if err := helper.PublishResources(ctx, d.resources()); err != nil { // which keeps and changes what it is given
				log.Printf("slices: %v", err)
			} else {
				published = wanted
			}
		}
		d.writeAllStatus(ctx)
	}
}
