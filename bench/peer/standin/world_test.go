package standin

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestGeneratedObjectsHaveOnlyFieldsOfTheAPI(t *testing.T) {
	s, _ := started(t, "application/json")
	for _, k := range s.kinds {
		for key, o := range k.objs {
			d := json.NewDecoder(bytes.NewReader(o.text()))
			d.DisallowUnknownFields()
			if err := d.Decode(reflect.New(reflect.TypeOf(k.typed)).Interface()); err != nil {
				t.Fatalf("%s %s: %v", k.plural, key, err)
			}
		}
	}
}

func TestTheSameSeedMakesTheSameObjectsAndFailuresAndAnotherDoesNot(t *testing.T) {
	made := func(seed uint64) (objects, failures string) {
		s := New(Options{World: World{Pods: 50, Seed: seed}})
		for _, key := range s.pods().keys {
			objects += string(s.pods().objs[key].text())
		}
		for _, key := range s.order {
			failures += key + " "
		}
		return objects, failures
	}
	one, order := made(7)
	if again, same := made(7); again != one || same != order {
		t.Fatal("the same seed has made other pods or another order of failures")
	}
	if other, _ := made(8); other == one {
		t.Fatal("another seed has made the same pods")
	}
}

func TestPagesTogetherAreTheList(t *testing.T) {
	s, c := started(t, "application/json")
	seen, next := map[types.UID]bool{}, ""
	for {
		l, err := c.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{Limit: 33, Continue: next})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range l.Items {
			seen[p.UID] = true
		}
		if next = l.Continue; next == "" {
			break
		}
		if s.Stats().Synced != 0 {
			t.Fatal("a page counts as the whole list")
		}
	}
	if len(seen) != fewPods || s.Stats().Synced != 1 {
		t.Fatal(len(seen), s.Stats().Synced)
	}
}

func TestAFailedDeviceIsMissingFromItsNodeOrTaintedInItsSlice(t *testing.T) {
	s, c := started(t, "application/json")
	state := func() (lost int64, tainted int) {
		nodes, err := c.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		must(err)
		for _, n := range nodes.Items {
			q, all := n.Status.Allocatable["nvidia.com/gpu"], n.Status.Capacity["nvidia.com/gpu"]
			lost += all.Value() - q.Value()
		}
		slices, err := c.ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{})
		must(err)
		for _, sl := range slices.Items {
			for _, d := range sl.Spec.Devices {
				tainted += len(d.Taints)
			}
		}
		return lost, tainted
	}
	s.Fail(100, 0)
	if lost, tainted := state(); lost+int64(tainted) != 100 || tainted < 10 || lost < 10 {
		t.Fatal(lost, tainted)
	}
	if n := s.Heal(); n != 100 {
		t.Fatal(n)
	}
	if lost, tainted := state(); lost != 0 || tainted != 0 {
		t.Fatal(lost, tainted)
	}
}
