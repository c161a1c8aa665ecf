// Package stage is the place of one story: a Namespace, nodes without machines, the kubelet that the suite plays for them, the workloads of the
// story, and what became of every pod. It knows nothing of who remediates: it reads the API server, and writes to what it made itself.
package stage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// RunLabel is on everything that a run makes; its value names the run. The nodes carry a taint of the same key.
const RunLabel = "device-health-conformance/run"

// Settings of a run, the same for all its stories.
type Settings struct {
	Client kubernetes.Interface
	Run    string // the end of every name
	Domain string // of drivers and resources: what tells the remediator that they are its own
	DRA    bool   // stories of devices that claims allocate may be told
	Plugin bool   // stories of devices that a device plugin advertises may be told
	Image  string // of the pods, which nobody pulls
	// Version that the kubelets report: the API server's.
	Version string

	ReactWithin   time.Duration // what has to be done about a bad device is done by then
	RecoverWithin time.Duration // a device that is well again is used again by then
	Settle        time.Duration // how long after the reaction something wrong may still come
	Blip          time.Duration // a fault that is over by then is no reason to act

	OptOutKey, OptOutValue string // an annotation of pods that the remediator leaves alone; empty: it has none
	RestartCommand         string // restarts the remediator; empty: nobody can
}

// Status is how a story ended.
type Status string

const (
	Passed        Status = "passed"
	Failed        Status = "failed"         // the promise was not kept
	NotApplicable Status = "not applicable" // the cluster or the settings lack what the story needs
	Broken        Status = "error"          // the story could not be told: it says nothing about the remediator
)

// Ending of one story.
type Ending struct {
	Status Status
	Reason string
}

// Stage of one story. Its methods are called from the story's goroutine; those that find that the story cannot go on end it.
type Stage struct {
	Settings
	Name      string
	Namespace string

	ctx     context.Context
	mutex   sync.Mutex
	nodes   map[string]*Node
	sources []*Source
	lives   []*Life
	byUID   map[string]*Life
	pods    cache.Store
	wake    chan struct{}
	// What the kubelet could not do so far, by what that is.
	troubles map[string]error
	control  *Source
}

// Perform tells one story, cleans up behind it, and says how it ended.
func Perform(ctx context.Context, settings Settings, name string, tell func(*Stage)) (ending Ending) {
	s := &Stage{Settings: settings, Name: name, Namespace: "conformance-" + name + "-" + settings.Run, nodes: map[string]*Node{},
		byUID: map[string]*Life{}, troubles: map[string]error{}, wake: make(chan struct{}, 1)}
	var stop context.CancelFunc
	s.ctx, stop = context.WithCancel(ctx)
	var kubelet sync.WaitGroup
	defer func() {
		if problem := recover(); problem != nil {
			ended, ours := problem.(Ending)
			if !ours {
				panic(problem)
			}
			ending = ended
		}
		if ending.Status == Failed && s.troubled() != nil {
			ending = Ending{Broken, fmt.Sprintf("%s; but the suite's own kubelet had trouble: %v", ending.Reason, s.troubled())}
		}
		stop()
		kubelet.Wait()
		s.remove()
	}()
	s.open(&kubelet)
	tell(s)
	return Ending{Status: Passed}
}

func (s *Stage) open(kubelet *sync.WaitGroup) {
	_, err := s.Client.CoreV1().Namespaces().Create(s.ctx, &corev1.Namespace{ObjectMeta: s.meta(s.Namespace)}, metav1.CreateOptions{})
	s.must(err)
	factory := informers.NewSharedInformerFactoryWithOptions(s.Client, 0, informers.WithNamespace(s.Namespace))
	informer := factory.Core().V1().Pods().Informer()
	s.pods = informer.GetStore()
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { s.saw(object.(*corev1.Pod), false) },
		UpdateFunc: func(_, object any) { s.saw(object.(*corev1.Pod), false) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			s.saw(object.(*corev1.Pod), true)
		},
	})
	s.must(err)
	factory.Start(s.ctx.Done())
	factory.WaitForCacheSync(s.ctx.Done())
	kubelet.Go(func() {
		s.runKubelet()
		factory.Shutdown()
	})
	s.Await(s.ReactWithin, "the Namespace has its default service account", func() error {
		_, err := s.Client.CoreV1().ServiceAccounts(s.Namespace).Get(s.ctx, "default", metav1.GetOptions{})
		return err
	})
}

func (s *Stage) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: map[string]string{RunLabel: s.Run}}
}

// Fail ends the story: the promise was not kept.
func (s *Stage) Fail(format string, args ...any) { panic(Ending{Failed, fmt.Sprintf(format, args...)}) }

// Skip ends the story: it cannot be told here.
func (s *Stage) Skip(format string, args ...any) {
	panic(Ending{NotApplicable, fmt.Sprintf(format, args...)})
}

// must ends the story if the API server refuses what the suite needs.
func (s *Stage) must(err error) {
	if err == nil {
		return
	}
	if cause := context.Cause(s.ctx); cause != nil && !errors.Is(err, cause) {
		err = cause
	}
	panic(Ending{Broken, err.Error()})
}

func (s *Stage) troubled() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for what, err := range s.troubles {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// ErrTimeout ends a story that takes too long.
var ErrTimeout = errors.New("the story took longer than --timeout")

const look = 50 * time.Millisecond

// Until waits until check returns nil, at most so long, and returns its last error otherwise.
func (s *Stage) Until(within time.Duration, check func() error) error {
	deadline := time.Now().Add(within)
	for {
		err := check()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		if s.ctx.Err() != nil {
			s.must(fmt.Errorf("%w; it was waiting: %w", context.Cause(s.ctx), err))
		}
		s.Wait(look)
	}
}

// Await is Until that ends the story as failed.
func (s *Stage) Await(within time.Duration, promise string, check func() error) {
	if err := s.Until(within, check); err != nil {
		s.Fail("not within %s: %s: %v", within, promise, err)
	}
}

// prepare waits for what the cluster, not the remediator, has to do: its failure says nothing about the promise.
func (s *Stage) prepare(what string, check func() error) {
	if err := s.Until(setUp, check); err != nil {
		panic(Ending{Broken, fmt.Sprintf("the story could not begin: %s: %v", what, err)})
	}
}

// setUp is how long scheduler and controllers may take for the story's beginning.
const setUp = 30 * time.Second

// Wait lets the cluster go on.
func (s *Stage) Wait(during time.Duration) {
	select {
	case <-s.ctx.Done():
		s.must(context.Cause(s.ctx))
	case <-time.After(during):
	}
}
