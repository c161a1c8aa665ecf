package realcluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Authority is a certificate authority that lives as long as the test.
type Authority struct {
	PEM []byte

	certificate *x509.Certificate
	key         crypto.Signer
}

// Pair is a certificate and its key, PEM.
type Pair struct{ Certificate, Key []byte }

// NewAuthority makes an authority of the given name.
func NewAuthority(name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := template(name, nil)
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &Authority{PEM: encode("CERTIFICATE", der), certificate: certificate, key: key}, nil
}

// Server issues a certificate for a server at 127.0.0.1 and the names and the address by which pods know the API server.
func (a *Authority) Server() (Pair, error) {
	t := template("kube-apiserver", nil)
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	t.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(serviceAddress)}
	t.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default.svc"}
	return a.issue(t)
}

// Client issues a certificate that authenticates as user in groups.
func (a *Authority) Client(user string, groups ...string) (Pair, error) {
	t := template(user, groups)
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.issue(t)
}

func template(name string, groups []string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name, Organization: groups},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}

func (a *Authority) issue(t *x509.Certificate) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.certificate, key.Public(), a.key)
	if err != nil {
		return Pair{}, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{Certificate: encode("CERTIFICATE", der), Key: encode("PRIVATE KEY", private)}, nil
}

func (p Pair) write(folder, name string) error {
	if err := os.WriteFile(filepath.Join(folder, name+".crt"), p.Certificate, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, name+".key"), p.Key, 0o600)
}

// writeServiceAccountKey makes the key pair that signs and checks service-account tokens.
func writeServiceAccountKey(folder string) (*rsa.PrivateKey, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(folder, "service-account.pub"), encode("PUBLIC KEY", public), 0o600); err != nil {
		return nil, err
	}
	private := encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key))
	return key, os.WriteFile(filepath.Join(folder, "service-account.key"), private, 0o600)
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// given are the ports that this process has been given: another control plane that starts beside us may not have bound its own yet.
var given = struct {
	mutex sync.Mutex
	ports map[int]bool
}{ports: map[int]bool{}}

func freePorts(count int) ([]int, error) {
	given.mutex.Lock()
	defer given.mutex.Unlock()
	var ports []int
	for len(ports) < count {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("no free port on 127.0.0.1: %w", err)
		}
		defer listener.Close() // all at the end, so that no port is given twice
		port := listener.Addr().(*net.TCPAddr).Port
		if !given.ports[port] {
			given.ports[port] = true
			ports = append(ports, port)
		}
	}
	return ports, nil
}
