#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# check-format.sh [--fix]: checks the format of C files (.clang-format), that each script is executable and
# parses, trailing blanks, and the generated tables of documents (doc-tables.sh). --fix formats the C files and
# writes the tables instead.
#
# Versions of clang-format differ in what they write: another one than that of .clang-format checks nothing.
#
# The files are those of git and those it would add; outside of a clone, all but the builds.
set -euo pipefail

cd "$(dirname -- "$0")/.."

files() { # patterns of names
	local pattern
	if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
		git ls-files --cached --others --exclude-standard -- "$@" |
			while IFS= read -r file; do [ ! -e "$file" ] || echo "$file"; done
	else
		for pattern in "$@"; do
			find . \( -name 'build*' -o -name .git \) -prune -o -name "$pattern" -print
		done
	fi | sort -u
}

wanted=$(sed -n 's/^# clang-format \([0-9]*\)$/\1/p' .clang-format)
clang_format=$(command -v "clang-format-$wanted" || command -v clang-format) || {
	echo "clang-format is missing: tools/install-deps.sh test"
	exit 1
}
version=$("$clang_format" --version | sed 's/.*version \([0-9]*\).*/\1/')
mapfile -t c_files < <(files '*.c' '*.h')
[ ${#c_files[@]} -gt 0 ] || { echo "no C file found: nothing was checked"; exit 1; }

if [ "${1:-}" = --fix ]; then
	if [ "$version" = "$wanted" ]; then
		"$clang_format" -i "${c_files[@]}"
	else
		echo "C files are left as they are: clang-format is $version, and they are formatted by $wanted"
	fi
	exec tests/doc-tables.sh --fix
fi

# The check must see a badly formatted line when there is one.
if printf 'int  x ;\n' | "$clang_format" --style=file --assume-filename=x.c --dry-run -Werror 2>/dev/null; then
	echo "clang-format accepts anything: is .clang-format there?"
	exit 1
fi

status=0
if [ "$version" = "$wanted" ]; then
	"$clang_format" --style=file --dry-run -Werror "${c_files[@]}" || status=1
else
	echo "clang-format is $version, and C files are formatted by $wanted"
	echo "[  SKIPPED ] format of C files"
fi

mapfile -t scripts < <(files '*.sh' && echo .ci/run && echo vmtest/init)
[ ${#scripts[@]} -gt 0 ] || { echo "no script found: nothing was checked"; exit 1; }
for script in "${scripts[@]}"; do
	case $(head -n 1 "$script") in
	'#!/usr/bin/env bash' | '#!/bin/bash') bash -n "$script" || status=1 ;;
	'#!/bin/sh') sh -n "$script" || status=1 ;;
	*)
		echo "$script: the first line names neither bash nor sh"
		status=1
		;;
	esac
	[ -x "$script" ] || [[ $(basename "$script") == lib* ]] || {
		echo "$script: is not executable"
		status=1
	}
done

mapfile -t python < <(files '*.py')
for script in "${python[@]}"; do
	[ -x "$script" ] || [[ $(head -c 2 "$script") != '#!' ]] || {
		echo "$script: is not executable"
		status=1
	}
done
python3 -c 'import ast, sys; [ast.parse(open(name).read(), name) for name in sys.argv[1:]]' "${python[@]}" || status=1

if grep -nE '[[:blank:]]+$' "${c_files[@]}" "${scripts[@]}" "${python[@]}" Makefile tests/*.mk tests/*/*.mk; then
	echo "trailing blanks"
	status=1
fi
tests/doc-tables.sh || status=1
exit $status
