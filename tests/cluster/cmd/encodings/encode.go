package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"device-health.io/controller/tests/cluster/realcluster"
)

var (
	asJSON     = jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, jsonserializer.SerializerOptions{})
	asProtobuf = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
)

// fixtures are all files under tests/fixtures/protobuf, by name.
func fixtures() (map[string][]byte, error) {
	files := map[string][]byte{}
	folder, err := realcluster.RepositoryFile("tests/fixtures")
	if err != nil {
		return nil, err
	}
	for _, part := range []struct {
		glob   string
		encode func([]byte) ([]byte, error)
	}{{"recordings/list/*.json", recode}, {"recordings/status/*.json", recode}, {"recordings/watch/*.ndjson", recodeWatch}, {"bench/*.json", recode}} {
		names, err := filepath.Glob(filepath.Join(folder, part.glob))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			recorded, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			encoded, err := part.encode(recorded)
			if runtime.IsMissingKind(err) {
				encoded, err = recodeWatch(recorded) // an error inside a watch
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			relative, _ := filepath.Rel(folder, name)
			relative = strings.TrimPrefix(relative, "recordings/")
			files[strings.TrimSuffix(relative, filepath.Ext(relative))+".pb"] = encoded
		}
	}
	for name, list := range filledLists() {
		kinds, _, err := scheme.Scheme.ObjectKinds(list)
		if err != nil {
			return nil, err
		}
		list.GetObjectKind().SetGroupVersionKind(kinds[0])
		if files["filled/"+name+".json"], err = runtime.Encode(asJSON, list); err != nil {
			return nil, err
		}
		if files["filled/"+name+".pb"], err = runtime.Encode(asProtobuf, list); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// recode is the object in protobuf, as the API server answers.
func recode(text []byte) ([]byte, error) {
	object, _, err := asJSON.Decode(text, nil, nil)
	if err != nil {
		return nil, err
	}
	return runtime.Encode(asProtobuf, object)
}

// recodeWatch is the stream in protobuf: frames of WatchEvents without an envelope, their objects in one.
func recodeWatch(stream []byte) ([]byte, error) {
	var out bytes.Buffer
	frames := protobuf.LengthDelimitedFramer.NewFrameWriter(&out)
	for _, line := range bytes.Split(bytes.TrimSpace(stream), []byte("\n")) {
		var event struct {
			Type   string
			Object json.RawMessage
		}
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, err
		}
		object, err := recode(event.Object)
		if err != nil {
			return nil, err
		}
		frame, err := (&metav1.WatchEvent{Type: event.Type, Object: runtime.RawExtension{Raw: object}}).Marshal()
		if err != nil {
			return nil, err
		}
		if _, err := frames.Write(frame); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}
