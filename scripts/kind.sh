#!/usr/bin/env bash
# A cluster of kind on this machine: the controller enforcing, a device plugin with four devices that are not there, one of them breaks, and a pod moves.
#
# usage: kind.sh [up|break|down]     up (default) does everything; break breaks one more device; down deletes the cluster
#
# Needs docker, kind, kubectl and Go. CI cannot run it: it needs Docker and images from the network. It is kept thin over what CI does run: the image
# (tests/image), the overlay (tests/packaging, tests/cluster/install), the plugin and the story (tests/cluster/node).
set -euo pipefail
cd "$(dirname "$0")/.."
name=device-health
node=$name-control-plane
image=localhost/device-health-controller:kind
kubectl=(kubectl --context "kind-$name")

break_device() {
  local id
  id=$(docker exec "$node" sed -n 's/.*"\(gpu-[0-9]\)":"Healthy".*/\1/p' /var/lib/devices.json | tail -n 1) # one device a line
  [[ -n $id ]] || { echo "All four devices are broken: kind.sh down, and again" >&2; exit 1; }
  echo "Breaking $id, as its plugin would report it"
  docker exec "$node" sed -i "s/\"$id\":\"Healthy\"/\"$id\":\"Unhealthy\"/" /var/lib/devices.json
}

case ${1:-up} in
  up) ;;
  break) break_device; exit ;;
  down) exec kind delete cluster --name "$name" ;;
  *) sed -n 's/^# usage: //p' "$0" >&2; exit 2 ;;
esac

for tool in docker kind kubectl go; do
  command -v "$tool" > /dev/null || { echo "make kind needs $tool" >&2; exit 1; }
done
docker build --tag "$image" .
# On by default from 1.36; older node images need the gate.
kind get clusters | grep -qx "$name" || kind create cluster --name "$name" --config - <<'CONFIG'
kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
featureGates: {ResourceHealthStatus: true}
CONFIG
kind load docker-image "$image" --name "$name"

plugin=$(mktemp)
trap 'rm -f "$plugin"' EXIT
(cd tests/cluster && CGO_ENABLED=0 go build -o "$plugin" ./cmd/device-plugin)
docker cp "$plugin" "$node:/usr/local/bin/device-plugin"
printf '{\n"gpu-3":"Healthy",\n"gpu-2":"Healthy",\n"gpu-1":"Healthy",\n"gpu-0":"Healthy"\n}\n' | docker exec -i "$node" tee /var/lib/devices.json > /dev/null
docker exec "$node" chmod 755 /usr/local/bin/device-plugin
docker exec -d "$node" /usr/local/bin/device-plugin -resource example.com/gpu -socket gpu.sock -file /var/lib/devices.json

"${kubectl[@]}" apply --server-side -k manifests/overlays/kind
"${kubectl[@]}" -n device-health-system rollout status deployment/device-health-controller --timeout=2m
"${kubectl[@]}" rollout status deployment/inference --timeout=2m
held=$("${kubectl[@]}" get pods -l app=inference -o jsonpath='{.items[0].status.containerStatuses[0].allocatedResourcesStatus[0].resources[0].resourceID}')
echo "The pod holds $held; breaking it"
docker exec "$node" sed -i "s/\"$held\":\"Healthy\"/\"$held\":\"Unhealthy\"/" /var/lib/devices.json
pod=$("${kubectl[@]}" get pods -l app=inference -o name)
"${kubectl[@]}" wait "$pod" --for=condition=device-health.io/DeviceUnhealthy --timeout=1m
"${kubectl[@]}" wait "$pod" --for=delete --timeout=1m
"${kubectl[@]}" rollout status deployment/inference --timeout=1m
"${kubectl[@]}" get pods -l app=inference -o wide
"${kubectl[@]}" get events --sort-by=.metadata.creationTimestamp | grep -e Device -e Evict
echo "Again: scripts/kind.sh break. The end: scripts/kind.sh down"
