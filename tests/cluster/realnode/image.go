package realnode

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"runtime"
)

// Image is in every node's store, and the sandbox's too. Its program is cmd/pod.
const Image = "registry.test/pause:1"

// writeImage writes an archive with one image of one layer with one program.
func writeImage(path, program string) error {
	binary, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	layer, err := archive(map[string][]byte{"pod": binary}, "dev", "proc", "sys", "etc", "tmp")
	if err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": []string{"/pod"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + digest(layer)}},
	})
	if err != nil {
		return err
	}
	name := digest(config) + ".json"
	manifest, err := json.Marshal([]map[string]any{{"Config": name, "RepoTags": []string{Image}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	image, err := archive(map[string][]byte{name: config, "layer.tar": layer, "manifest.json": manifest})
	if err != nil {
		return err
	}
	return os.WriteFile(path, image, 0o644)
}

func archive(files map[string][]byte, folders ...string) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(text))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(text); err != nil {
			return nil, err
		}
	}
	for _, name := range folders {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o777, Typeflag: tar.TypeDir}); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
