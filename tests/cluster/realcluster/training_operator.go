package realcluster

import (
	"fmt"
	"path/filepath"
)

// Of training-operator run the controllers of two kinds, under a main of ours: ../owner-controllers/training-operator says why.
const (
	trainingOperator        = "training-operator"
	trainingOperatorPackage = "ownercontrollers/training-operator"
)

var trainingOperatorKinds = copied{"github.com/kubeflow/training-operator", "manifests/base/crds"}

func (cp *ControlPlane) startTrainingOperator() error {
	kinds := cp.Binaries[trainingOperator+"-crds"]
	if err := cp.startKinds(filepath.Join(kinds, "kubeflow.org_pytorchjobs.yaml"), filepath.Join(kinds, "kubeflow.org_tfjobs.yaml")); err != nil {
		return fmt.Errorf("the kinds of %s: %w", trainingOperator, err)
	}
	return cp.startManager(trainingOperator)
}
