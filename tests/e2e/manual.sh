#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
#
# The manual page names the options that the program names, each command's in its own section and no others but node's, and
# the commands themselves.
set -eu
cd "$(dirname "$0")/../.."

"$SYSPROF" help | sed -n '/^Commands:/,$s/^  \([a-z-]*\) .*/\1/p' >"$SCRATCH/commands"
[ "$(wc -l <"$SCRATCH/commands")" -ge 8 ] || { echo "the program hardly names a command"; exit 1; }
sed 's/\\-/-/g' docs/sysprof.1 >"$SCRATCH/page"

while read -r command; do
	sed -n '/^\.SH COMMANDS/,/^\.SH TARGETS/p' "$SCRATCH/page" | grep -qx ".B $command" ||
		{ echo "COMMANDS of the page is without $command"; exit 1; }
done <"$SCRATCH/commands"

# What a section's paragraphs begin with; the words of others may name options of others.
of_page() { # end of the headings
	awk -v heading=" OF $1\$" '/^\.SH/ { within = $0 ~ heading } within' "$SCRATCH/page" | grep -A 1 '^\.TP' | grep -oE -- '--[a-z][a-z-]+' |
		sort -u
}

of_program() { # command
	"$SYSPROF" help "$1" | grep -oE -- '^ *(-., )?--[a-z][a-z-]+' | grep -oE -- '--.*' | sort -u
}

for command in record convert report diff compare open agent; do
	of_program "$command" >"$SCRATCH/program"
	of_page "$(echo "$command" | tr '[:lower:]' '[:upper:]')" >"$SCRATCH/manual"
	[ -s "$SCRATCH/program" ] || { echo "the program names no option of $command"; exit 1; }
	# those that are record's as well are described there
	[ "$command" = record ] && cp "$SCRATCH/manual" "$SCRATCH/of_record"
	comm -23 "$SCRATCH/program" "$SCRATCH/manual" | comm -23 - "$SCRATCH/of_record" >"$SCRATCH/missing"
	comm -13 "$SCRATCH/program" "$SCRATCH/manual" >"$SCRATCH/invented"
	[ ! -s "$SCRATCH/missing" ] || { echo "$command, not in the page:" "$(cat "$SCRATCH/missing")"; exit 1; }
	[ ! -s "$SCRATCH/invented" ] || { echo "$command, in the page alone:" "$(cat "$SCRATCH/invented")"; exit 1; }
done

for command in $(cat "$SCRATCH/commands"); do
	"$SYSPROF" help "$command" 2>/dev/null || true
done | grep -oE -- '--[a-z][a-z-]+' | sort -u >"$SCRATCH/program"
grep -oE -- '--[a-z][a-z-]+' "$SCRATCH/page" | grep -v '^--perf-' | sort -u >"$SCRATCH/manual"
[ "$(wc -l <"$SCRATCH/program")" -ge 10 ] || { echo "the program hardly names an option"; exit 1; }
diff -u "$SCRATCH/program" "$SCRATCH/manual"

# perf-map has words, not options
for word in find tidy update; do
	"$SYSPROF" help perf-map | grep -q "$word " && grep -q "^\.SY \"sysprof perf-map $word\"" "$SCRATCH/page" ||
		{ echo "perf-map $word"; exit 1; }
done
