package realcluster

import (
	"context"
	"os"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const savedEtcd = "etcd-saved"

// SaveEtcd keeps a copy of all that is stored now, as a backup does. The control plane is away meanwhile.
func (cp *ControlPlane) SaveEtcd() error {
	return cp.withoutEtcd(func() error {
		if err := os.RemoveAll(cp.file(savedEtcd)); err != nil {
			return err
		}
		return os.CopyFS(cp.file(savedEtcd), os.DirFS(cp.file("etcd")))
	})
}

// RestoreEtcd puts the copy back as an operator restores a backup: everything is stopped, etcd's data replaced, everything started
// again. Clients are told nothing. between is called while the control plane is away.
func (cp *ControlPlane) RestoreEtcd(between func()) error {
	return cp.withoutEtcd(func() error {
		between()
		if err := os.RemoveAll(cp.file("etcd")); err != nil {
			return err
		}
		return os.CopyFS(cp.file("etcd"), os.DirFS(cp.file(savedEtcd)))
	})
}

// Spend makes so many versions in a namespace, so that a past that is restored does not catch up with them at once.
func (cp *ControlPlane) Spend(ctx context.Context, namespace string, versions int) error {
	maps := cp.Client.CoreV1().ConfigMaps(namespace)
	made, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "spent-"}}, metav1.CreateOptions{})
	for i := 0; i < versions && err == nil; i++ {
		made.Data = map[string]string{"count": strconv.Itoa(i)}
		made, err = maps.Update(ctx, made, metav1.UpdateOptions{})
	}
	return err
}

func (cp *ControlPlane) withoutEtcd(do func() error) error {
	// An API server whose etcd is gone never ends by itself: etcd goes last.
	for _, name := range []string{"kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"} {
		if p := cp.component(name); p != nil {
			if err := p.Stop(5 * time.Second); err != nil {
				return err
			}
		}
	}
	if err := do(); err != nil {
		return err
	}
	if err := cp.startEtcd(); err != nil {
		return err
	}
	if err := cp.startAPIServer(); err != nil {
		return err
	}
	if cp.Options.WithoutControllers {
		return nil
	}
	return cp.startControllers()
}
