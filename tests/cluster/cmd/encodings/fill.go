package main

import (
	"fmt"
	"math/rand"
	"reflect"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// filledLists are lists of objects whose every field is set in some of them, and absent, empty or zero in others. The
// fields that the controller reads are set more often, to words that mean something, and now and then to hostile ones.
func filledLists() map[string]runtime.Object {
	jobs := filled[batchv1.Job](30)
	for i := range jobs {
		jobs[i].Spec.Template.Spec.RestartPolicy = []corev1.RestartPolicy{"OnFailure", "Never", ""}[i%3]
	}
	pods := filled[corev1.Pod](40)
	for i := range pods {
		complete(&pods[i], i)
	}
	claims := filled[resourcev1.ResourceClaim](30)
	for i := range claims {
		if claims[i].Status.Allocation == nil {
			continue
		}
		for k := range claims[i].Status.Allocation.Devices.Results {
			claims[i].Status.Allocation.Devices.Results[k].Tolerations = []resourcev1.DeviceToleration{
				{Key: "example.com/unhealthy", Operator: "Equal", Value: "xid", Effect: "NoExecute"},
				{Key: "example.com/slow", Operator: "Exists", Effect: "NoSchedule"},
			}
		}
	}
	nodes := filled[corev1.Node](20)
	for i := range nodes {
		if i%2 == 0 {
			nodes[i].Status.Conditions = append(nodes[i].Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue})
		}
	}
	meta := metav1.ListMeta{ResourceVersion: "4711", Continue: "token"}
	return map[string]runtime.Object{
		"pods":         &corev1.PodList{ListMeta: meta, Items: pods},
		"nodes":        &corev1.NodeList{ListMeta: meta, Items: nodes},
		"namespaces":   &corev1.NamespaceList{ListMeta: meta, Items: filled[corev1.Namespace](20)},
		"jobs":         &batchv1.JobList{ListMeta: meta, Items: jobs},
		"claims":       &resourcev1.ResourceClaimList{ListMeta: meta, Items: claims},
		"slices":       &resourcev1.ResourceSliceList{ListMeta: meta, Items: filled[resourcev1.ResourceSlice](20)},
		"rules":        &resourcev1.DeviceTaintRuleList{ListMeta: meta, Items: filled[resourcev1.DeviceTaintRule](20)},
		"empty-pods":   &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}},
		"unnamed-pods": &corev1.PodList{ListMeta: meta, Items: []corev1.Pod{{}}},
	}
}

// complete sets what chance sets too seldom for a pod's record to depend on it.
func complete(pod *corev1.Pod, i int) {
	switch i % 4 {
	case 0:
		pod.Spec.Affinity = nil
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "kubernetes.io/hostname"}}
	case 1:
		term := corev1.PodAffinityTerm{TopologyKey: "kubernetes.io/hostname"}
		pod.Spec.TopologySpreadConstraints = nil
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
	case 2:
		always := corev1.ContainerRestartPolicyAlways
		limits := corev1.ResourceList{"example.com/gpu": resource.MustParse("3")}
		pod.Spec.InitContainers = []corev1.Container{{Name: "sidecar", RestartPolicy: &always, Resources: corev1.ResourceRequirements{Limits: limits}}}
	case 3:
		// A driver's pod, of which the last start is kept: each time it is another moment that decides.
		mount := corev1.HostPathVolumeSource{Path: "/var/lib/kubelet/device-plugins"}
		pod.Spec.Volumes = []corev1.Volume{{Name: "plugins", VolumeSource: corev1.VolumeSource{HostPath: &mount}}}
		running := func(second int64) corev1.ContainerState {
			return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Unix(2_000_000_000+second, 0)}}
		}
		states := []corev1.ContainerState{running(1), running(2)}
		main, first := corev1.ContainerStatus{Name: "main", State: states[0]}, corev1.ContainerStatus{Name: "first", LastTerminationState: states[1]}
		if i%8 == 3 {
			main, first = corev1.ContainerStatus{Name: "main", LastTerminationState: states[0]}, corev1.ContainerStatus{Name: "first", State: states[1]}
		}
		if i%16 < 8 {
			main, first = first, main
		}
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, main)
		pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, first)
	}
}

