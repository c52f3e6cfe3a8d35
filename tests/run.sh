#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# run.sh [DIR:]SUITE…      suites: unit golden e2e fuzz layers format; DIR is the build they test (build)
#
# Prints a line for every test and, alone on the last line, "N passed, N failed, N skipped". Exits 1
# if a test failed, or if nothing was there to run.
#
# A test is a program: unit and golden are the built C files of those directories; e2e is every .sh
# and .py in tests/e2e whose name does not begin with "lib"; fuzz gives each fuzz target FUZZ_SECONDS
# (10). It runs at the top of the tree under a
# time limit (its own, where a line of its source says "time-limit: SECONDS") and passes by exit 0.
# Exit 77 skips it, with the reason as its last line; a reason that says "needs root" or "needs CAP_…"
# fails the run where CI=true, since there the root-only tests are the point. A test finds
#   BUILD     the build directory, absolute     SYSPROF   the program
#   SCRATCH   an empty directory of its own, also TMPDIR, removed afterwards
# and its output goes to DIR/tests/log/NAME.log, which is shown when it fails.
#
# End-to-end tests need root, and so do some cases of unit tests. As a user they run through sudo, one by
# one, while logs and everything else in the build directory stay the user's. A report of a sanitizer
# fails a test that otherwise passed, whichever of its processes wrote it.
set -uo pipefail

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$top" || exit 1
passed=0 failed=0 skipped=0 root_skipped=0
scratch=""
refusal=""
as_root=()

result() { # word, name, seconds, remark
	printf '%-5s %s%s%s\n' "$1" "$2" "${3:+ ($3 s)}" "${4:+: $4}"
	case $1 in
	ok) passed=$((passed + 1)) ;;
	FAIL) failed=$((failed + 1)) ;;
	skip)
		skipped=$((skipped + 1))
		[[ $4 =~ needs\ root|needs\ CAP_|only\ root ]] && root_skipped=$((root_skipped + 1))
		;;
	esac
}

# Finds how to become root: once, and only if a test asks for it.
find_root() {
	[ "$(id -u)" -eq 0 ] && return 0
	[ -n "$refusal" ] && return 1
	[ ${#as_root[@]} -gt 0 ] && return 0
	if ! command -v sudo >/dev/null; then
		refusal="needs root: this is uid $(id -u), and there is no sudo"
		return 1
	fi
	echo "some tests need root: running them with sudo"
	if ! sudo -v; then
		refusal="needs root: this is uid $(id -u), and sudo refused"
		return 1
	fi
	as_root=(sudo)
	# a long test must not find the password forgotten at its end
	(while sleep 50 && kill -0 $$ 2>/dev/null && sudo -n -v; do :; done) 2>/dev/null &
	return 0
}

scratch__new() {
	scratch=$(mktemp -d "${TMPDIR:-/tmp}/sysprof-test.XXXXXX") || exit 1
	mkdir "$scratch/work" "$scratch/reports"
	# tests that drop privileges come back here
	chmod 755 "$scratch"
	chmod 1777 "$scratch/reports"
}

scratch__free() {
	[ -n "$scratch" ] || return 0
	"${as_root[@]}" rm -rf "$scratch"
	scratch=""
}

cleanup() {
	scratch__free
	# shellcheck disable=SC2046 # pids
	kill $(jobs -p) 2>/dev/null
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# cmocka counts a skipped case as a pass of its program; here it has a line of its own.
report_skipped_cases() { # name, log
	local line reason="" case_name
	while IFS= read -r line; do
		case_name=${line#'[  SKIPPED ] '}
		if [ "$case_name" = "$line" ]; then
			reason=$line
		elif [[ $case_name != [0-9]* && $reason != "["*"listed below"* ]]; then
			[[ $reason == "[ RUN"* ]] && reason="no reason given"
			result skip "$1" "" "$reason ($case_name)"
		fi
	done < <(sed '/listed below/,$d' "$2")
}

# run_test NAME LOG SOURCE DIR COMMAND…: the rest of the arguments is run, as root if $privileged.
run_test() {
	local name=$1 log=$2 source=$3 build=$4 limit begin took status reports prefix=()
	shift 4
	limit=$(sed -n 's/.*time-limit: *\([0-9]*\).*/\1/p;T;q' "$source")
	limit=${limit:-$default_limit}
	mkdir -p "$(dirname "$log")"
	: >"$log"
	scratch__new
	[ -n "$privileged" ] && prefix=("${as_root[@]}")

	begin=${EPOCHREALTIME/./}
	"${prefix[@]}" env BUILD="$build" SYSPROF="$build/sysprof" \
		SCRATCH="$scratch/work" TMPDIR="$scratch/work" PYTHONDONTWRITEBYTECODE=1 \
		CI="${CI:-}" \
		ASAN_OPTIONS="exitcode=99:detect_leaks=1:log_path=$scratch/reports/asan" \
		LSAN_OPTIONS="exitcode=99" \
		UBSAN_OPTIONS="exitcode=99:print_stacktrace=1:log_path=$scratch/reports/ubsan" \
		timeout -k 10 "$limit" "$@" </dev/null >>"$log" 2>&1
	status=$?
	took=$(((${EPOCHREALTIME/./} - begin) / 100000))
	took=$((took / 10)).$((took % 10))

	reports=$("${prefix[@]}" find "$scratch/reports" -type f -size +0 -exec cat {} +)
	[ -n "$reports" ] && printf '%s\n' "--- sanitizer reports" "$reports" >>"$log"
	if [ $status -eq 124 ] || [ $status -eq 137 ]; then
		result FAIL "$name" "$took" "exceeded its limit of $limit s"
	elif [ $status -eq 77 ]; then
		result skip "$name" "" "$(grep -v '^[[:space:]]*$' "$log" | tail -n 1)"
	elif [ $status -ne 0 ]; then
		result FAIL "$name" "$took" "exit status $status"
	elif [ -n "$reports" ]; then
		result FAIL "$name" "$took" "a sanitizer reported an error"
	else
		result ok "$name" "$took" ""
		report_skipped_cases "$name" "$log"
	fi
	[ $status -eq 77 ] || { [ $status -eq 0 ] && [ -z "$reports" ]; } || {
		echo "  ---- the end of $log"
		tail -n 40 "$log" | sed 's/^/  | /'
	}
	scratch__free
}

# The sources of a suite's tests, one a line.
sources_of() {
	case $1 in
	unit) compgen -G "tests/unit/test_*.c" | sort ;;
	golden) compgen -G "tests/golden/*.c" | sort ;;
	e2e) { compgen -G "tests/e2e/*.sh"; compgen -G "tests/e2e/*.py"; } | grep -v '/lib[^/]*$' | sort ;;
	fuzz) compgen -G "tests/fuzz/fuzz_*.c" | sort ;;
	layers) echo tests/check-layers.sh ;;
	format) echo tests/check-format.sh ;;
	esac
}

