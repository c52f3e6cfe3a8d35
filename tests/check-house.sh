#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# check-house.sh: counts what makes things hard to find, prints each count beside its limit, and fails
# if one is above it. A limit goes down with its count; it goes up on purpose only.
set -euo pipefail

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$top"
command -v ctags >/dev/null || {
	echo "ctags is not installed: tools/install-deps.sh test" >&2
	exit 1
}

over=0
limit() { # count, limit, what
	printf '%8d of %8d  %s\n' "$1" "$2" "$3"
	[ "$1" -le "$2" ] || {
		echo "above the limit: $3" >&2
		over=1
	}
}

sources=$(find userspace include -name '*.[ch]' | sort)
# kind, name, file, and "static" for what only that file sees
# shellcheck disable=SC2086 # names without blanks, all our own
tags=$(ctags --map-C=+.h --map-C++=-.h --languages=C --kinds-C=fp -x --_xformat='%{kind} %{name} %{input} %{file}' $sources)

# A function that other files may call is declared in the header of its file: FILE.h, FILE_private.h for its
# own parts, or the contract of that name in include/sysprof/. What stands elsewhere is printed.
elsewhere=$(awk '
function stem(file) {
	sub(/^.*\//, "", file)
	sub(/(_private)?\.[ch]$/, "", file)
	return file
}
function directory(file) {
	sub(/\/[^\/]*$/, "", file)
	return file
}
$1 == "function" && $3 ~ /\.c$/ && $4 == "-" { home[$2] = $3 }
$1 == "prototype" && $3 ~ /\.h$/ && !($2 in declared) { declared[$2] = $3 }
END {
	for (name in declared) {
		if (!(name in home))
			continue
		shared++
		header = declared[name]
		same_room = directory(header) == directory(home[name]) || header ~ /^include\//
		if (!same_room || stem(header) != stem(home[name]))
			print name, header, home[name]
	}
	print shared, "shared"
}' <<<"$tags")
shared=$(awk '$2 == "shared" { print $1 }' <<<"$elsewhere")
elsewhere=$(grep -v ' shared$' <<<"$elsewhere" | sort || true)
[ "${shared:-0}" -gt 1000 ] || {
	echo "only ${shared:-0} shared functions were found: nothing was checked" >&2
	exit 1
}

headerless() {
	local file name
	for file in $(find userspace -name '*.c' | sort); do
		name=$(basename "${file%.c}")
		[ -e "${file%.c}.h" ] || [ -e "include/sysprof/$name.h" ] || echo "$file"
	done
}

prototypes=$(awk '$1 == "prototype" && $3 ~ /\.h$/ { print $3 }' <<<"$tags" | sort | uniq -c | sort -rn)
base_of_one_room() { # modules of base/ that a single room uses, and base/ itself does not
	local header rooms
	for header in userspace/base/*.h; do
		rooms=$(grep -rlF "#include \"${header#userspace/}\"" userspace --include='*.[ch]' |
			grep -vxF "${header%.h}.c" | cut -d/ -f2 | sort -u || true)
		[ "$(grep -c . <<<"$rooms")" -ne 1 ] || [ "$rooms" = base ] || basename "$header" .h
	done
}

# Structures that describe a mapped file, from its mapping to its symbols: they have its build-id. Others pass its number on.
descriptions() {
	ctags --map-C=+.h --map-C++=-.h --languages=C --kinds-C=m -x --_xformat='%{name} %{scope}' include/sysprof/{event,profile}.h \
		userspace/{files,world,unwind,session,window}/*.[ch] | sed -n 's/^build_id //p' | grep -vx kernel_identity | sort
}

lines() { # file names on stdin
	tr '\n' '\0' | xargs -0 cat | wc -l
}

printf '%s\n' "$elsewhere"
limit "$(grep -c . <<<"$elsewhere")" 22 "functions, of $shared that are shared, declared in another file's header"
limit "$(headerless | grep -c .)" 32 ".c files without a header: commands, formats and runtimes, which a table of their room lists"
limit "$(awk 'NR == 1 { print $1 }' <<<"$prototypes")" 53 "prototypes in the longest header, $(awk 'NR == 1 { print $2 }' <<<"$prototypes")"
limit "$(find userspace -mindepth 1 -maxdepth 1 -type d | grep -c .)" 21 "rooms"
lonely=$(base_of_one_room)
limit "$(grep -c . <<<"$lonely" || true)" 0 "modules of base/ that one room uses:$(printf ' %s' $lonely)"
described=$(descriptions)
limit "$(grep -c . <<<"$described")" 6 "structures that describe a mapped file:$(printf ' %s' $described)"
limit "$(grep -rhoE 'dso_opener__(see|find)\(' userspace --include='*.c' --exclude-dir=files | grep -c .)" 2 \
	"calls that find a mapped file by its description: of a mapping, and of a recorded one"
limit "$(find userspace -name '*.[ch]' | lines)" 172165 "lines of userspace"
# prose: no code, tables or pictures
wide=$(git ls-files '*.md' | xargs awk 'FNR == 1 { code = 0 } /^```/ { code = !code } !code && !/^(\||!\[|    )/' |
	LC_ALL=C.UTF-8 grep -cE '^.{121,}' || true)
limit "$wide" 0 "lines of documents wider than 120 columns"
limit "$(git ls-files tests | grep -E '\.(c|h|py|sh|js|S)$|^tests/unit/testdata/' | lines)" 149506 "lines of tests, tables included"
exit "$over"
