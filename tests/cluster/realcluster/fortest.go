package realcluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var names atomic.Int64

// Unique makes a name that no other test of this run uses.
func Unique(prefix string) string { return fmt.Sprintf("%s-%d", prefix, names.Add(1)) }

var notAName = regexp.MustCompile(`[^a-z0-9]+`)

// Namespace makes a Namespace for one test, ready for Pods. If the test fails, the components' last lines are printed with it.
func (cp *ControlPlane) Namespace(t *testing.T) string {
	t.Helper()
	words := strings.Trim(notAName.ReplaceAllString(strings.ToLower(t.Name()), "-"), "-")
	name := Unique(strings.Trim(words[:min(len(words), 40)], "-"))
	cp.ExplainFailure(t)
	_, err := cp.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Foreground work of the namespace controller goes on in the background; pods must go now, their node is going too.
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = cp.Client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
	})
	if !cp.Options.WithoutControllers {
		Eventually(t, 20*time.Second, "the namespace's default service account", func() error {
			_, err := cp.Client.CoreV1().ServiceAccounts(name).Get(t.Context(), "default", metav1.GetOptions{})
			return err
		})
	}
	return name
}

// ExplainFailure prints the components' last 30 lines if the test fails.
func (cp *ControlPlane) ExplainFailure(t *testing.T) {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s(whole logs are kept, the folder is named at the end of the run)", cp.Tails(30))
		}
	})
}

// patience is how long a test waits at least: on a slow machine everything takes longer, and what is waited for is no claim about time.
const patience = 5 * time.Minute

// Eventually waits until check returns nil, and fails the test with its last error otherwise: after the limit, or after two minutes if that
// is more. A claim about time needs a time that was measured.
func Eventually(t *testing.T, limit time.Duration, what string, check func() error) {
	t.Helper()
	limit = max(limit, patience)
	deadline := time.Now().Add(limit)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %v", what, limit, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Never watches for a while that check keeps returning nil.
func Never(t *testing.T, during time.Duration, what string, check func() error) {
	t.Helper()
	for deadline := time.Now().Add(during); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if err := check(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// CPU is the time that a component has computed since its start, in its own code and in the kernel.
func (cp *ControlPlane) CPU(t *testing.T, component string) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cp.component(component).Pid()))
	if err != nil {
		t.Fatal(err)
	}
	// The name, in brackets, may hold anything; of what follows, the 12th and 13th are ticks of 10 ms. Source: proc(5).
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	var ticks int64
	for _, field := range fields[11:13] {
		count, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ticks += count
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
