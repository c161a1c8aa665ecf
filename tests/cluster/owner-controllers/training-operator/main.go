// Command training-operator runs the operator's controllers of TFJobs and PyTorchJobs. The operator's own main would do, if it did not wait for the
// certificate of its webhooks in a fixed folder of /tmp, where another run's may be. The webhooks validate and change nothing.
package main

import (
	"flag"
	"os"

	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/kubeflow/training-operator/pkg/config"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
	"github.com/kubeflow/training-operator/pkg/controller.v1/pytorch"
	"github.com/kubeflow/training-operator/pkg/controller.v1/tensorflow"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	schedulerplugins "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

func main() {
	flag.Parse() // --kubeconfig is controller-runtime's
	ctrl.SetLogger(zap.New())
	if err := run(); err != nil {
		ctrl.Log.Error(err, "ended")
		os.Exit(1)
	}
}

func run() error {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(kubeflow.AddToScheme(scheme))
	utilruntime.Must(volcano.AddToScheme(scheme))
	utilruntime.Must(schedulerplugins.AddToScheme(scheme))
	// As the operator's own flags have them.
	config.Config.PyTorchInitContainerImage = config.PyTorchInitContainerImageDefault
	config.Config.PyTorchInitContainerTemplateFile = config.PyTorchInitContainerTemplateFileDefault
	config.Config.PyTorchInitContainerMaxTries = config.PyTorchInitContainerMaxTriesDefault
	access, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	// As the control plane's own controllers: its default of 20 requests a second is half a minute for the jobs of one story.
	access.QPS, access.Burst = 300, 500
	manager, err := ctrl.NewManager(access, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	alone := common.GenNonGangSchedulerSetupFunc()
	if err := tensorflow.NewReconciler(manager, alone).SetupWithManager(manager, 1); err != nil {
		return err
	}
	if err := pytorch.NewReconciler(manager, alone).SetupWithManager(manager, 1); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}
