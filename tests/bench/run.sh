#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# run.sh BUILD [SECTION…]: measures what the profiler in BUILD costs, beside perf, for `make bench`.
#
# QUICK=1 takes about six minutes instead of fourteen, with wider error bars. SECTION: those alone, see the
# end of bench.py.
# Exits 0 whatever the figures are, and 1 if something could not be measured.
set -euo pipefail

[ $# -ge 1 ] || {
	echo "usage: $0 BUILD [SECTION…]" >&2
	exit 2
}
build=$(cd -- "$1" && pwd)
shift
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

as_root=()
if [ "$(id -u)" -ne 0 ]; then
	command -v sudo >/dev/null || {
		echo "recording needs root, and there is no sudo here" >&2
		exit 1
	}
	echo "recording needs root: running the measurements with sudo"
	as_root=(sudo)
fi

scratch=$(mktemp -d)
trap '"${as_root[@]}" rm -rf -- "$scratch"' EXIT
"${as_root[@]}" env BUILD="$build" SCRATCH="$scratch" QUICK="${QUICK:-}" PYTHONDONTWRITEBYTECODE=1 \
	PATH="$PATH:/usr/sbin:/sbin" python3 "$here/bench.py" "$@"
