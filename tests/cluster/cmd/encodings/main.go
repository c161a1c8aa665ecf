// Command encodings writes the fixtures of Kubernetes' protobuf (tests/fixtures/protobuf): what the API server's own
// encoders make of the recorded objects, and of objects that have everything set, in both of its formats.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"device-health.io/controller/tests/cluster/realcluster"
)

func main() {
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write() error {
	files, err := fixtures()
	if err != nil {
		return err
	}
	folder, err := realcluster.RepositoryFile("tests/fixtures/protobuf")
	if err != nil {
		return err
	}
	for name, bytes := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, bytes, 0o644); err != nil {
			return err
		}
	}
	return nil
}
