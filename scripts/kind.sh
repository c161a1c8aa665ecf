#!/usr/bin/env bash
# A cluster of kind on this machine: the controller enforcing, a device plugin and a DRA driver with four devices each that are not there. One of each
# breaks: the DRA device is tainted, and both pods move.
#
# usage: kind.sh [up|break|down]     up (default) does everything; break breaks the devices that the pods now hold; down deletes the cluster
#
# Needs docker or podman, kind 0.33 or newer, kubectl and Go. KIND_EXPERIMENTAL_PROVIDER=podman asks for podman where both are there, as with kind itself.
# CI cannot run it: it needs a container engine and images from the network. It is kept thin over what CI does run: the image (tests/image), the overlay
# (tests/packaging, tests/cluster/install), plugin, driver and stories (tests/cluster/node, tests/cluster/incluster).
set -euo pipefail
cd "$(dirname "$0")/.."
name=device-health
node=$name-control-plane
image=localhost/device-health-controller:kind
# Source: kind's release notes, v0.33.0. From 1.36 on the kubelet reports health without a feature gate; before 1.36.3 DeviceTaintRules can stop the scheduler.
node_image=kindest/node:v1.37.0@sha256:a1ed56cfb0e7b93589bdf97c8cd566405a265939e3620fc4f5de89adff580ae5
folder=/var/lib/devices
cdi=/var/run/cdi # one of those that containerd reads
kubectl=(kubectl --context "kind-$name")

engine=${KIND_EXPERIMENTAL_PROVIDER:-}
[[ -n $engine ]] || engine=$(command -v docker > /dev/null && echo docker || echo podman)
[[ $engine == docker || $engine == podman ]] || { echo "kind.sh works with docker or podman, not with '$engine'" >&2; exit 1; }
export KIND_EXPERIMENTAL_PROVIDER=$engine

need() {
  local tool
  for tool in "$@"; do
    command -v "$tool" > /dev/null || { echo "kind.sh needs $tool" >&2; exit 1; }
  done
}

exists() { kind get clusters 2> /dev/null | grep -x "$name" > /dev/null; }
on_node() { "$engine" exec "$node" "$@"; }

# Name and device of the app's pod that is not on its way out; nothing until the kubelet has said which device.
held() {
  # shellcheck disable=SC2016 # it is the template's own variable
  "${kubectl[@]}" --namespace default get pods --selector "app=$1" --output go-template='{{range .items}}{{if not .metadata.deletionTimestamp}}{{$pod := .metadata.name}}{{range .status.containerStatuses}}{{range .allocatedResourcesStatus}}{{range .resources}}{{$pod}} {{.resourceID}}{{"\n"}}{{end}}{{end}}{{end}}{{end}}{{end}}'
}

# The kubelet names a DRA device by its CDI device, which this driver calls CLAIM-DEVICE.
break_device() {
  local app=$1 file=$2 pod="" id="" tries
  for ((tries = 0; tries < 60; ++tries)); do
    read -r pod id < <(held "$app") && break
    sleep 1
  done
  [[ -n $id ]] || { echo "No pod of default/$app holds a device: kind.sh down, and again" >&2; exit 1; }
  id=gpu-${id##*gpu-}
  echo "The pod $pod holds $id of $app's devices, which is said to be broken now"
  on_node sed -i "/\"$id\":/s/Healthy/Unhealthy/" "$folder/$file"
  "${kubectl[@]}" --namespace default wait "pod/$pod" --for=condition=device-health.io/DeviceUnhealthy --timeout=2m
  "${kubectl[@]}" --namespace default wait "pod/$pod" --for=delete --timeout=2m
  "${kubectl[@]}" --namespace default rollout status "deployment/$app" --timeout=2m
}

break_and_watch() {
  break_device inference plugin.json
  break_device training driver.json
  "${kubectl[@]}" get devicetaintrules
  "${kubectl[@]}" --namespace default get pods --selector 'app in (inference, training)' --output wide
  "${kubectl[@]}" --namespace default get events --sort-by=.metadata.creationTimestamp | grep -e Device -e Evict || true
  echo "Again: scripts/kind.sh break (the third within five minutes engages the brake). The end: scripts/kind.sh down"
}

# A program of tests/cluster/cmd, started on the node, whose devices stand in a file there, one a line for sed.
start_on_node() {
  local program=$1 file=$2 devices=$3 built
  shift 3
  built=$(mktemp)
  (cd tests/cluster && CGO_ENABLED=0 GOOS=linux GOARCH=$architecture go build -o "$built" "./cmd/$program")
  on_node sh -c "pkill -x $program; while pgrep -x $program > /dev/null; do sleep 0.1; done" # of an earlier run
  "$engine" cp "$built" "$node:/usr/local/bin/$program"
  rm "$built"
  on_node chmod 755 "/usr/local/bin/$program"
  on_node mkdir -p "$folder" "$cdi"
  "$engine" exec -i "$node" tee "$folder/$file" <<< "$devices" > /dev/null
  "$engine" exec -d "$node" "/usr/local/bin/$program" "$@" -file "$folder/$file"
}

case ${1:-up} in
  up) need "$engine" kind kubectl go ;;
  break)
    need "$engine" kind kubectl
    exists || { echo "There is no cluster $name: kind.sh up" >&2; exit 1; }
    break_and_watch
    exit
    ;;
  down) need "$engine" kind; exec kind delete cluster --name "$name" ;;
  *) echo "usage: kind.sh [up|break|down]" >&2; exit 2 ;;
esac

"$engine" build --tag "$image" .
existed=true
if ! exists; then
  existed=false
  kind create cluster --name "$name" --image "$node_image"
fi
# As an archive: kind load docker-image fails where the engine keeps images in containerd's store, and knows no podman.
archive=$(mktemp)
trap 'rm -f "$archive"' EXIT
"$engine" save --output "$archive" "$image"
kind load image-archive "$archive" --name "$name"

case $(on_node uname -m) in # this machine may be a Mac, the node is not
  x86_64) architecture=amd64 ;;
  aarch64) architecture=arm64 ;;
  *) echo "kind.sh does not know the node's machine" >&2; exit 1 ;;
esac
start_on_node device-plugin plugin.json '{
"gpu-3":"Healthy",
"gpu-2":"Healthy",
"gpu-1":"Healthy",
"gpu-0":"Healthy"
}' -resource example.com/gpu -socket gpu.sock
start_on_node dra-driver driver.json '{"Devices":{
"gpu-3":{"Health":"Healthy"},
"gpu-2":{"Health":"Healthy"},
"gpu-1":{"Health":"Healthy"},
"gpu-0":{"Health":"Healthy"}
}}' -driver gpu.example.com -node "$node" -cdi "$cdi" -kubeconfig /etc/kubernetes/admin.conf

"${kubectl[@]}" apply --server-side -k manifests/overlays/kind
if $existed; then # the image has changed under the same name
  "${kubectl[@]}" --namespace device-health-system rollout restart deployment/device-health-controller
fi
"${kubectl[@]}" --namespace device-health-system rollout status deployment/device-health-controller --timeout=2m
for app in inference training; do
  "${kubectl[@]}" --namespace default rollout status "deployment/$app" --timeout=2m
done
break_and_watch
