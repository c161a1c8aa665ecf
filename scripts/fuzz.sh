#!/usr/bin/env bash
# Builds every fuzz target and runs each for a while, from its seed corpus. New inputs go to build/fuzz/corpus.
#
# usage: fuzz.sh [SECONDS]   (default: 60 for each target)
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}

shopt -s nullglob
sources=(tests/fuzz/*.cc)
((${#sources[@]} >= 3)) || { echo "fuzz: ${#sources[@]} targets in tests/fuzz, 3 expected" >&2; exit 1; }

cmake --preset asan-ubsan >/dev/null
cmake --build --preset asan-ubsan --target fuzzers
passed=0 failed=0
for source in "${sources[@]}"; do
  name=$(basename "$source" .cc)
  seeds=(tests/fuzz/corpus/"$name"/*)
  if ((${#seeds[@]} == 0)); then
    echo "fuzz: $name has no seeds in tests/fuzz/corpus/$name" >&2
    failed=$((failed + 1))
    continue
  fi
  mkdir -p "build/fuzz/corpus/$name" "build/fuzz/findings"
  echo "fuzz: $name for $seconds s, ${#seeds[@]} seeds"
  if "build/asan-ubsan/$name" -max_total_time="$seconds" -rss_limit_mb=1024 -timeout=10 -print_final_stats=1 -verbosity=0 \
    -artifact_prefix="build/fuzz/findings/$name-" "build/fuzz/corpus/$name" "tests/fuzz/corpus/$name" \
    >"build/fuzz/$name.log" 2>&1; then
    grep -E 'number_of_executed_units' "build/fuzz/$name.log" || true
    passed=$((passed + 1))
  else
    tail -n 40 "build/fuzz/$name.log"
    failed=$((failed + 1))
  fi
done
echo "$passed passed, $failed failed"
((failed == 0))
