package realcluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"
)

// Store puts an object into etcd past the API server and its validation, which then serves it as one of another release's: the past that an
// upgrade leaves behind, or what a newer server has let in. resource is as in a URL, such as pods.
func (cp *ControlPlane) Store(ctx context.Context, resource, namespace, name string, object any) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	key := fmt.Sprintf("/registry/%s/%s/%s", resource, namespace, name)
	return cp.etcd(ctx, "/v3/kv/put", fmt.Sprintf(`{"key":%q,"value":%q}`, base64.StdEncoding.EncodeToString([]byte(key)),
		base64.StdEncoding.EncodeToString(text)), nil)
}
