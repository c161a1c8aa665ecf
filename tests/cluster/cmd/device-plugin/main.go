// Command device-plugin is a device plugin whose devices a test scripts: a file holds {"ID": "Healthy" | "Unhealthy", ...}, and
// each new content is reported at once.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"log"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const look = 50 * time.Millisecond

type server struct {
	v1beta1.UnimplementedDevicePluginServer
	file string
}

func (s *server) devices() (health map[string]string, err error) {
	text, err := os.ReadFile(s.file)
	if err == nil {
		err = json.Unmarshal(text, &health)
	}
	return health, err
}

func (s *server) GetDevicePluginOptions(context.Context, *v1beta1.Empty) (*v1beta1.DevicePluginOptions, error) {
	return &v1beta1.DevicePluginOptions{}, nil
}

func (s *server) ListAndWatch(_ *v1beta1.Empty, stream v1beta1.DevicePlugin_ListAndWatchServer) error {
	var last map[string]string
	for {
		if now, err := s.devices(); err != nil {
			log.Printf("devices: %v", err)
		} else if last == nil || !maps.Equal(now, last) {
			last = now
			answer := &v1beta1.ListAndWatchResponse{}
			for _, id := range slices.Sorted(maps.Keys(now)) {
				answer.Devices = append(answer.Devices, &v1beta1.Device{ID: id, Health: now[id]})
			}
			if err := stream.Send(answer); err != nil {
				return err
			}
			log.Printf("reported %v", now)
		}
		select {
		case <-stream.Context().Done():
			return nil
		case <-time.After(look):
		}
	}
}

func (s *server) Allocate(_ context.Context, request *v1beta1.AllocateRequest) (*v1beta1.AllocateResponse, error) {
	answer := &v1beta1.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		log.Printf("allocated %v", container.DevicesIds)
		answer.ContainerResponses = append(answer.ContainerResponses, &v1beta1.ContainerAllocateResponse{})
	}
	return answer, nil
}

func main() {
	resource := flag.String("resource", "", "name of the resource")
	file := flag.String("file", "", "the devices and their health")
	socket := flag.String("socket", "", "name of the socket in the kubelet's folder")
	flag.Parse()
	path := filepath.Join(v1beta1.DevicePluginPath, *socket)
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		log.Fatal(err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		log.Fatal(err)
	}
	plugin := grpc.NewServer()
	v1beta1.RegisterDevicePluginServer(plugin, &server{file: *file})
	go func() { log.Fatal(plugin.Serve(listener)) }()
	kubelet, err := grpc.NewClient("unix://"+v1beta1.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_, err = v1beta1.NewRegistrationClient(kubelet).Register(ctx,
		&v1beta1.RegisterRequest{Version: v1beta1.Version, Endpoint: *socket, ResourceName: *resource}, grpc.WaitForReady(true))
	if err != nil {
		log.Fatalf("registering %s: %v", *resource, err)
	}
	log.Printf("registered %s", *resource)
	select {}
}
