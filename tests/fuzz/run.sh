#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# run.sh TARGET…      BUILD (build), FUZZ_SECONDS (1, of each)
#
# Runs fuzz targets from what they found in earlier runs and the seeds. Ends with 1 at the first crash,
# leak, sanitizer report, input that takes too long or too much memory, and says where the input is;
# the program with that path as its argument does it again.
#
# A death inside libdw is reported and counted, and the target started again: see fuzz_dwarf.c. Of the
# seeds it may not die.
set -uo pipefail

dir=${BUILD:-build}/fuzz
seconds=${FUZZ_SECONDS:-1}
died_in_libdw=75
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}

fuzz() { # TARGET SECONDS ARGUMENT…
	local target=$1 limit=$2
	shift 2
	# AddressSanitizer of clang 14 does not always start where the kernel places programs at random.
	# 77, by which libFuzzer ends otherwise, means elsewhere that a test was skipped
	setarch -R "$dir/$target" -max_total_time="$limit" -timeout=100 -rss_limit_mb=2048 -max_len=65536 \
		-error_exitcode=1 -timeout_exitcode=1 -verbosity=0 \
		-artifact_prefix="$dir/crashes/$target-" "$@" </dev/null
}

failed() { # TARGET
	echo "$1: FAILED; the input is the last of these:"
	find "$dir/crashes" -name "$1-*" -printf '%T@ %p\n' | sort -n | cut -d' ' -f2- | tail -n 3
	exit 1
}

[ $# -gt 0 ] || { echo "usage: $0 TARGET…" >&2; exit 2; }
for target in "$@"; do
	corpus=$dir/corpus/$target
	mkdir -p "$corpus" "$dir/crashes" || exit 1
	fuzz "$target" 0 -runs=0 "$dir/seeds" || failed "$target"
	deaths=0 end=$((SECONDS + seconds))
	while left=$((end - SECONDS)) && [ $left -gt 0 ]; do
		fuzz "$target" $left "$corpus" "$dir/seeds"
		status=$?
		[ $status -eq 0 ] && continue
		[ $status -eq $died_in_libdw ] || failed "$target"
		deaths=$((deaths + 1))
	done
	echo "$target: $seconds s, $(find "$corpus" -type f | wc -l) inputs kept, $deaths deaths inside libdw"
done
