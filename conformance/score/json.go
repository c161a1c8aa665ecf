package score

import (
	"encoding/json"
	"fmt"
	"os"
)

// JSON of the report, which Read reads.
func (r Report) JSON() ([]byte, error) {
	text, err := json.MarshalIndent(r, "", "  ")
	return append(text, '\n'), err
}

// Read a report from a file.
func Read(file string) (r Report, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("%s: %w", file, err)
	}
	if len(r.Results) == 0 {
		return r, fmt.Errorf("%s has no results", file)
	}
	return r, nil
}
