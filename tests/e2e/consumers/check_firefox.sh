#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# check_firefox.sh DIR FILE…: does the Firefox Profiler's own code, installed in DIR by install.sh,
# load these profiles, and does it see in them what they say? The threads, their CPU times and, for
# the busiest threads, the samples of their call trees are compared with what check_structure.py
# counts in the file.
#
# profiler-cli leaves a daemon behind: it gets a session directory of its own and is always stopped.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
[ $# -ge 2 ] || { echo "usage: check_firefox.sh DIR FILE…" >&2; exit 2; }
dir=$1
shift
node=$("$here/install.sh" "$dir")
cli=$dir/node_modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js
PROFILER_CLI_SESSION_DIR=$(mktemp -d)
export PROFILER_CLI_SESSION_DIR

finish() {
	"$node" "$cli" stop --all >/dev/null 2>&1 || :
	rm -rf "$PROFILER_CLI_SESSION_DIR"
}
trap finish EXIT
trap 'exit 130' INT TERM

# Its daemon has a time limit of its own for starting, which a busy machine can exceed: that says
# nothing about the file, and such a load is tried again.
load() {
	for _ in $(seq 40); do
		"$node" "$cli" load "$1" >"$PROFILER_CLI_SESSION_DIR/load.log" 2>&1 && return 0
		grep -q "still starting" "$PROFILER_CLI_SESSION_DIR/load.log" || return 1
		"$node" "$cli" stop --all >/dev/null 2>&1 || :
	done
	return 1
}

status=0
for file; do
	load "$file" || {
		echo "$file: does not load" >&2
		cat "$PROFILER_CLI_SESSION_DIR/load.log" >&2
		status=1
		continue
	}
	python3 -B "$here/compare_firefox.py" "$file" "$node" "$cli" || status=1
	"$node" "$cli" stop --all >/dev/null
done
exit $status