func filled[T any](count int) []T {
	items := make([]T, count)
	for i := range items {
		f := filler{random: rand.New(rand.NewSource(int64(i) + 1))}
		value := reflect.ValueOf(&items[i]).Elem()
		f.fill(value, "", true)
		meta := value.FieldByName("ObjectMeta").Addr().Interface().(*metav1.ObjectMeta)
		meta.Name, meta.UID, meta.ResourceVersion = fmt.Sprintf("object-%d", i), "uid", fmt.Sprint(1000+i)
		if meta.Namespace == "" {
			meta.Namespace = "team-a"
		}
		value.FieldByName("TypeMeta").Set(reflect.Zero(value.FieldByName("TypeMeta").Type()))
	}
	return items
}

// words are what fields of a name are set to; all others get one of anyWords.
var words = map[string][]string{
	"Action": {"FailJob", "FailIndex", "Ignore", "Count"}, "CompletionMode": {"Indexed", "NonIndexed"},
	"ContainerName": {"main", "side"},
	"Device":        {"gpu-0", "gpu-1"}, "Driver": {"gpu.example.com", "nic.example.com"}, "Pool": {"node-a", "pool-b"},
	"Effect": {"NoSchedule", "NoExecute", "PreferNoSchedule", "None", "Other"},
	"Health": {"Healthy", "Unhealthy", "Unknown", "PermanentlyUnhealthy", ""}, "Kind": {"Job", "ReplicaSet"},
	"ManagedBy": {"example.com/manager", ""}, "Name": {"gpu", "nic", "main"}, "Namespace": {"team-a", "team-b"},
	"Operator": {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Equal", "", "Other"},
	"Path":     {"/var/lib/kubelet/device-plugins", "/var/lib/kubelet/plugins/gpu.example.com/", "/var/lib/kubelet/plugins_registry", "/tmp"},
	"Phase":    {"Pending", "Running", "Succeeded", "Failed", "Unknown", ""}, "PodReplacementPolicy": {"Failed", "TerminatingOrFailed"},
	"Reason": {"UnexpectedAdmissionError", "Evicted", ""}, "Request": {"gpu", "nic/one"}, "ResourceID": {"gpu-0", "gpu-1", "gpu-2"},
	"RestartPolicy": {"Always", "OnFailure", "Never"}, "Status": {"True", "False", "Unknown"},
	"Type": {"Ready", "DisruptionTarget", "device-health.io/affected", "EvictionInProgress", "Complete", "Failed", "PodScheduled"},
}

var (
	// needed is what an object of which parts are read cannot do without.
	needed = map[string]bool{"Name": true, "Driver": true, "Pool": true, "Device": true, "Spec": true, "Status": true}
	// text is what people read; it may be anything.
	text      = map[string]bool{"Message": true, "Value": true, "Annotations": true, "Labels": true, "StringValue": true}
	anyWords  = []string{"a", "b.c", "driver.example.com", "größer", "", "\u2028", "bad\xffbyte\xe2\x82", "two\nlines \"quoted\" <&>", "x\x01control"}
	mapKeys   = []string{"app", "device-health.io/reason", "kubernetes.io/config.mirror", "batch.kubernetes.io/job-completion-index", "z"}
	resources = []string{"cpu", "memory", "example.com/gpu", "vendor.example/nic", "requests.example.com/gpu", "hugepages-2Mi"}
	amounts   = []string{"0", "1", "8", "1k", "2Ki", "3000m", "1e3", "100m", "9223372036854775807"}
)

// boring are parts of objects that the controller does not look into: set seldom, so that the files stay small.
var boring = map[string]bool{"ManagedFields": true, "LivenessProbe": true, "ReadinessProbe": true, "StartupProbe": true, "Lifecycle": true,
	"SecurityContext": true, "Env": true, "EnvFrom": true, "DNSConfig": true, "EphemeralContainers": true, "HostAliases": true, "Images": true,
	"Preferred": true, "Template": true, "CSI": true, "Projected": true, "ScaleIO": true, "ISCSI": true, "RBD": true, "CephFS": true, "Glusterfs": true,
	"AzureDisk": true, "AzureFile": true, "Cinder": true, "DownwardAPI": true, "Ephemeral": true, "FC": true, "FlexVolume": true, "Flocker": true,
	"GCEPersistentDisk": true, "AWSElasticBlockStore": true, "GitRepo": true, "NFS": true, "PhotonPersistentDisk": true, "PortworxVolume": true,
	"Quobyte": true, "Secret": true, "StorageOS": true, "VsphereVolume": true, "ConfigMap": true, "Image": true, "EmptyDir": true,
	"PersistentVolumeClaim": true, "PreferredDuringSchedulingIgnoredDuringExecution": true, "VolumeMounts": true, "VolumeDevices": true,
	"Selector": true, "PodAffinity": true, "PodAntiAffinity": true, "TopologySpreadConstraints": true}

type filler struct{ random *rand.Rand }

func (f filler) one(of []string) string  { return of[f.random.Intn(len(of))] }
func (f filler) chance(percent int) bool { return f.random.Intn(100) < percent }

func (f filler) word(field string) string {
	if known, ok := words[field]; ok && !f.chance(1) {
		return f.one(known)
	}
	// What makes an object unreadable where it stands for a name comes last, and seldom there.
	hostile := 1
	if text[field] {
		hostile = 20
	}
	if !f.chance(hostile) {
		return f.one(anyWords[:5])
	}
	return f.one(anyWords)
}

func (f filler) special(value reflect.Value) bool {
	switch value.Interface().(type) {
	case resource.Quantity:
		value.Set(reflect.ValueOf(resource.MustParse(f.one(amounts[:7]))))
	case metav1.Time:
		times := []metav1.Time{{}, metav1.Unix(0, 0), metav1.Unix(-86400, 0), metav1.Unix(1_800_000_000, 999_999_999), metav1.Date(1, 1, 1, 0, 0, 1, 0, time.UTC)}
		value.Set(reflect.ValueOf(times[f.random.Intn(len(times))]))
	case metav1.MicroTime:
		value.Set(reflect.ValueOf(metav1.NewMicroTime(time.Unix(1_800_000_000, 123_456_789).UTC())))
	case intstr.IntOrString:
		value.Set(reflect.ValueOf(intstr.FromInt32(8080)))
	case metav1.FieldsV1:
		value.Set(reflect.ValueOf(metav1.FieldsV1{Raw: []byte(`{"f:a":{}}`)}))
	case runtime.RawExtension:
		value.Set(reflect.ValueOf(runtime.RawExtension{Raw: []byte(`{"a":1}`)}))
	default:
		return false
	}
	return true
}

func (f filler) amounts(value reflect.Value) {
	list := corev1.ResourceList{}
	for range f.random.Intn(4) {
		from := amounts
		if !f.chance(5) {
			from = amounts[:6]
		}
		list[corev1.ResourceName(f.one(resources))] = resource.MustParse(f.one(from))
	}
	value.Set(reflect.ValueOf(list))
}

func (f filler) fill(value reflect.Value, field string, anyway bool) {
	absent := 15
	if needed[field] {
		absent = 2
	}
	if !anyway && (f.chance(absent) || boring[field] && !f.chance(4)) {
		return
	}
	if f.special(value) {
		return
	}
	if value.Type() == reflect.TypeFor[corev1.ResourceList]() {
		f.amounts(value)
		return
	}
	switch value.Kind() {
	case reflect.Struct:
		for i := range value.NumField() {
			if value.Type().Field(i).IsExported() {
				f.fill(value.Field(i), value.Type().Field(i).Name, value.Type().Field(i).Anonymous)
			}
		}
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		f.fill(value.Elem(), field, true)
	case reflect.Slice:
		count := f.random.Intn(3)
		value.Set(reflect.MakeSlice(value.Type(), count, count))
		for i := range count {
			f.fill(value.Index(i), field, true)
		}
	case reflect.Map:
		value.Set(reflect.MakeMap(value.Type()))
		for range f.random.Intn(4) {
			key, held := reflect.New(value.Type().Key()).Elem(), reflect.New(value.Type().Elem()).Elem()
			key.SetString(f.one(mapKeys))
			f.fill(held, field, true)
			value.SetMapIndex(key, held)
		}
	case reflect.String:
		value.SetString(f.word(field))
	case reflect.Bool:
		value.SetBool(f.chance(50))
	case reflect.Int, reflect.Int32, reflect.Int64:
		numbers := []int64{0, 1, 2, 30, 137, -1, 1<<31 - 1, -1 << 31}
		if value.Kind() == reflect.Int64 {
			numbers = append(numbers, 1<<62, -1<<63)
		}
		value.SetInt(numbers[f.random.Intn(len(numbers))])
	case reflect.Uint8:
		value.SetUint('x')
	}
}
