package view

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"

	admissionreviewv1 "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/realcluster"
)

// mutating puts a webhook between the API server and what a client wants in a namespace, until it is called off or the test ends: patch is the
// JSON patch for one request, empty if that may pass as it is.
func mutating(t *testing.T, namespace string, when admissionv1.MatchCondition, rule admissionv1.RuleWithOperations, patch func(*admissionreviewv1.AdmissionRequest) []byte) (callOff func()) {
	t.Helper()
	web := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionreviewv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, "no AdmissionReview", http.StatusBadRequest)
			return
		}
		review.Response = &admissionreviewv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		if text := patch(review.Request); len(text) > 0 {
			kind := admissionreviewv1.PatchTypeJSONPatch
			review.Response.Patch, review.Response.PatchType = text, &kind
		}
		review.Request = nil
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(web.Close)
	hook := realcluster.Unique("mutating") + ".example.com"
	fail, none := admissionv1.Fail, admissionv1.SideEffectClassNone
	hooks := cluster.Client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	_, err := hooks.Create(t.Context(), &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: hook},
		Webhooks: []admissionv1.MutatingWebhook{{Name: hook, FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionv1.WebhookClientConfig{URL: &web.URL,
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			MatchConditions:   []admissionv1.MatchCondition{when}, Rules: []admissionv1.RuleWithOperations{rule}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The test's own context ends before it cleans up.
	callOff = func() { _ = hooks.Delete(context.WithoutCancel(t.Context()), hook, metav1.DeleteOptions{}) }
	t.Cleanup(callOff)
	return callOff
}
