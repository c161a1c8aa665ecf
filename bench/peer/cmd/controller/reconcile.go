package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

type controller struct {
	client                    kubernetes.Interface
	pods, nodes, jobs, claims cache.Indexer
	queue                     workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

func newController(client kubernetes.Interface, f informers.SharedInformerFactory) *controller {
	pods := f.Core().V1().Pods().Informer()
	c := &controller{
		client: client,
		pods:   pods.GetIndexer(), nodes: f.Core().V1().Nodes().Informer().GetIndexer(),
		jobs: f.Batch().V1().Jobs().Informer().GetIndexer(), claims: f.Resource().V1().ResourceClaims().Informer().GetIndexer(),
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()),
	}
	pods.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: c.seen, UpdateFunc: func(_, now any) { c.seen(now) }})
	return c
}

// run works until the context ends.
func (c *controller) run(ctx context.Context, f informers.SharedInformerFactory, workers int) {
	began := time.Now()
	f.StartWithContext(ctx)
	f.WaitForCacheSync(ctx.Done())
	fmt.Fprintf(os.Stderr, "controller: %d pods synced in %v\n", len(c.pods.ListKeys()), time.Since(began).Round(time.Millisecond))
	for range workers {
		go c.work(ctx)
	}
	<-ctx.Done()
	c.queue.ShutDown()
}

// unhealthy names the first Unhealthy device of a pod that still runs.
func unhealthy(pod *corev1.Pod) (resource, device string) {
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return "", ""
	}
	for _, list := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for _, c := range list {
			for _, r := range c.AllocatedResourcesStatus {
				for _, d := range r.Resources {
					if d.Health == corev1.ResourceHealthStatusUnhealthy {
						return string(r.Name), string(d.ResourceID)
					}
				}
			}
		}
	}
	return "", ""
}

func (c *controller) seen(obj any) {
	if pod, ok := obj.(*corev1.Pod); ok {
		if _, device := unhealthy(pod); device != "" {
			c.queue.Add(cache.ObjectName{Namespace: pod.Namespace, Name: pod.Name})
		}
	}
}

func (c *controller) work(ctx context.Context) {
	for {
		name, stop := c.queue.Get()
		if stop {
			return
		}
		if err := c.reconcile(ctx, name); err != nil {
			fmt.Fprintln(os.Stderr, "controller:", err)
			c.queue.AddRateLimited(name)
		} else {
			c.queue.Forget(name)
		}
		c.queue.Done(name)
	}
}

func (c *controller) reconcile(ctx context.Context, name cache.ObjectName) error {
	obj, exists, err := c.pods.GetByKey(name.String())
	if err != nil || !exists {
		return err
	}
	pod := obj.(*corev1.Pod)
	resource, device := unhealthy(pod)
	if device == "" {
		return nil
	}
	if wait := c.unknown(pod, resource); wait != nil {
		return wait
	}
	if c.hasEnded(pod) {
		return nil
	}
	err = c.client.PolicyV1().Evictions(pod.Namespace).Evict(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // gone, or another pod by now
	}
	return err
}

// unknown is what a policy would look at and the caches do not have: the node, and of a DRA device the claim.
func (c *controller) unknown(pod *corev1.Pod, resource string) error {
	if _, known, _ := c.nodes.GetByKey(pod.Spec.NodeName); !known {
		return fmt.Errorf("node %q of pod %s/%s is not known", pod.Spec.NodeName, pod.Namespace, pod.Name)
	}
	claim, ok := strings.CutPrefix(resource, "claim:")
	if !ok {
		return nil
	}
	for _, s := range pod.Status.ResourceClaimStatuses {
		if s.Name != strings.Split(claim, "/")[0] || s.ResourceClaimName == nil {
			continue
		}
		if _, known, _ := c.claims.GetByKey(pod.Namespace + "/" + *s.ResourceClaimName); !known {
			return fmt.Errorf("claim %q of pod %s/%s is not known", *s.ResourceClaimName, pod.Namespace, pod.Name)
		}
	}
	return nil
}

// hasEnded is whether the pod belongs to a Job that is complete.
func (c *controller) hasEnded(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "Job" {
		return false
	}
	j, known, _ := c.jobs.GetByKey(pod.Namespace + "/" + owner.Name)
	return known && j.(*batchv1.Job).Status.CompletionTime != nil
}
