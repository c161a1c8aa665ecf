package standin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"
)

// applyType is the content type of server-side apply.
const applyType = "application/apply-patch+yaml"

// merge applies a patch by its content type; server-side apply is treated as a strategic merge.
func merge(c *call, old, patch []byte) ([]byte, error) {
	switch t := c.r.Header.Get("Content-Type"); t {
	case "application/json-patch+json":
		p, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			return nil, err
		}
		return p.Apply(old)
	case "application/merge-patch+json":
		return jsonpatch.MergePatch(old, patch)
	case "application/strategic-merge-patch+json", applyType:
		if !json.Valid(patch) {
			var err error
			if patch, err = yaml.YAMLToJSON(patch); err != nil {
				return nil, err
			}
		}
		return strategicpatch.StrategicMergePatch(old, patch, c.k.typed)
	default:
		return nil, fmt.Errorf("content type %q", t)
	}
}

var conditionsKey = []byte(`,"conditions":[`)

// withCondition is the short way for what a controller writes a thousand times: one condition applied to the status of a
// pod that does not have one of its type. nil: take the long way, which costs some milliseconds.
func withCondition(c *call, old *object, body []byte) []byte {
	var patch struct {
		Metadata struct{ UID string }
		Status   map[string]json.RawMessage
	}
	if c.k.plural != "pods" || c.r.Header.Get("Content-Type") != applyType || json.Unmarshal(body, &patch) != nil {
		return nil
	}
	var conditions []json.RawMessage
	var first struct{ Type string }
	if len(patch.Status) != 1 || json.Unmarshal(patch.Status["conditions"], &conditions) != nil || len(conditions) != 1 || json.Unmarshal(conditions[0], &first) != nil {
		return nil
	}
	raw := old.text()
	if patch.Metadata.UID != "" && patch.Metadata.UID != old.uid || bytes.Contains(raw, fmt.Appendf(nil, `"type":"%s"`, first.Type)) {
		return nil
	}
	at := bytes.LastIndex(raw, conditionsKey)
	if at < 0 {
		return nil
	}
	at += len(conditionsKey)
	return slices.Concat(raw[:at], conditions[0], []byte(","), raw[at:])
}
