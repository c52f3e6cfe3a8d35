#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# doc-tables.sh [--fix]: checks that the generated tables of the documents are up to date. A table is between
# two lines of a Markdown file:
#
#   <!-- table: COMMAND -->
#   <!-- end of table -->
#
# and must be what COMMAND prints, run at the top of the tree. --fix writes what it prints. If COMMAND is a unit test
# (build/tests/unit/NAME --print), --fix builds it first; without --fix the test itself checks its table.
set -euo pipefail

cd "$(dirname -- "$0")/.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Prints the document with its tables as they should be.
with_tables() { # file
	local line command="" skipping=""
	while IFS= read -r line || [ -n "$line" ]; do
		[ "$line" = '<!-- end of table -->' ] && skipping=""
		[ -n "$skipping" ] || printf '%s\n' "$line"
		case $line in
		'<!-- table: '*' -->')
			command=${line#<!-- table: }
			command=${command% -->}
			if [[ $command == build/* ]]; then
				[ -n "$fix" ] || continue
				make -s "${command%% *}" >&2
			fi
			skipping=yes
			bash -c "$command" >"$scratch/table" && [ -s "$scratch/table" ] || {
				echo "$1: the command of a table failed: $command" >&2
				return 1
			}
			cat "$scratch/table"
			;;
		esac
	done <"$1"
	[ -z "$skipping" ] || {
		echo "$1: a table without its last line: $command" >&2
		return 1
	}
}

fix=""
[ "${1:-}" != --fix ] || fix=yes
status=0 tables=0
for document in ./*.md docs/*.md; do
	grep -q '^<!-- table: ' "$document" || continue
	tables=$((tables + 1))
	with_tables "$document" >"$scratch/document"
	if [ -n "$fix" ]; then
		cmp -s "$scratch/document" "$document" || cat "$scratch/document" >"$document"
	else
		diff -u "$document" "$scratch/document" || {
			echo "$document: a table is out of date: make format"
			status=1
		}
	fi
done
[ $tables -gt 0 ] || { echo "no table found: nothing was checked"; exit 1; }
exit $status
