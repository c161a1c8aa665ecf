#!/usr/bin/env bash
# Form and clang-tidy over the C++ files of ours.
#
# usage: lint.sh [format|tidy|quick|changed|fix]   (default: format, then tidy)
#   tidy     clang-tidy over every file
#   quick    what finds mistakes and costs little (bugprone and performance, without the analyzer), over the program and the simulator in the batches in which they
#            are compiled
#   changed  clang-tidy over what is not as it was at the last tag, committed or not; without a tag, at the commit of scripts/released
#   fix      rewrites files in the project's format
set -euo pipefail
cd "$(dirname "$0")/.."

folders=(base k8s-client domain reconcilers src simulator tests bench)
mapfile -t files < <(git ls-files --cached --others --exclude-standard -- "${folders[@]}" | grep -E '\.(cc|h)$')
[[ ${#files[@]} -gt 0 ]] || { echo "lint: no files" >&2; exit 1; }

format() { printf '%s\0' "${files[@]}" | xargs -0 clang-format-19 "$@"; }

# run-clang-tidy over the sources that are named, or over all of them.
tidy() {
  cmake --preset tidy >/dev/null
  local sources=("$PWD/(base|k8s-client|domain|reconcilers|src|simulator|tests|bench)/.*\.cc$") file
  if [[ $# -gt 0 ]]; then
    sources=()
    for file in "$@"; do sources+=("$PWD/${file//./\\.}$"); done
  fi
  # cpprestsdk's headers do not compile as C++23 with clang; the preset has no such target.
  run-clang-tidy-19 -quiet -j "$(nproc)" -p build/tidy "${sources[@]}" >build/tidy/tidy.log 2>&1 ||
    { grep -E '(warning|error|note):|^ +[0-9]+ \||^ +\|' build/tidy/tidy.log | head -n 200; return 1; }
}

# A batch includes its sources.
quick() {
  cmake --preset tidy-batches >/dev/null
  local log=build/tidy-batches/tidy.log code=0 batches
  run-clang-tidy-19 -quiet -j "$(nproc)" -p build/tidy-batches -config-file .clang-tidy -checks='-clang-analyzer-*,-bugprone-suspicious-include,-google-*,-misc-*,-modernize-*,-readability-*' \
    '/(?!dhc_simulator_fast)[^/]+[.]dir/Unity/unity_[0-9]+_cxx\.cxx$' >"$log" 2>&1 || code=1
  [[ $code -eq 0 ]] || grep -E '(warning|error|note):|^ +[0-9]+ \||^ +\|' "$log" | head -n 200
  batches=$(grep -c 'clang-tidy-19 .*unity_' "$log" || true)
  echo "tidy: $batches batches looked at for mistakes"
  [[ $code -eq 0 && $batches -gt 0 ]]
}

# The sources in which clang-tidy sees all that changed since a commit. What was only renamed is as it was. A header is seen through its own source, else
# through the first that includes it; the checks themselves, when they change, through everything.
changed_since() {
  local status path header
  if ! git diff --quiet "$1" -- .clang-tidy; then
    printf '%s\n' "${files[@]}" | grep '\.cc$'
    return
  fi
  {
    git diff --name-status --find-renames=100% --diff-filter=d "$1" -- "${folders[@]}" &&
      git ls-files --others --exclude-standard -- "${folders[@]}" | sed 's/^/A\t/'
  } | while IFS=$'\t' read -r status path _; do
    [[ $status != R100 ]] || continue
    case $path in
      *.cc) echo "$path" ;;
      *.h)
        header=${path%.h}.cc
        [[ -f $header ]] || header=$(grep -rlF --include='*.cc' "/${path##*/}\"" "${folders[@]}" | sort | head -n 1) || true
        [[ -n $header ]] && echo "$header" || echo "lint: no source includes $path" >&2
        ;;
    esac
  done | sort -u
}

changed() {
  local tag list sources
  # 0.1.0 was released without a tag: its commit stands in scripts/released until there is one.
  tag=$(git describe --tags --abbrev=0 2>/dev/null) || tag=$(<scripts/released)
  git rev-parse --quiet --verify "$tag^{commit}" >/dev/null || { echo "lint: the commit $tag is not in this clone: fetch the whole history" >&2; return 1; }
  list=$(changed_since "$tag")
  mapfile -t sources < <(printf '%s' "${list:+$list$'\n'}")
  echo "tidy: ${#sources[@]} sources to look at since $tag"
  [[ ${#sources[@]} -eq 0 ]] || tidy "${sources[@]}"
}

case ${1:-both} in
  format) format --dry-run --Werror ;;
  tidy) tidy ;;
  quick) quick ;;
  changed) changed ;;
  fix) format -i ;;
  both) format --dry-run --Werror && tidy ;;
  *) echo "usage: lint.sh [format|tidy|quick|changed|fix]" >&2; exit 2 ;;
esac
