package stage

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Source of devices: a DRA driver with a DeviceClass of all its devices, or a device plugin's resource.
type Source struct {
	Name     string // of the driver, or of the resource
	DRA      bool
	Class    string // DRA: the DeviceClass
	Extended string // DRA: the resource by which pods ask for it; empty: they have claims
	short    string
}

// Driver is a DRA driver of this story. Without DRA the story does not apply.
func (s *Stage) Driver(short string) *Source { return s.driverOf(short, "") }

// ExtendedDriver is one whose devices pods ask for as an extended resource (KEP-5004).
func (s *Stage) ExtendedDriver(short string) *Source {
	return s.driverOf(short, short+"."+s.Name+"."+s.Run+"."+s.Domain+"/device")
}

func (s *Stage) driverOf(short, extended string) *Source {
	if !s.DRA {
		s.Skip("no DRA devices here")
	}
	source := &Source{Name: short + "." + s.Name + "." + s.Run + "." + s.Domain, DRA: true, Class: "conformance-" + s.Name + "-" + s.Run + "-" + short, short: short, Extended: extended}
	class := &resourcev1.DeviceClass{ObjectMeta: s.meta(source.Class), Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{
		{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", source.Name)}}}}}
	if extended != "" {
		class.Spec.ExtendedResourceName = &extended
	}
	made, err := s.Client.ResourceV1().DeviceClasses().Create(s.ctx, class, metav1.CreateOptions{})
	s.must(err)
	if extended != "" && made.Spec.ExtendedResourceName == nil {
		s.Skip("the API server has no extended resources of DRA devices (DRAExtendedResource)")
	}
	s.add(source)
	return source
}

// Devices of a DRA driver or, where the run has none, of a device plugin.
func (s *Stage) Devices(short string) *Source {
	if s.DRA {
		return s.Driver(short)
	}
	return s.PluginResource(short)
}

// PluginResource is a resource of a device plugin. Where the remediator has none of these the story does not apply.
func (s *Stage) PluginResource(short string) *Source {
	if !s.Plugin {
		s.Skip("no device plugins here")
	}
	source := &Source{Name: short + "." + s.Name + "." + s.Run + "." + s.Domain + "/device", short: short}
	s.add(source)
	return source
}

func (s *Stage) add(source *Source) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.sources = append(s.sources, source)
}

// Ask is what a pod of a story wants.
type Ask struct {
	Source *Source
	Count  int64         // of devices; 0 is one
	Claim  string        // that the pods share, instead of one for each
	OrMore bool          // two devices if they are there, else one (KEP-4816)
	On     *Node         // only there
	Takes  time.Duration // from being told to end to the end
	Grace  int64         // seconds; 0 is 1, or what it takes and 10 more
	Change func(*corev1.PodTemplateSpec)
}

const takesAnnotation = "device-health-conformance/takes"

// template of the pods of a workload. It is allowed where Pod Security is "restricted".
func (s *Stage) template(app string, ask Ask) corev1.PodTemplateSpec {
	container := corev1.Container{Name: "main", Image: s.Image, SecurityContext: &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}
	grace := ask.Grace
	if grace == 0 {
		grace = 1
		if ask.Takes > 0 {
			grace = int64(ask.Takes/time.Second) + 10
		}
	}
	pod := corev1.PodSpec{
		TerminationGracePeriodSeconds: &grace, AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false),
		NodeSelector: map[string]string{RunLabel: s.Run, storyLabel: s.Name}, Tolerations: []corev1.Toleration{{Key: RunLabel, Value: s.Run}},
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(65532)), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
	}
	if ask.On != nil {
		pod.NodeSelector[corev1.LabelHostname] = ask.On.Name
	}
	count := max(ask.Count, 1)
	switch source := ask.Source; {
	case source == nil:
	case source.Extended != "":
		container.Resources.Limits = corev1.ResourceList{corev1.ResourceName(source.Extended): *resource.NewQuantity(count, resource.DecimalSI)}
	case !source.DRA:
		container.Resources.Limits = corev1.ResourceList{corev1.ResourceName(source.Name): *resource.NewQuantity(count, resource.DecimalSI)}
	default:
		claim := corev1.PodResourceClaim{Name: "device"}
		if ask.Claim != "" {
			claim.ResourceClaimName = &ask.Claim
		} else {
			claim.ResourceClaimTemplateName = new(app)
			_, err := s.Client.ResourceV1().ResourceClaimTemplates(s.Namespace).Create(s.ctx, &resourcev1.ResourceClaimTemplate{
				ObjectMeta: s.meta(app), Spec: resourcev1.ResourceClaimTemplateSpec{Spec: claimOf(source, count, ask.OrMore)}}, metav1.CreateOptions{})
			s.must(err)
		}
		pod.ResourceClaims = []corev1.PodResourceClaim{claim}
		container.Resources.Claims = []corev1.ResourceClaim{{Name: "device"}}
	}
	pod.Containers = []corev1.Container{container}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{appLabel: app, RunLabel: s.Run}, Annotations: map[string]string{}}, Spec: pod}
	if ask.Takes > 0 {
		template.Annotations[takesAnnotation] = ask.Takes.String()
	}
	if ask.Change != nil {
		ask.Change(&template)
	}
	return template
}

func claimOf(source *Source, count int64, orMore bool) resourcev1.ResourceClaimSpec {
	request := resourcev1.DeviceRequest{Name: "device", Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: source.Class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count}}
	if orMore {
		request.Exactly = nil
		for name, wanted := range []int64{count + 1, count} {
			request.FirstAvailable = append(request.FirstAvailable, resourcev1.DeviceSubRequest{Name: []string{"more", "enough"}[name],
				DeviceClassName: source.Class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: wanted})
		}
	}
	return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{request}}}
}

