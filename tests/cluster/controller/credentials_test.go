package controller

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/realcluster"
)

// Bad credentials: never ready, one clear line that names the file or the verb, and no secret in the log.
func TestBadCredentials(t *testing.T) {
	cluster.ExplainFailure(t)
	good, err := cluster.Token(t.Context(), dhc.Namespace, dhc.Account)
	if err != nil {
		t.Fatal(err)
	}
	expired, err := cluster.Expired(good)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := realcluster.NewAuthority("another cluster")
	if err != nil {
		t.Fatal(err)
	}
	nobody := realcluster.Unique("without-rights")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: nobody}}
	if _, err := cluster.Client.CoreV1().ServiceAccounts(dhc.Namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	rightless, err := cluster.Token(t.Context(), dhc.Namespace, nobody)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name        string
		credentials realcluster.Credentials
		says        []string // all of them in one line, FILE standing for the kubeconfig's path
	}{
		{"a server of another authority is refused", realcluster.Credentials{Token: good, CA: stranger.PEM}, []string{"FILE", "certificate"}},
		{"an expired token is told with the kubeconfig's name", realcluster.Credentials{Token: expired}, []string{"FILE", "Unauthorized"}},
		{"a token that is none is told with the kubeconfig's name", realcluster.Credentials{Token: "not-a-token"}, []string{"FILE", "Unauthorized"}},
		{"an account without roles is told the verb that it lacks", realcluster.Credentials{Token: rightless}, []string{"forbidden: pods", "watch"}},
		{"a server that is not there is told with its address", realcluster.Credentials{Token: good, Server: "https://127.0.0.1:1"}, []string{"127.0.0.1:1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "kubeconfig")
			if err := cluster.WriteKubeconfig(file, test.credentials); err != nil {
				t.Fatal(err)
			}
			controller := dhc.Launch(t, dhc.Settings{Kubeconfig: file, Policy: dhc.Policy{Namespace: "none"}.Text()})
			realcluster.Eventually(t, 15*time.Second, "one line names it", func() error {
				return controller.Says(strings.Split(strings.ReplaceAll(strings.Join(test.says, "\x00"), "FILE", file), "\x00")...)
			})
			if code, ended := controller.Ended(time.Second); ended && code == 0 {
				t.Error("it ended with code 0")
			}
			if code, _ := controller.Readyz(t); code == http.StatusOK {
				t.Error("it says that it is ready")
			}
			for _, secret := range []string{good, expired, rightless, "not-a-token"} {
				if strings.Contains(controller.LogText(t), secret) {
					t.Error("the log contains a token")
				}
			}
		})
	}
}
