#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# soak.sh BUILD SECONDS
#
# Runs tests/e2e/soak.py test_nothing_grows for so long, and keeps its log as BUILD/soak.log (and .log.1, which has what
# came before its last megabyte). Exits 1 if something grew.
set -euo pipefail

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
build=$(CDPATH='' cd -- "$1" && pwd)
as_root=()
[ "$(id -u)" = 0 ] || as_root=(sudo)
scratch=$(mktemp -d)
chmod 755 "$scratch"
trap '"${as_root[@]}" rm -rf "$scratch"' EXIT
cd "$scratch"
"${as_root[@]}" env BUILD="$build" SYSPROF="$build/sysprof" SCRATCH="$scratch" TMPDIR="$scratch" CASES=all \
	RECORDINGS="$build/tests/recordings" SOAK_SECONDS="$2" SOAK_LOG="$build/soak.log" \
	"$top/tests/e2e/soak.py" test_nothing_grows
