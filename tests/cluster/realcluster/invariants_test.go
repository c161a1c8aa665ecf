package realcluster

import "testing"

func TestALogThatHoldsNothingOfOursIsNoProof(t *testing.T) {
	for _, test := range []struct {
		name string
		code int
		part bool
		good bool
	}{
		{"every write was judged and is good", 0, false, true},
		{"a write broke an invariant", 1, false, false},
		{"a write broke an invariant, of some of the tests", 1, true, false},
		{"the log cannot be read", 2, false, false},
		{"nothing of ours", nothingOfOurs, false, false},
		{"nothing of ours, of some of the tests", nothingOfOurs, true, true},
	} {
		text, err := judged(test.code, "what audit-check says", test.part)
		if (err == nil) != test.good {
			t.Errorf("%s: %v", test.name, err)
		}
		if err == nil && text == "" {
			t.Errorf("%s: nothing is said", test.name)
		}
	}
}
