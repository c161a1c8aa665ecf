#!/usr/bin/env bash
# Form and clang-tidy over every C++ file of ours.
#
# usage: lint.sh [format|tidy|fix]   (default: format, then tidy; fix rewrites files in the project's format)
set -euo pipefail
cd "$(dirname "$0")/.."

folders=(k8s-client src reconcilers simulator tests bench)
mapfile -t files < <(git ls-files --cached --others --exclude-standard -- "${folders[@]}" | grep -E '\.(cc|h)$')
[[ ${#files[@]} -gt 0 ]] || { echo "lint: no files" >&2; exit 1; }

format() { printf '%s\0' "${files[@]}" | xargs -0 clang-format-19 "$@"; }

tidy() {
  cmake --preset tidy >/dev/null
  # cpprestsdk's headers do not compile as C++23 with clang; the preset has no such target.
  run-clang-tidy-19 -quiet -j "$(nproc)" -p build/tidy \
    "$PWD/(k8s-client|src|reconcilers|simulator|tests|bench)/.*\.cc$" >build/tidy/tidy.log 2>&1 ||
    { grep -E '(warning|error|note):|^ +[0-9]+ \||^ +\|' build/tidy/tidy.log | head -n 200; return 1; }
}

case ${1:-both} in
  format) format --dry-run --Werror ;;
  tidy) tidy ;;
  fix) format -i ;;
  both) format --dry-run --Werror && tidy ;;
  *) echo "usage: lint.sh [format|tidy|fix]" >&2; exit 2 ;;
esac
