package stage

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// remove begins to delete what the story made, whatever became of its context. What is left, or refused, Remove sees to at the end of the run.
func (s *Stage) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	r := remover{ctx: ctx, client: s.Client}
	names := map[string]bool{s.Namespace: true}
	for _, n := range s.everyNode() {
		names[n.Name] = true
		for source := range n.devices {
			names[s.sliceName(n, source)] = true
		}
	}
	for _, source := range s.sources {
		names[source.Class] = true
	}
	r.removeAll(RunLabel+"="+s.Run, func(name string) bool { return names[name] })
}

// Remove deletes what runs made, of one run or, without a name, of all, also those that were killed; it returns when it is gone.
func Remove(ctx context.Context, client kubernetes.Interface, run string) error {
	r := remover{ctx: ctx, client: client}
	selector := RunLabel
	if run != "" {
		selector += "=" + run
	}
	for {
		r.problems = nil
		left := r.removeAll(selector, func(string) bool { return true })
		if left == 0 && len(r.problems) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(append(r.problems, fmt.Errorf("%d objects labelled %s are still there; --clean-up deletes them", left, selector))...)
		case <-time.After(time.Second):
		}
	}
}

// remover deletes, and goes on where something is refused.
type remover struct {
	ctx      context.Context
	client   kubernetes.Interface
	problems []error
}

func (r *remover) try(err error) {
	if err != nil && !apierrors.IsNotFound(err) {
		r.problems = append(r.problems, err)
	}
}

// removeAll asks for the deletion of all that is labelled so and is ours, and says how many objects there were. Pods go at once, because the kubelet
// that would end them is gone, and after their owners, which would make others.
func (r *remover) removeAll(selector string, ours func(name string) bool) (count int) {
	list := metav1.ListOptions{LabelSelector: selector}
	namespaces, err := r.client.CoreV1().Namespaces().List(r.ctx, list)
	r.try(err)
	if err == nil {
		for _, namespace := range namespaces.Items {
			if ours(namespace.Name) {
				count++
				r.removeNamespace(namespace)
			}
		}
	}
	if _, err := r.client.Discovery().ServerResourcesForGroupVersion("resource.k8s.io/v1"); err == nil {
		slices, classes := r.client.ResourceV1().ResourceSlices(), r.client.ResourceV1().DeviceClasses()
		if found, err := slices.List(r.ctx, list); err == nil {
			for _, slice := range found.Items {
				count += r.one(ours, slice.Name, slices.Delete)
			}
		} else {
			r.try(err)
		}
		if found, err := classes.List(r.ctx, list); err == nil {
			for _, class := range found.Items {
				count += r.one(ours, class.Name, classes.Delete)
			}
		} else {
			r.try(err)
		}
	}
	nodes, leases := r.client.CoreV1().Nodes(), r.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	if found, err := nodes.List(r.ctx, list); err == nil {
		for _, node := range found.Items {
			count += r.one(ours, node.Name, nodes.Delete)
		}
	} else {
		r.try(err)
	}
	if found, err := leases.List(r.ctx, list); err == nil {
		for _, lease := range found.Items {
			count += r.one(ours, lease.Name, leases.Delete)
		}
	} else {
		r.try(err)
	}
	return count
}

func (r *remover) one(ours func(string) bool, name string, remove func(context.Context, string, metav1.DeleteOptions) error) int {
	if !ours(name) {
		return 0
	}
	r.try(remove(r.ctx, name, metav1.DeleteOptions{}))
	return 1
}

func (r *remover) removeNamespace(namespace corev1.Namespace) {
	all, background := metav1.ListOptions{}, metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{PropagationPolicy: &background}
	name := namespace.Name
	if namespace.DeletionTimestamp == nil {
		r.try(r.client.AppsV1().Deployments(name).DeleteCollection(r.ctx, options, all))
		r.try(r.client.AppsV1().StatefulSets(name).DeleteCollection(r.ctx, options, all))
		r.try(r.client.AppsV1().DaemonSets(name).DeleteCollection(r.ctx, options, all))
		r.try(r.client.BatchV1().Jobs(name).DeleteCollection(r.ctx, options, all))
	}
	r.try(r.client.CoreV1().Pods(name).DeleteCollection(r.ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, all))
	if namespace.DeletionTimestamp == nil {
		r.try(r.client.CoreV1().Namespaces().Delete(r.ctx, name, metav1.DeleteOptions{}))
	}
}
