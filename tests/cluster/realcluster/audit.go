package realcluster

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
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

// Audit returns the records since a time that satisfy keep. The API server writes a record before it answers.
func (cp *ControlPlane) Audit(since time.Time, keep func(AuditEvent) bool) ([]AuditEvent, error) {
	file, err := os.Open(filepath.Join(cp.Logs, "audit.log"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var kept []AuditEvent
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var event AuditEvent
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			continue // the last line may still be on its way
		}
		if !event.Received.Before(since) && keep(event) {
			kept = append(kept, event)
		}
	}
	return kept, lines.Err()
}
