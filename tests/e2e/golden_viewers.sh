#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
#
# The golden files, empty and hostile ones among them, as the viewers' own code reads them.
set -eu
cd "$(dirname "$0")/../.."

consumers=tests/e2e/consumers
cache=${CONSUMERS:-$(dirname "$BUILD")/build/consumers}
command -v npm >/dev/null || { echo "npm is not installed"; exit 77; }
if ! node=$($consumers/install.sh "$cache"); then
	echo "the viewers cannot be installed (no network?)"
	exit 77
fi
"$node" $consumers/check_cpuprofile.mjs "$cache" tests/golden/expected/*.cpuprofile
firefox=$(find tests/golden/expected -name '*.json' ! -name '*.trace.json' | sort)
# shellcheck disable=SC2086 # names without blanks, all our own
$consumers/check_firefox.sh "$cache" $firefox
"$node" $consumers/check_trace.mjs "$cache" tests/golden/expected/*.trace.json

# and they can say no: a sample of a node that is not there, a file without marker schema
sed 's/"samples":\[4,/"samples":[99,/' tests/golden/expected/recursion.cpuprofile >"$SCRATCH/bad.cpuprofile"
if "$node" $consumers/check_cpuprofile.mjs "$cache" "$SCRATCH/bad.cpuprofile"; then
	echo "check_cpuprofile.mjs accepts a broken file"
	exit 1
fi
sed 's/"markerSchema":/"noSchema":/' tests/golden/expected/recursion.json >"$SCRATCH/bad.json"
if $consumers/check_firefox.sh "$cache" "$SCRATCH/bad.json"; then
	echo "check_firefox.sh accepts a broken file"
	exit 1
fi
sed 's/"timeDeltas":\[1000,/"timeDeltas":[1000000,/' tests/golden/expected/recursion.trace.json >"$SCRATCH/bad.trace.json"
if "$node" $consumers/check_trace.mjs "$cache" "$SCRATCH/bad.trace.json"; then
	echo "check_trace.mjs accepts a broken file"
	exit 1
fi
