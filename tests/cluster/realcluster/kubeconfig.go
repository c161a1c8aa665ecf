package realcluster

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Credentials of a kubeconfig; empty Server and CA mean this cluster's own.
type Credentials struct {
	Server string
	CA     []byte
	Token  string
	Client Pair
}

// WriteKubeconfig writes a kubeconfig with one context.
func (cp *ControlPlane) WriteKubeconfig(path string, c Credentials) error {
	if c.Server == "" {
		c.Server = cp.Server
	}
	if c.CA == nil {
		c.CA = cp.CA.PEM
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: c.Server, CertificateAuthorityData: c.CA}
	config.AuthInfos["test"] = &clientcmdapi.AuthInfo{Token: c.Token, ClientCertificateData: c.Client.Certificate, ClientKeyData: c.Client.Key}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	config.CurrentContext = "test"
	return clientcmd.WriteToFile(*config, path)
}

// Token asks the API server for a token of a service account, as a kubelet would for a pod.
func (cp *ControlPlane) Token(ctx context.Context, namespace, account string) (string, error) {
	seconds := int64(3600)
	answer, err := cp.Client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("token of service account %s/%s: %w", namespace, account, err)
	}
	return answer.Status.Token, nil
}

// Expired returns the same token, properly signed, that ended an hour ago.
func (cp *ControlPlane) Expired(token string) (string, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", fmt.Errorf("not a JSON web token")
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", err
	}
	var claims map[string]any
	if err := json.Unmarshal(body, &claims); err != nil {
		return "", err
	}
	now := time.Now()
	claims["iat"], claims["nbf"], claims["exp"] = now.Add(-2*time.Hour).Unix(), now.Add(-2*time.Hour).Unix(), now.Add(-time.Hour).Unix()
	if body, err = json.Marshal(claims); err != nil {
		return "", err
	}
	signed := parts[0] + "." + base64.RawURLEncoding.EncodeToString(body)
	hash := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, cp.signingKey, crypto.SHA256, hash[:])
	if err != nil {
		return "", err
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// Kubectl runs kubectl as the administrator and returns what it printed.
func (cp *ControlPlane) Kubectl(input string, arguments ...string) (string, error) {
	return cp.kubectl(nil, input, append([]string{"--kubeconfig=" + cp.file("admin.kubeconfig"), "--cache-dir=" + cp.file("kubectl-cache")}, arguments...)...)
}

// KubectlIn runs kubectl with this PATH, in which it finds its plugins, and nobody's kubeconfig; it returns what it printed.
func (cp *ControlPlane) KubectlIn(path string, arguments ...string) (string, error) {
	return cp.kubectl([]string{"PATH=" + path, "HOME=" + cp.file("kubectl-cache")}, "", arguments...)
}

func (cp *ControlPlane) kubectl(environment []string, input string, arguments ...string) (string, error) {
	command := exec.Command(cp.Binaries["kubectl"], arguments...)
	command.Env = environment
	command.Stdin = strings.NewReader(input)
	var output, problem bytes.Buffer
	command.Stdout, command.Stderr = &output, &problem
	if err := command.Run(); err != nil {
		return output.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(arguments, " "), err, problem.String())
	}
	return output.String(), nil
}