run_suite() {
	local dir=build suite=$1 sources source name label log build command needs_root=""
	[[ $suite == *:* ]] && dir=${suite%%:*} && suite=${suite#*:}
	build=$(realpath -m -- "$dir")
	sources=$(sources_of "$suite")
	privileged="" default_limit=120
	[ "$suite" = e2e ] && needs_root=yes default_limit=300
	[[ $suite == e2e || $suite == unit ]] && find_root && privileged=yes
	[ -n "$sources" ] || { result FAIL "$dir/$suite" "" "no test found"; return; }

	for source in $sources; do
		name=$(basename "$source")
		label=$suite/${name%.*}
		[[ $suite == layers || $suite == format ]] && label=${name%.*}
		# a second build of the same tests says which it is
		[ "$dir" = build ] || label=$(basename "$dir")/$label
		log=$build/tests/log/$suite-${name%.*}.log
		command=("$top/$source")
		[[ $suite == unit || $suite == golden ]] && command=("$build/${source%.c}")
		[ "$suite" = fuzz ] && command=("$top/tests/fuzz/run.sh" "${name%.c}")
		if [ -n "$needs_root" ] && [ -z "$privileged" ]; then
			result skip "$label" "" "$refusal"
		elif [ ! -x "${command[0]}" ]; then
			result FAIL "$label" "" "${command[0]} is not there, or not executable"
		else
			run_test "$label" "$log" "$source" "$build" "${command[@]}"
		fi
	done
}

[ $# -gt 0 ] || { echo "usage: $0 [DIR:]unit|golden|e2e|fuzz|layers|format…" >&2; exit 2; }
for arg in "$@"; do
	run_suite "$arg"
done

status=0
[ "$failed" -eq 0 ] && [ $((passed + skipped)) -gt 0 ] || status=1
if [ "${CI:-}" = true ] && [ "$root_skipped" -gt 0 ]; then
	echo "CI=true, and $root_skipped tests that need root were skipped: that is a failure"
	status=1
fi
echo "$passed passed, $failed failed, $skipped skipped"
exit $status
