#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
#
# The manual page names the options that the program names, all of them and no others but node's.
set -eu

for command in record convert report open check; do
	"$SYSPROF" help "$command"
done | grep -oE -- '--[a-z][a-z-]+' | sort -u >"$SCRATCH/program"
sed 's/\\-/-/g' docs/sysprof.1 | grep -oE -- '--[a-z][a-z-]+' | grep -v '^--perf-' | sort -u >"$SCRATCH/manual"
[ "$(wc -l <"$SCRATCH/program")" -ge 10 ] || { echo "the program hardly names an option"; exit 1; }
diff -u "$SCRATCH/program" "$SCRATCH/manual"
