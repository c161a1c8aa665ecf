package monitoring

import (
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	board "github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// grafanas reads a dashboard by Grafana's own schema, unknown keys and options of a panel's kind included.
func grafanas(text string) error {
	plugins.RegisterDefaultPlugins()
	var read board.Dashboard
	// Without a fault it returns an empty list of them, which is not nil.
	if err := read.UnmarshalJSONStrict([]byte(text)); err != nil && err.Error() != "" {
		return err
	}
	return read.Validate()
}

func TestTheDashboardIsOneByGrafanasOwnSchema(t *testing.T) {
	text := read(t, boardFile)
	if err := grafanas(text); err != nil {
		t.Fatal(err)
	}
	for _, mistake := range [][2]string{
		{`"gridPos"`, `"gridPosition"`},
		{`"fieldConfig"`, `"fieldConfigs"`},
		{`"expr"`, `"expression"`},
		{`"schemaVersion"`, `"schema"`},
	} {
		planted := strings.Replace(text, mistake[0], mistake[1], 1)
		if planted == text {
			t.Errorf("%s is not in the dashboard", mistake[0])
		} else if err := grafanas(planted); err == nil {
			t.Errorf("%s in place of %s was accepted", mistake[1], mistake[0])
		}
	}
}
