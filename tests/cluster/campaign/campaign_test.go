package campaign

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"
)

// part is one family of faults: all its places in a story of these requests, in an order in which any stretch is a sample of the whole.
type part struct {
	faults func(asked []answer) []fault
	sample func(f fault, place int) bool // those that a run without DHC_CAMPAIGN tells
}

var parts = map[string]*part{
	"writes": {everyWrite, fewWrites},
	"bytes":  {everyFifthByte, fewBytes},
	"codes":  {everyCode, fewCodes},
}

// result is one line of the file of results.
type result struct {
	Part    string
	Place   int
	Of      int // so many faults are there in the whole part
	Fault   string
	Reached bool
	Same    bool
	Seconds float64 // from the fault to the end of the story
}

var results sync.Mutex

// note adds a result to $DHC_CAMPAIGN_RESULTS/results.jsonl, if that is set. What fails because the run was ended is none.
func note(t *testing.T, on *plane, r result) {
	t.Helper()
	folder := os.Getenv("DHC_CAMPAIGN_RESULTS")
	if folder == "" {
		return
	}
	if _, err := on.cp.Client.Discovery().ServerVersion(); err != nil {
		return
	}
	results.Lock()
	defer results.Unlock()
	line, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(filepath.Join(folder, "results.jsonl"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
}

// places are the faults of a part that this run tells, by their numbers: from $DHC_CAMPAIGN_FROM up to $DHC_CAMPAIGN_TO, or the sample. The numbers stay the same over
// runs that share a folder of results, where the requests of the first one are kept.
func (p *part) places(t *testing.T, name string, asked []answer) (faults []fault, chosen []int) {
	t.Helper()
	if folder := os.Getenv("DHC_CAMPAIGN_RESULTS"); folder != "" {
		path := filepath.Join(folder, "requests.json")
		if text, err := os.ReadFile(path); err == nil {
			asked = nil
			if err := json.Unmarshal(text, &asked); err != nil {
				t.Fatal(err)
			}
		} else {
			text, err := json.Marshal(asked)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	faults = p.faults(asked)
	from, to := 0, len(faults)
	if os.Getenv("DHC_CAMPAIGN") != "" {
		from, to = number(t, "DHC_CAMPAIGN_FROM", 0), min(to, number(t, "DHC_CAMPAIGN_TO", to))
	}
	for place := from; place < to; place++ {
		if os.Getenv("DHC_CAMPAIGN") != "" || p.sample(faults[place], place) {
			chosen = append(chosen, place)
		}
	}
	if len(chosen) == 0 {
		t.Fatalf("no place of the %d of %s is chosen", len(faults), name)
	}
	t.Logf("%s: %d of %d places", name, len(chosen), len(faults))
	return faults, chosen
}

func number(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	value, err := strconv.Atoi(text)
	if err != nil || value < 0 {
		t.Fatalf("%s=%s is no number", variable, text)
	}
	return value
}

// run tells the story once for each chosen place of a part.
func (p *part) run(t *testing.T, name string) {
	t.Helper()
	if wanted := os.Getenv("DHC_CAMPAIGN"); wanted != "" && wanted != name {
		return
	}
	want, asked := undisturbed(t)
	faults, chosen := p.places(t, name, asked)
	for _, place := range chosen {
		f := faults[place]
		t.Run(fmt.Sprint(place), func(t *testing.T) {
			t.Parallel()
			on := <-free
			defer func() { free <- on }()
			t.Logf("%s", f)
			done := false
			took := time.Duration(0)
			defer func() {
				note(t, on, result{name, place, len(faults), f.String(), took > 0, done && !t.Failed(), took.Seconds()})
			}()
			got, _ := on.tell(t, &f, twist{})
			if struck := on.proxy.struckAt(); !struck.IsZero() {
				took = time.Since(struck)
			} else if os.Getenv("DHC_CAMPAIGN") == "" {
				t.Errorf("%s: the story did not come to it, and a sample must", f)
			}
			if got.String() != want.String() && !f.isLong() {
				t.Errorf("%s: it ends otherwise\n%s, not\n%s", f, got, want)
			}
			if waited, again := on.proxy.again(); again && f.asksForPatience() && f.Answer.RetryAfter == "1" && waited < time.Second {
				t.Errorf("%s: asked again after %s", f, waited)
			}
			done = true
		})
	}
}

func TestACrashAfterAnyByteOfAnyAnswerEndsAsTheUndisturbedStory(t *testing.T) {
	parts["bytes"].run(t, "bytes")
}

func TestAnAnswerWithAnyCodeAndRetryAfterEndsAsTheUndisturbedStory(t *testing.T) {
	parts["codes"].run(t, "codes")
}

func TestACrashOrALostAnswerAtEachWriteEndsAsTheUndisturbedStory(t *testing.T) {
	parts["writes"].run(t, "writes")
}
