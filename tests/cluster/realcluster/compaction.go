package realcluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Compact throws away etcd's history up to the current revision: a list that goes on from before gets 410 Gone.
func (cp *ControlPlane) Compact(ctx context.Context) (revision string, err error) {
	// A write first, so that every older continue token and version is really before the compaction.
	var put struct {
		Header struct{ Revision string }
	}
	if err := cp.etcd(ctx, "/v3/kv/put", `{"key":"dGVzdHMvY2x1c3Rlcg==","value":""}`, &put); err != nil {
		return "", err
	}
	revision = put.Header.Revision
	return revision, cp.etcd(ctx, "/v3/kv/compaction", fmt.Sprintf(`{"revision":%q,"physical":true}`, revision), nil)
}

func (cp *ControlPlane) etcd(ctx context.Context, path, body string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, cp.etcdURL+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd %s: %s: %s", path, response.Status, text)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}
