package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"device-health.io/controller/tests/cluster/realcluster"
)

func TestFixturesAreCurrent(t *testing.T) {
	files, err := fixtures()
	if err != nil {
		t.Fatal(err)
	}
	folder, err := realcluster.RepositoryFile("tests/fixtures/protobuf")
	if err != nil {
		t.Fatal(err)
	}
	for name, wanted := range files {
		found, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || !bytes.Equal(found, wanted) {
			t.Errorf("tests/fixtures/protobuf/%s is not what the encoders make (%v): go run ./cmd/encodings", name, err)
		}
	}
}