func selector(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{appLabel: app}}
}

// Deployment of so many pods.
func (s *Stage) Deployment(app string, replicas int32, ask Ask) {
	_, err := s.Client.AppsV1().Deployments(s.Namespace).Create(s.ctx, &appsv1.Deployment{ObjectMeta: s.meta(app),
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector(app), Template: s.template(app, ask)}}, metav1.CreateOptions{})
	s.must(err)
}

// Scale a Deployment.
func (s *Stage) Scale(app string, replicas int32) {
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	_, err := s.Client.AppsV1().Deployments(s.Namespace).Patch(s.ctx, app, types.MergePatchType, patch, metav1.PatchOptions{})
	s.must(err)
}

// StatefulSet of so many pods.
func (s *Stage) StatefulSet(app string, replicas int32, ask Ask) {
	_, err := s.Client.AppsV1().StatefulSets(s.Namespace).Create(s.ctx, &appsv1.StatefulSet{ObjectMeta: s.meta(app),
		Spec: appsv1.StatefulSetSpec{Replicas: &replicas, Selector: selector(app), PodManagementPolicy: appsv1.ParallelPodManagement, Template: s.template(app, ask)}}, metav1.CreateOptions{})
	s.must(err)
}

// DaemonSet with a pod on each node of the story that its pods may run on.
func (s *Stage) DaemonSet(app string, ask Ask) {
	_, err := s.Client.AppsV1().DaemonSets(s.Namespace).Create(s.ctx, &appsv1.DaemonSet{ObjectMeta: s.meta(app),
		Spec: appsv1.DaemonSetSpec{Selector: selector(app), Template: s.template(app, ask)}}, metav1.CreateOptions{})
	s.must(err)
}

// Pod without a controller.
func (s *Stage) Pod(app string, ask Ask) {
	template := s.template(app, ask)
	template.Name = app
	_, err := s.Client.CoreV1().Pods(s.Namespace).Create(s.ctx, &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}, metav1.CreateOptions{})
	s.must(err)
}

// Job of so many pods at once, each of which must complete.
func (s *Stage) Job(app string, pods, backoffLimit int32, ask Ask, change func(*batchv1.JobSpec)) {
	spec := batchv1.JobSpec{Parallelism: &pods, Completions: &pods, BackoffLimit: &backoffLimit, Template: s.template(app, ask)}
	spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	if change != nil {
		change(&spec)
	}
	_, err := s.Client.BatchV1().Jobs(s.Namespace).Create(s.ctx, &batchv1.Job{ObjectMeta: s.meta(app), Spec: spec}, metav1.CreateOptions{})
	s.must(err)
}

// ExpectJobGoesOn ends the story if the Job has failed.
func (s *Stage) ExpectJobGoesOn(app string) {
	job, err := s.Client.BatchV1().Jobs(s.Namespace).Get(s.ctx, app, metav1.GetOptions{})
	s.must(err)
	for _, condition := range job.Status.Conditions {
		if condition.Status == corev1.ConditionTrue && (condition.Type == batchv1.JobFailed || condition.Type == batchv1.JobFailureTarget) {
			s.Fail("the Job has failed: %s", condition.Reason)
		}
	}
}

// Claim that pods may share.
func (s *Stage) Claim(name string, source *Source) {
	_, err := s.Client.ResourceV1().ResourceClaims(s.Namespace).Create(s.ctx, &resourcev1.ResourceClaim{ObjectMeta: s.meta(name), Spec: claimOf(source, 1, false)}, metav1.CreateOptions{})
	s.must(err)
}

// Budget keeps at least so many pods of a workload available.
func (s *Stage) Budget(name, app string, available int32) {
	minimum := intstr.FromInt32(available)
	_, err := s.Client.PolicyV1().PodDisruptionBudgets(s.Namespace).Create(s.ctx, &policyv1.PodDisruptionBudget{ObjectMeta: s.meta(name),
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &minimum, Selector: selector(app)}}, metav1.CreateOptions{})
	s.must(err)
	s.prepare("the budget "+name+" counts its pods", func() error {
		budget, err := s.Client.PolicyV1().PodDisruptionBudgets(s.Namespace).Get(s.ctx, name, metav1.GetOptions{})
		if err == nil && (budget.Status.ObservedGeneration == 0 || budget.Status.CurrentHealthy < available) {
			err = fmt.Errorf("it counts %d", budget.Status.CurrentHealthy)
		}
		return err
	})
}

// Allow changes a budget to so many available pods.
func (s *Stage) Allow(name string, available int32) {
	patch := fmt.Appendf(nil, `{"spec":{"minAvailable":%d}}`, available)
	_, err := s.Client.PolicyV1().PodDisruptionBudgets(s.Namespace).Patch(s.ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	s.must(err)
}

// Complete lets the pod's program end well.
func (s *Stage) Complete(pod Life) {
	s.mutex.Lock()
	s.byUID[string(pod.Pod.UID)].completes = true
	s.mutex.Unlock()
	s.nudge()
	s.prepare(pod.Pod.Name+" has succeeded", func() error {
		if phase := s.Now(pod).Pod.Status.Phase; phase != corev1.PodSucceeded {
			return fmt.Errorf("it is %s", phase)
		}
		return nil
	})
}

// Delete tells a pod to end as its user would.
func (s *Stage) Delete(pod Life) {
	s.mutex.Lock()
	s.byUID[string(pod.Pod.UID)].byUs = true
	s.mutex.Unlock()
	s.must(s.Client.CoreV1().Pods(s.Namespace).Delete(s.ctx, pod.Pod.Name, metav1.DeleteOptions{}))
}
