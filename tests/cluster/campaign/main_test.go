// Package campaign tells one main story again and again, each time with one fault at another place, and holds the end against that of the undisturbed story.
package campaign

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/realcluster"
)

// free are the control planes where no story is told at the moment.
var free chan *plane

// stories at a time: most of one is waiting.
var stories = 2

func TestMain(m *testing.M) {
	if text := os.Getenv("DHC_CAMPAIGN_PLANES"); text != "" {
		stories, _ = strconv.Atoi(text)
	}
	free = make(chan *plane, stories)
	var options []realcluster.Options
	for i := range stories {
		options = append(options, realcluster.Options{Name: fmt.Sprint("campaign-", i+1)})
	}
	realcluster.Main(m, func(planes []*realcluster.ControlPlane) error {
		if _, err := dhc.Binary(); err != nil {
			return err
		}
		if part := os.Getenv("DHC_CAMPAIGN"); part != "" && parts[part] == nil && part != "streams" && part != "machine" {
			return fmt.Errorf("DHC_CAMPAIGN=%s is no part of the campaign", part)
		}
		for _, cp := range planes {
			if err := dhc.Install(cp); err != nil {
				return err
			}
			p, err := newProxy(cp)
			if err != nil {
				return err
			}
			cp.AtStop(func() []string { p.close(); return nil })
			free <- &plane{cp, p}
		}
		return nil
	}, options...)
}

var reference struct {
	end   outcome
	asked []answer
}

// undisturbed is the story without a fault, told once, as that against which all others are held.
func undisturbed(t *testing.T) (end outcome, asked []answer) {
	t.Helper()
	if reference.asked == nil {
		on := <-free
		defer func() { free <- on }()
		t.Run("undisturbed", func(t *testing.T) {
			reference.end, reference.asked = on.tell(t, nil, twist{})
		})
		if t.Failed() {
			t.Fatal("already the undisturbed story fails")
		}
		t.Logf("the end of the undisturbed story: %s", reference.end)
	}
	return reference.end, reference.asked
}
