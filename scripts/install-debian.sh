#!/usr/bin/env bash
# Installs what a task needs on Debian 12. Does nothing, at once, when everything is there.
#
# usage: install-debian.sh [build|test|lint|cluster|model|image|engine|page|all]...
set -euo pipefail

# The program itself.
build=(g++ make cmake ninja-build pkg-config git ca-certificates
  libboost1.74-dev libssl-dev libsimdjson-dev libprotozero-dev nlohmann-json3-dev libyaml-cpp-dev libspdlog-dev libfmt-dev libre2-dev
  libcli11-dev prometheus-cpp-dev)
# Its tests: libraries, the second transport, clang for sanitizers and fuzzing, Python for the checks.
test=(doctest-dev librapidcheck-dev libcpprest-dev mold openssl binutils clang-19 libclang-rt-19-dev llvm-19
  python3 python3-jsonschema python3-yaml zsh fish)
lint=(clang-19 clang-tidy-19 clang-format-19 python3)
# The real control plane is built from Go modules; Go itself is looked at below. faketime sets the clock of one program.
# runc, for the real node, is the one program of it that needs a C compiler; nsenter and mount start it, ip makes its network.
cluster=(gcc libc6-dev libseccomp-dev pkg-config faketime mount util-linux iproute2 git ca-certificates openssl python3)
# The protocol's model; spin turns it into a C program.
model=(spin gcc libc6-dev python3)
# The image's build stage needs Python; its test a builder and engine without a daemon, and a Debian to build in.
image=(python3 binutils)
engine=(podman runc mmdebstrap binutils python3)
# What becomes a part of the program, or makes it: the image's second build is the one on this machine, and only Debian's newest of all these, as in
# the image, makes the same program.
newest=("${build[@]}" libc6-dev libc6 libgcc-s1 libstdc++6 libstdc++-12-dev g++-12 binutils zlib1g)

# The live page is looked at in a browser; without fonts it would measure boxes.
page=(chromium fonts-dejavu-core python3)

wanted=()
go_wanted=false
newest_wanted=false
for group in "${@:-all}"; do
  case $group in
    build) wanted+=("${build[@]}") ;;
    test) wanted+=("${build[@]}" "${test[@]}") ;;
    lint) wanted+=("${build[@]}" "${test[@]}" "${lint[@]}") ;;
    cluster) wanted+=("${build[@]}" "${test[@]}" "${cluster[@]}"); go_wanted=true ;;
    model) wanted+=("${model[@]}") ;;
    image) wanted+=("${image[@]}") ;;
    engine) wanted+=("${engine[@]}"); newest_wanted=true ;;
    page) wanted+=("${page[@]}") ;;
    all) wanted+=("${build[@]}" "${test[@]}" "${lint[@]}" "${cluster[@]}" "${model[@]}" "${engine[@]}" "${page[@]}"); go_wanted=true; newest_wanted=true ;;
    *) echo "install-debian.sh: no group '$group': build, test, lint, cluster, model, image, engine, page or all" >&2; exit 2 ;;
  esac
done

# Debian 12 has Go 1.19, which cannot fetch a newer toolchain by itself; 1.21 and later can. We ask for 1.23.
go_is_new_enough() {
  local version
  version=$(GOTOOLCHAIN=local go env GOVERSION 2>/dev/null) || return 1
  [[ $version =~ ^go1\.([0-9]+) ]] && ((BASH_REMATCH[1] >= 23))
}

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  echo "This is not Debian: install these yourself, by whatever names they have here:"
  printf '  %s\n' "${wanted[@]}" | sort -u
  exit 0
fi

mapfile -t wanted < <(printf '%s\n' "${wanted[@]}" | sort -u)
mapfile -t missing < <(comm -23 <(printf '%s\n' "${wanted[@]}") \
  <(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "${wanted[@]}" 2>/dev/null | sed -n 's/^installed //p' | sort -u))
if $go_wanted && ! go_is_new_enough; then
  missing+=(golang-1.23-go)
fi
# By the lists of packages that are here; where these are old, the image is built twice instead.
outdated() { apt-get -s install --only-upgrade "${newest[@]}" 2>/dev/null | sed -n 's/^Inst \([^ ]*\) \[.*/\1/p'; }
old=()
if $newest_wanted && [[ ${#missing[@]} -eq 0 ]]; then
  mapfile -t old < <(outdated)
fi
[[ ${#missing[@]} -gt 0 || ${#old[@]} -gt 0 ]] || exit 0

root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "install-debian.sh: not root and no sudo. As root: apt-get install --no-install-recommends ${missing[*]} ${old[*]}" >&2
    exit 1
  fi
  root=(sudo)
fi
as_root() { "${root[@]}" "$@"; }
apt() { as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@"; }

if [[ ${#missing[@]} -gt 0 ]]; then
  echo "Installing Debian packages: ${missing[*]}"
  apt update
fi
if [[ " ${missing[*]} " == *" golang-1.23-go "* ]]; then
  if ! apt-cache show golang-1.23-go >/dev/null 2>&1; then
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Codename: bookworm' 2>/dev/null | head -n 1)
    if [[ -z $mirror ]]; then
      echo "install-debian.sh: no package source of Debian 12 (bookworm) is configured, so its backports cannot be added: install Go 1.23 or later" >&2
      exit 1
    fi
    echo "Adding bookworm-backports of $mirror as a package source, for golang-1.23-go"
    printf 'Types: deb\nURIs: %s\nSuites: bookworm-backports\nComponents: main\nSigned-By: %s\n' \
      "$mirror" /usr/share/keyrings/debian-archive-keyring.gpg |
      as_root tee /etc/apt/sources.list.d/bookworm-backports.sources >/dev/null
    apt update
  fi
fi
if [[ ${#missing[@]} -gt 0 ]]; then
  apt install -y --no-install-recommends "${missing[@]}" >/dev/null
fi
if $newest_wanted; then
  mapfile -t old < <(outdated)
  if [[ ${#old[@]} -gt 0 ]]; then
    echo "Upgrading Debian packages: ${old[*]}"
    apt install -y --no-install-recommends --only-upgrade "${old[@]}" >/dev/null
  fi
fi

if $go_wanted && ! go_is_new_enough; then
  echo "Linking /usr/local/bin/go to Go 1.23 (Debian keeps it out of the PATH)"
  as_root ln -sf /usr/lib/go-1.23/bin/go /usr/local/bin/go
  as_root ln -sf /usr/lib/go-1.23/bin/gofmt /usr/local/bin/gofmt
fi
