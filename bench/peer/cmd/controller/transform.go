package main

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stripManagedFields is what most controllers do to save memory.
func stripManagedFields(obj any) (any, error) {
	if m, err := meta.Accessor(obj); err == nil {
		m.SetManagedFields(nil)
	}
	return obj, nil
}

// slim keeps of a pod only what reconcile reads: the least memory that a shared informer of typed pods can do with.
func slim(obj any) (any, error) {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return stripManagedFields(obj)
	}
	out := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: p.Name, Namespace: p.Namespace, UID: p.UID, ResourceVersion: p.ResourceVersion,
		DeletionTimestamp: p.DeletionTimestamp, OwnerReferences: p.OwnerReferences,
	}}
	out.Spec.NodeName, out.Status.Phase, out.Status.ResourceClaimStatuses = p.Spec.NodeName, p.Status.Phase, p.Status.ResourceClaimStatuses
	for _, c := range p.Status.ContainerStatuses {
		out.Status.ContainerStatuses = append(out.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, AllocatedResourcesStatus: c.AllocatedResourcesStatus})
	}
	return out, nil
}
