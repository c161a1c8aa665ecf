#!/usr/bin/env bash
# A cluster of kind on this machine: the controller enforcing, a device plugin with four devices that are not there, one of them breaks, and a pod moves.
#
# usage: kind.sh [up|break|down]     up (default) does everything; break breaks the device that the pod now holds; down deletes the cluster
#
# Needs docker, kind, kubectl and Go. CI cannot run it: it needs Docker and images from the network. It is kept thin over what CI does run: the image
# (tests/image), the overlay (tests/packaging, tests/cluster/install), the plugin and the story (tests/cluster/node, tests/cluster/incluster).
set -euo pipefail
cd "$(dirname "$0")/.."
name=device-health
node=$name-control-plane
image=localhost/device-health-controller:kind
devices=/var/lib/devices.json
kubectl=(kubectl --context "kind-$name")

need() {
  local tool
  for tool in "$@"; do
    command -v "$tool" > /dev/null || { echo "kind.sh needs $tool" >&2; exit 1; }
  done
}

exists() { kind get clusters 2> /dev/null | grep -x "$name" > /dev/null; }

# Name and device of the pod that is not on its way out; nothing until the kubelet has said which device.
held() {
  # shellcheck disable=SC2016 # it is the template's own variable
  "${kubectl[@]}" --namespace default get pods --selector app=inference --output go-template='{{range .items}}{{if not .metadata.deletionTimestamp}}{{$pod := .metadata.name}}{{range .status.containerStatuses}}{{range .allocatedResourcesStatus}}{{range .resources}}{{$pod}} {{.resourceID}}{{"\n"}}{{end}}{{end}}{{end}}{{end}}{{end}}'
}

break_and_watch() {
  local pod="" id="" tries
  for ((tries = 0; tries < 60; ++tries)); do
    read -r pod id < <(held) && break
    sleep 1
  done
  [[ -n $id ]] || { echo "No pod of default/inference holds a device: kind.sh down, and again" >&2; exit 1; }
  echo "The pod $pod holds $id; its plugin says now that it is broken"
  docker exec "$node" sed -i "s/\"$id\":\"Healthy\"/\"$id\":\"Unhealthy\"/" "$devices"
  "${kubectl[@]}" --namespace default wait "pod/$pod" --for=condition=device-health.io/DeviceUnhealthy --timeout=2m
  "${kubectl[@]}" --namespace default wait "pod/$pod" --for=delete --timeout=2m
  "${kubectl[@]}" --namespace default rollout status deployment/inference --timeout=2m
  "${kubectl[@]}" --namespace default get pods --selector app=inference --output wide
  "${kubectl[@]}" --namespace default get events --sort-by=.metadata.creationTimestamp | grep -e Device -e Evict || true
  echo "Again: scripts/kind.sh break (the third within five minutes engages the brake). The end: scripts/kind.sh down"
}

case ${1:-up} in
  up) need docker kind kubectl go ;;
  break)
    need docker kind kubectl
    exists || { echo "There is no cluster $name: kind.sh up" >&2; exit 1; }
    break_and_watch
    exit
    ;;
  down) need docker kind; exec kind delete cluster --name "$name" ;;
  *) echo "usage: kind.sh [up|break|down]" >&2; exit 2 ;;
esac

docker build --tag "$image" .
existed=true
# The gate is on by default from 1.36; from 1.31 on it is there.
if ! exists; then
  existed=false
  kind create cluster --name "$name" --config - <<'CONFIG'
kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
featureGates: {ResourceHealthStatus: true}
CONFIG
fi
kind load docker-image "$image" --name "$name"

plugin=$(mktemp)
trap 'rm -f "$plugin"' EXIT
architecture=$(docker version --format '{{.Server.Arch}}') # the machine may be a Mac, the node is not
(cd tests/cluster && CGO_ENABLED=0 GOOS=linux GOARCH=$architecture go build -o "$plugin" ./cmd/device-plugin)
docker exec "$node" sh -c 'pkill -x device-plugin; while pgrep -x device-plugin > /dev/null; do sleep 0.1; done' # of an earlier run
docker cp "$plugin" "$node:/usr/local/bin/device-plugin"
docker exec "$node" chmod 755 /usr/local/bin/device-plugin
# One device a line, for sed.
printf '{\n"gpu-3":"Healthy",\n"gpu-2":"Healthy",\n"gpu-1":"Healthy",\n"gpu-0":"Healthy"\n}\n' | docker exec -i "$node" tee "$devices" > /dev/null
docker exec -d "$node" /usr/local/bin/device-plugin -resource example.com/gpu -socket gpu.sock -file "$devices"

"${kubectl[@]}" apply --server-side -k manifests/overlays/kind
if $existed; then # the image has changed under the same name
  "${kubectl[@]}" --namespace device-health-system rollout restart deployment/device-health-controller
fi
"${kubectl[@]}" --namespace device-health-system rollout status deployment/device-health-controller --timeout=2m
"${kubectl[@]}" --namespace default rollout status deployment/inference --timeout=2m
break_and_watch
