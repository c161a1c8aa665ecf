#!/usr/bin/env bash
# The krew manifest of a release, with its version and the checksums of its archives, on standard output.
#
# usage: krew-manifest.sh VERSION REPOSITORY ARCHIVE...
#   REPOSITORY  owner/name on GitHub
#   ARCHIVE     kubectl-device_health-OS-ARCH.tar.gz; a platform without an archive is left out
set -euo pipefail
template="$(dirname "$0")/../manifests/krew/device-health.yaml"

fail() { echo "krew-manifest: $*" >&2; exit 1; }
[[ $# -ge 3 ]] || fail "usage: krew-manifest.sh VERSION REPOSITORY ARCHIVE..."
version=${1#v} repository=$2
shift 2
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+ ]] || fail "VERSION is not like 1.2.3: $version"
[[ $repository == */* ]] || fail "REPOSITORY is not OWNER/NAME: $repository"

filled=$(sed -e "s|@VERSION@|$version|g" -e "s|@REPOSITORY@|$repository|g" "$template")
for archive in "$@"; do
  name=$(basename "$archive")
  [[ $name =~ ^kubectl-device_health-([a-z0-9]+)-([a-z0-9]+)\.tar\.gz$ ]] || fail "$name is not kubectl-device_health-OS-ARCH.tar.gz"
  place="@SHA256_${BASH_REMATCH[1]}_${BASH_REMATCH[2]}@"
  [[ $filled == *"$place"* ]] || fail "the manifest has no platform for $name"
  [[ -f $archive ]] || fail "there is no $archive"
  grep -qx kubectl-device_health <<<"$(tar -tzf "$archive")" || fail "$name holds no kubectl-device_health"
  filled=${filled//$place/$(sha256sum "$archive" | cut -d' ' -f1)}
done
# A platform begins with its selector; one without a checksum is not released.
awk '/^    - selector:/ { flush() } { block = block $0 "\n" }
     END { flush() }
     function flush() { if (block !~ /@SHA256_/) printf "%s", block; block = "" }' <<<"$filled"
