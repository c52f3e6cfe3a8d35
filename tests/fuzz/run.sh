#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# run.sh [DIR [SECONDS]]: every fuzzer in DIR (fuzz/ of the build) for so long (10 s, which is what the
# tests do), from DIR's seeds and what earlier runs learnt.
#
# A crash, a report of a sanitizer, an input that takes 20 s or 2 GB fails; the input stays in
# DIR/found. What a run learnt stays in DIR/corpus, so that the next one goes on from there.
set -euo pipefail

dir=${1:-${BUILD:-build}/fuzz} seconds=${2:-10}
status=0 ran=0
mkdir -p "$dir/found"
for fuzzer in "$dir"/fuzz_*; do
	[ -x "$fuzzer" ] && [ -f "$fuzzer" ] || continue
	name=$(basename "$fuzzer")
	log=$dir/$name.log
	mkdir -p "$dir/corpus/$name"
	ran=$((ran + 1))
	# AddressSanitizer of clang 14 does not start where the kernel lays a program out in its shadow
	if setarch -R "$fuzzer" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 \
		-max_len=65536 -print_final_stats=1 \
		-artifact_prefix="$dir/found/$name-" "$dir/corpus/$name" "$dir/seeds" >"$log" 2>&1; then
		echo "ok    $name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs in $seconds s," \
			"$(find "$dir/corpus/$name" -type f | wc -l) kept"
	else
		status=1
		echo "FAIL  $name: see $dir/found and $log"
		grep -v '^#' "$log" | tail -n 60
	fi
done
[ "$ran" -gt 0 ] || { echo "no fuzzer in $dir" >&2; exit 1; }
exit $status
