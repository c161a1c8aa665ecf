package realcluster

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Everyone's writes, and every request of service accounts in our own namespace (what a test asks about).
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: RequestResponse
    verbs: [create, update, patch, delete, deletecollection]
    userGroups: ["system:serviceaccounts:device-health-system"]
  - level: Metadata
    userGroups: ["system:serviceaccounts:device-health-system"]
  - level: None
    resources: [{group: coordination.k8s.io, resources: [leases]}]
  - level: Metadata
    verbs: [create, update, patch, delete, deletecollection]
`

// auditPolicyOf puts the rules that docs/replay.md prints before ours, if options ask for them: the first that matches decides.
func auditPolicyOf(options Options) (string, error) {
	if !options.ReplayAudit {
		return auditPolicy, nil
	}
	path, err := RepositoryFile("docs/replay.md")
	if err != nil {
		return "", err
	}
	page, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	_, rules, found := strings.Cut(string(page), "\n    rules:\n")
	rules, _, ended := strings.Cut(rules, "\n\n")
	if !found || !ended {
		return "", fmt.Errorf("%s prints no rules of an audit policy", path)
	}
	const ours = "rules:\n"
	var documented strings.Builder
	for line := range strings.Lines(rules + "\n") {
		documented.WriteString(strings.TrimPrefix(line, "    "))
	}
	return strings.Replace(auditPolicy, ours, ours+documented.String(), 1), nil
}

// AuditEvent is the part of an audit record that tests look at.
type AuditEvent struct {
	Stage      string
	Verb       string
	RequestURI string
	UserAgent  string
	User       struct {
		Username string
		Extra    map[string][]string
	}
	ObjectRef struct{ Resource, Subresource, Namespace, Name, APIGroup string }
	Response  struct{ Code int } `json:"responseStatus"`
	Request   json.RawMessage    `json:"requestObject"`
	Received  time.Time          `json:"requestReceivedTimestamp"`
}

// Writes says whether the request could change something.
func (e AuditEvent) Writes() bool {
	switch e.Verb {
	case "get", "list", "watch":
		return false
	}
	return true
}

// Pod that sent the request, as its token says it; empty if it was no Pod.
func (e AuditEvent) Pod() string {
	if names := e.User.Extra["authentication.kubernetes.io/pod-name"]; len(names) == 1 {
		return names[0]
	}
	return ""
}

// auditLog is what has been read of a control plane's log, so that a test that asks again and again reads no line twice.
type auditLog struct {
	mutex  sync.Mutex
	offset int64
	events []AuditEvent
}

// readOn takes in the lines that have come since.
func (l *auditLog) readOn(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Seek(l.offset, io.SeekStart); err != nil {
		return err
	}
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // the last line may still be on its way
		}
		if err != nil {
			return err
		}
		l.offset += int64(len(line))
		var event AuditEvent
		if json.Unmarshal(line, &event) == nil { // else it was cut off when the API server was killed
			l.events = append(l.events, event)
		}
	}
}

// Audit returns the records since a time that satisfy keep.
func (cp *ControlPlane) Audit(since time.Time, keep func(AuditEvent) bool) ([]AuditEvent, error) {
	cp.audit.mutex.Lock()
	defer cp.audit.mutex.Unlock()
	if err := cp.audit.readOn(filepath.Join(cp.Logs, "audit.log")); err != nil {
		return nil, err
	}
	var kept []AuditEvent
	for _, event := range cp.audit.events {
		if !event.Received.Before(since) && keep(event) {
			kept = append(kept, event)
		}
	}
	return kept, nil
}
