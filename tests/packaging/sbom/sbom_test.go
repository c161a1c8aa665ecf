// Package sbom reads what image/sbom.py writes with the SPDX project's own library. That it says what is in the image is for tests/image.
package sbom

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	spdx "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdxlib"
)

const document = `
import pathlib, sys
sys.path.insert(0, "image")
import sbom
sys.stdout.write(sbom.document(pathlib.Path(sys.argv[1]), {"libc6", "libssl3", "libstdc++6"}, 1700000000))
`

func write(t *testing.T) []byte {
	t.Helper()
	binary := os.Getenv("DHC_BINARY")
	if binary == "" {
		t.Fatal("DHC_BINARY names no program")
	}
	command := exec.Command("/usr/bin/python3", "-B", "-c", document, binary)
	command.Dir = "../../.."
	text, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %v", err, string(err.(*exec.ExitError).Stderr))
	}
	return text
}

func TestTheSBOMIsAValidSPDXDocumentOfTheProgramAndItsLibraries(t *testing.T) {
	read, err := spdx.Read(bytes.NewReader(write(t)))
	if err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(read); err != nil {
		t.Error(err)
	}
	described, err := spdxlib.GetDescribedPackageIDs(read)
	if err != nil || len(described) != 1 || described[0] != "device-health-controller" {
		t.Errorf("describes %v: %v", described, err)
	}
	ids := map[common.ElementID]bool{"DOCUMENT": true}
	for _, each := range read.Packages {
		ids[each.PackageSPDXIdentifier] = true
		if each.PackageName == "device-health-controller" {
			continue
		}
		references := each.PackageExternalReferences
		if each.PackageVersion == "" || len(references) != 1 || !strings.HasPrefix(references[0].Locator, "pkg:deb/debian/") {
			t.Errorf("%s has no version or no purl: %+v", each.PackageName, each)
		}
	}
	for _, relation := range read.Relationships {
		if !ids[relation.RefA.ElementRefID] || !ids[relation.RefB.ElementRefID] {
			t.Errorf("%v %s %v: one of them is not there", relation.RefA, relation.Relationship, relation.RefB)
		}
	}
	if created := read.CreationInfo.Created; created != "2023-11-14T22:13:20Z" {
		t.Errorf("created %s: not the time of the sources", created)
	}
}

func TestTheSameInputsGiveTheSameSBOM(t *testing.T) {
	if !bytes.Equal(write(t), write(t)) {
		t.Error("two SBOMs of one program differ")
	}
}
