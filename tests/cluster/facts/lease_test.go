package facts

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const stamp = "2026-11-20T12:00:00.000000Z"

// applySpec writes a Lease as the controller does. The answer is the code, and a refusal's words.
func applySpec(t *testing.T, namespace string, spec map[string]any) (int32, string) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
		"metadata": map[string]any{"name": "contested", "namespace": namespace}, "spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	force := true
	_, err = whole.Client.CoordinationV1().Leases(namespace).Patch(t.Context(), "contested", types.ApplyPatchType, body,
		metav1.PatchOptions{FieldManager: "candidate", Force: &force})
	if err == nil {
		return http.StatusOK, ""
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		t.Fatal(err)
	}
	return status.Status().Code, status.Status().Message
}

func spec(changes map[string]any) map[string]any {
	spec := map[string]any{"holderIdentity": "us", "leaseDurationSeconds": 15, "acquireTime": stamp, "renewTime": stamp, "leaseTransitions": 1}
	for key, value := range changes {
		if spec[key] = value; value == nil {
			delete(spec, key)
		}
	}
	return spec
}

func TestWhatALeaseMayBeMadeToSay(t *testing.T) {
	for name, c := range map[string]struct {
		changes map[string]any
		code    int32
		says    string
	}{
		"a holder":                          {nil, http.StatusOK, ""},
		"nobody":                            {map[string]any{"holderIdentity": ""}, http.StatusOK, ""},
		"a holder with a line feed":         {map[string]any{"holderIdentity": "x\n"}, http.StatusOK, ""},
		"a holder of 3,000 bytes":           {map[string]any{"holderIdentity": strings.Repeat("x", 3000)}, http.StatusOK, ""},
		"no acquireTime":                    {map[string]any{"acquireTime": nil}, http.StatusOK, ""},
		"an empty acquireTime":              {map[string]any{"acquireTime": ""}, http.StatusInternalServerError, "parsing time"},
		"an empty renewTime":                {map[string]any{"renewTime": ""}, http.StatusInternalServerError, "parsing time"},
		"seconds alone":                     {map[string]any{"renewTime": "2026-11-20T12:00:00Z"}, http.StatusInternalServerError, "parsing time"},
		"the largest number of transitions": {map[string]any{"leaseTransitions": 2147483647}, http.StatusOK, ""},
		"one transition more than fits":     {map[string]any{"leaseTransitions": 2147483648}, http.StatusUnprocessableEntity, "-2147483648: must be greater than or equal to 0"},
		"fewer transitions than none":       {map[string]any{"leaseTransitions": -1}, http.StatusUnprocessableEntity, "greater than or equal to 0"},
		"no duration at all":                {map[string]any{"leaseDurationSeconds": nil}, http.StatusOK, ""},
		"a duration of nothing":             {map[string]any{"leaseDurationSeconds": 0}, http.StatusUnprocessableEntity, "must be greater than 0"},
		"a duration that does not fit":      {map[string]any{"leaseDurationSeconds": 2147483648}, http.StatusUnprocessableEntity, "-2147483648: must be greater than 0"},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := whole.Namespace(t)
			for _, moment := range []string{"made", "renewed"} {
				if code, words := applySpec(t, namespace, spec(c.changes)); code != c.code || !strings.Contains(words, c.says) {
					t.Errorf("%s: %d %s; expected %d %s", moment, code, words, c.code, c.says)
				}
				if code, words := applySpec(t, namespace, spec(nil)); code != http.StatusOK {
					t.Fatal(code, words)
				}
			}
		})
	}
}

func TestALeasesFieldsCanBeTakenAwayUnderItsHolder(t *testing.T) {
	namespace := whole.Namespace(t)
	if code, words := applySpec(t, namespace, spec(nil)); code != http.StatusOK {
		t.Fatal(code, words)
	}
	lease, err := whole.Client.CoordinationV1().Leases(namespace).Patch(t.Context(), "contested", types.MergePatchType,
		[]byte(`{"spec":{"acquireTime":null,"leaseTransitions":2147483647}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if lease.Spec.AcquireTime != nil || *lease.Spec.LeaseTransitions != 2147483647 {
		t.Errorf("%+v", lease.Spec)
	}
	uid := lease.UID
	lease.Spec = coordinationv1.LeaseSpec{}
	emptied, err := whole.Client.CoordinationV1().Leases(namespace).Update(t.Context(), lease, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if emptied.UID != uid || emptied.Spec.HolderIdentity != nil || emptied.Spec.RenewTime != nil {
		t.Errorf("%+v", emptied)
	}
}
