#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# run.sh [DIR:]SUITE[/TEST]…      DIR is the build that is tested (build); with a TEST, that test of the suite alone
#
#   unit       the built C programs of tests/unit          fuzz     each fuzz target, FUZZ_SECONDS (3)
#   golden     the built C programs of tests/golden        layers   tests/check-layers.sh
#   house      tests/check-house.sh
#   quick      the cases of e2e that are marked @quick     format   tests/check-format.sh
#   e2e        .sh and .py of tests/e2e, but "lib*"
#   long       the long cases of those that have some (test-all)
#   distros    unit and golden, built in a bare system of the stable Debian (tests/distros.sh)
#   soak       cases that repeat others for longer (make soak)
#   sanitized  those of e2e that are repeated with the sanitizers, long cases included, but for those marked @natively
#   servers    those of e2e that want running backends (test-servers); no other suite has them
#   replay     what e2e and long recorded, read by this build; see tests/replay.py
#
# Prints a line for every test and, alone on the last line, "N passed, N failed, N skipped". Exits 1
# if a test failed, or if nothing was there to run.
#
# A test is a program. It runs at the top of the tree, those of e2e in SCRATCH, since the programs that they
# run may leave files where they are. It passes by exit 0. Exit 77 skips it, with the
# reason as its last line; a reason that says "needs root" or "needs CAP_…" fails the run where CI=true,
# since there the root-only tests are the point. Its source has these settings, each in a line of its own:
#   time-limit: SECONDS   otherwise 120, and 300 for e2e
#   runs: WORD…           beside     it measures neither shares of the CPUs nor time: it may run in parallel with others,
#                                    but for its cases marked @alone (libe2e.py), which run alone
#                         waiting    beside, and it mostly waits: two such run in addition to the others, and more at their end
#                         alone      nothing else may run at the same time
#                         sanitized  part of that suite: memory errors can occur in what it tests
#                         long       it has cases that only test-all runs (@long in libe2e.py)
#                         soak       it has cases that only `make soak` runs (@soak)
#                         servers    part of that suite, and of no other
# e2e tests run alone unless they say `beside`; all others, and e2e tests with the sanitizers, run in parallel unless they
# say `alone`.
# The parallel ones come first, TEST_JOBS at a time: as many as there are CPUs; and half as many again once none that waits is left.
#
# A unit test or an end-to-end test that failed is run again at the end, alone, twice at most: a host that takes the CPUs away
# for a moment can fail one. Its first log stays (NAME.first.log), and it is counted as unsteady. More than SECOND_TRIES (8)
# failures are none of the host's: then nothing is run again. A report of a sanitizer, a crash or a limit that was exceeded gets no second try.
# What failed is printed once more at the end, with its reasons, and the ten slowest tests are listed. CPU time is that of
# the test and of all the processes that were waited for.
#
# A test finds
#   BUILD       the build directory, absolute     SYSPROF   the program
#   SCRATCH     an empty directory of its own, also TMPDIR, removed afterwards
#   CASES       which cases of an e2e test are wanted: short, long or all, and then perhaps beside or alone
#   RECORDINGS  DIR/tests/recordings of the build without sanitizers
# and its output goes to DIR/tests/log/NAME.log, which is shown when it fails. The recordings that an e2e
# test leaves in SCRATCH/kept are moved to RECORDINGS/made.
#
# End-to-end tests need root, and so do some cases of unit tests. As a user they run through sudo, one by
# one, while logs and everything else in the build directory stay the user's. A report of a sanitizer
# fails a test that otherwise passed, whichever of its processes wrote it.
set -uo pipefail
TIMEFORMAT='%R %U %S'

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$top" || exit 1
jobs_at_once=${TEST_JOBS:-$(nproc)}
passed=0 failed=0 skipped=0 root_skipped=0
scratch=""
refusal=""
as_root=()

result() { # word, name, times, remark
	printf '%-5s %s%s%s\n' "$1" "$2" "${3:+ ($3)}" "${4:+: $4}"
}

# Prints the result lines of a test and counts them; lines of its log begin with a blank.
show() { # file
	local line
	cat "$1"
	while IFS= read -r line; do
		case $line in
		"ok "*) passed=$((passed + 1)) ;;
		"FAIL "*) failed=$((failed + 1)) ;;
		"skip "*)
			skipped=$((skipped + 1))
			[[ $line =~ needs\ root|needs\ CAP_|only\ root ]] && root_skipped=$((root_skipped + 1))
			;;
		esac
	done <"$1"
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

# shellcheck disable=SC2317 # called by the trap
cleanup() {
	local job
	trap '' INT TERM
	for job in "${!running[@]}"; do
		kill -- "-${running[$job]}" 2>/dev/null
	done
	[ ${#running[@]} -eq 0 ] || wait "${running[@]}" 2>/dev/null
	scratch__free
	rm -rf "$results"
	# shellcheck disable=SC2046 # pids
	kill $(jobs -p) 2>/dev/null
}

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

# What e2e tests kept of their recordings, for tests that read them again.
keep_recordings() { # name
	local file kept=$scratch/work/kept made=$top/build/tests/recordings/made
	[ -d "$kept" ] || return 0
	[ ${#as_root[@]} -eq 0 ] || sudo chown -R "$(id -u):$(id -g)" "$kept"
	mkdir -p "$made"
	for file in "$kept"/*; do
		mv "$file" "$made/$1-${file##*/}"
	done
}

# One test of the plan, by its number.
run_test() {
	local i=$1 name=${names[$1]} log=${logs[$1]} limit took status reports prefix=() command folder=$top
	read -ra command <<<"${commands[i]}"
	if [ -n "${refusals[i]}" ]; then
		result skip "$name" "" "${refusals[i]}"
		return
	fi
	if [ ! -x "${command[0]}" ]; then
		result FAIL "$name" "" "${command[0]} is not there, or not executable"
		return
	fi
	limit=$(sed -n 's/.*time-limit: *\([0-9]*\).*/\1/p;T;q' "${sources[i]}")
	limit=${limit:-${limits[i]}}
	mkdir -p "$(dirname "$log")"
	: >"$log"
	scratch__new
	[ -n "${privileged[i]}" ] && prefix=("${as_root[@]}")
	[[ ${sources[i]} == tests/e2e/* ]] && folder=$scratch/work

	{ time "${prefix[@]}" env -C "$folder" BUILD="${builds[i]}" SYSPROF="${builds[i]}/sysprof" \
		SCRATCH="$scratch/work" TMPDIR="$scratch/work" PYTHONDONTWRITEBYTECODE=1 \
		CI="${CI:-}" CASES="${cases[i]}" RECORDINGS="$top/build/tests/recordings" \
		ASAN_OPTIONS="exitcode=99:detect_leaks=1:log_path=$scratch/reports/asan" \
		LSAN_OPTIONS="exitcode=99" \
		UBSAN_OPTIONS="exitcode=99:print_stacktrace=1:log_path=$scratch/reports/ubsan" \
		timeout -k 10 "$limit" "${command[@]}" </dev/null >>"$log" 2>&1; } 2>"$scratch/times"
	status=$?
	took=$(awk 'END { printf "%.1f s, CPU %.1f s", $1, $2 + $3 }' "$scratch/times")

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
	keep_recordings "${name##*/}"
	scratch__free
}

# ---- the plan: what is to be run, by number ------------------------------------------------------

unsteady=()
names=() logs=() sources=() builds=() commands=() privileged=() refusals=() limits=() cases=() places=()

says() { # source, word
	sed -n '1,40s/^[^[:alnum:]]*runs://p' "$1" | grep -w -- "$2" >/dev/null
}

# Whether this suite has cases of a test that are quick, long, or not (short), or for `make soak` (all: but these), and
# run alone, or not (beside).
has_cases() { # source, quick|short|long|soak|all, alone|beside
	awk -v wanted="$2" -v place="$3" -v suite="$suite" '
		/^@/ { marks = marks " " $0 }
		/^def test_/ {
			kind = marks ~ /@(e\.)?soak/ ? "soak" : marks ~ /@(e\.)?long/ ? "long" : "short"
			if (wanted == "quick") kind = marks ~ /@(e\.)?quick/ ? "quick" : ""
			found += (wanted == "all" ? kind != "soak" : kind == wanted) &&
				(marks ~ /@(e\.)?alone/ ? "alone" : "beside") == place &&
				!(suite == "sanitized" && marks ~ /@(e\.)?natively/)
		}
		!/^@/ { marks = "" }
		END { exit !found }' "$1"
}

# Whether all cases of a test are for other suites.
has_no_case() { # source, quick|short|long|soak|all
	[[ $1 == *.py ]] && grep -q '^def test_' "$1" && ! has_cases "$1" "$2" beside && ! has_cases "$1" "$2" alone
}

# The sources of a suite's tests, one a line.
sources_of() {
	local source place
	case $1 in
	unit) compgen -G "tests/unit/test_*.c" | sort ;;
	golden) compgen -G "tests/golden/*.c" | sort ;;
	e2e | servers)
		for source in $({ compgen -G "tests/e2e/*.sh"; compgen -G "tests/e2e/*.py"; } | grep -v '/lib[^/]*$' | sort); do
			if says "$source" servers; then place=servers; else place=e2e; fi
			[ "$place" != "$1" ] || echo "$source"
		done
		;;
	quick)
		for source in $(sources_of e2e); do
			! grep -Eq '^@(e\.)?quick' "$source" || echo "$source"
		done
		;;
	long | sanitized | soak)
		for source in $(sources_of e2e); do
			says "$source" "$1" && echo "$source"
		done
		;;
	fuzz) compgen -G "tests/fuzz/fuzz_*.c" | sort ;;
	replay) echo tests/replay.py ;;
	layers) echo tests/check-layers.sh ;;
	house) echo tests/check-house.sh ;;
	distros) echo tests/distros.sh ;;
	format) echo tests/check-format.sh ;;
	esac
}

# One more test. The settings of its suite are those of plan_suite.
plan_test() { # source, label, place, cases
	local i=${#names[@]} name
	name=$(basename "$1")
	name=${name%.*}
	case $suite in
	unit | golden) commands[i]=$build/${1%.c} ;;
	fuzz) commands[i]="$top/tests/fuzz/run.sh $name" ;;
	distros) commands[i]="$top/$1 trixie:unit:1" ;;
	*) commands[i]=$top/$1 ;;
	esac
	names[i]=$2 sources[i]=$1 builds[i]=$build places[i]=$3 cases[i]=$4 limits[i]=$limit
	# a name of its own for the second half of a test
	logs[i]=$build/tests/log/$suite-${2##*/}.log
	rm -f "${logs[i]%.log}.first.log"
	privileged[i]=$as refusals[i]=$refused
}

plan_suite() {
	local dir=build suite=$1 only="" found source label build place as="" refused="" limit=120 wanted=short
	[[ $suite == *:* ]] && dir=${suite%%:*} && suite=${suite#*:}
	[[ $suite == */* ]] && only=${suite#*/} && suite=${suite%%/*}
	build=$(realpath -m -- "$dir")
	found=$(sources_of "$suite")
	[ -z "$only" ] || found=$(grep "/$only\.[a-z]*$" <<<"$found")
	case $suite in
	unit) find_root && as=yes ;;
	quick | e2e | long | sanitized | servers | soak | distros)
		limit=300
		if find_root; then as=yes; else refused=$refusal; fi
		;;
	esac
	[ -n "$found" ] || { result FAIL "$dir:$1" "" "no test found" >"$results/none"; show "$results/none"; }
	[ "$dir:$suite/$only" != build:e2e/ ] || "${as_root[@]}" rm -rf build/tests/recordings
	[[ $suite != quick && $suite != long && $suite != soak ]] || wanted=$suite
	[[ $suite != servers && $suite != sanitized ]] || wanted=all

	for source in $found; do
		! has_no_case "$source" "$wanted" || continue
		label=$suite/$(basename "${source%.*}") place=beside
		[[ $suite == layers || $suite == house || $suite == format || $suite == replay || $suite == distros ]] && label=${label#*/}
		# a second build of the same tests has its name in front
		[ "$dir" = build ] || label=$(basename "$dir")/$label
		# with the sanitizers it is memory that is looked at
		[[ ! $suite =~ ^(quick|e2e|long|soak|servers)$ ]] || says "$source" beside || place=alone
		says "$source" alone && place=alone
		[ "$place" = alone ] || ! says "$source" waiting || place=waiting
		if [[ $source == *.py && $place != alone && $suite =~ ^(quick|e2e|long|sanitized|soak)$ ]] && has_cases "$source" "$wanted" alone; then
			! has_cases "$source" "$wanted" beside || plan_test "$source" "$label" "$place" "$wanted beside"
			plan_test "$source" "$label.alone" alone "$wanted alone"
		else
			plan_test "$source" "$label" "$place" "$wanted"
		fi
	done
}

# Tests that run in parallel wait in two lanes, `beside` and `waiting`; next[LANE] is the first that was not looked at.
declare -A running=() next=([beside]=0 [waiting]=0)
start_some() { # lane, how many of it at a time; leaves how many there are in $count
	local i
	count=0
	for i in "${!running[@]}"; do
		[ "${places[i]}" != "$1" ] || count=$((count + 1))
	done
	while i=${next[$1]} && [ "$i" -lt ${#names[@]} ] && [ "$count" -lt "$2" ]; do
		next[$1]=$((i + 1))
		[ "${places[i]}" = "$1" ] || continue
		# with job control: a group of its own, and signals as they come
		set -m
		(trap scratch__free EXIT; run_test "$i" >"$results/$i") &
		running[$i]=$!
		set +m
		count=$((count + 1))
	done
}

# Their results are shown in the order of the plan.
run_beside() {
	local i shown=0 place count more=0
	while [ "$shown" -lt ${#names[@]} ]; do
		start_some beside $((jobs_at_once + more))
		# when no other is left, those that wait take their places; when none of these is left, half as many others again have
		# room, since all of them wait at times
		start_some waiting $((2 + jobs_at_once - count))
		[ "$count" -gt 0 ] || more=$((jobs_at_once / 2))
		place=${places[shown]}
		if [ "$place" = alone ] || { [ -z "${running[$shown]:-}" ] && [ "$shown" -lt "${next[$place]}" ]; }; then
			[ "$place" = alone ] || show "$results/$shown"
			shown=$((shown + 1))
			continue
		fi
		wait -n "${running[@]}"
		for i in "${!running[@]}"; do
			kill -0 "${running[$i]}" 2>/dev/null && continue
			[ -s "$results/$i" ] || result FAIL "${names[i]}" "" "it was killed" >"$results/$i"
			unset "running[$i]"
		done
	done
}

# What failed may be the host's doing: status 1 of a program that compares what it saw, and not many of them.
run_again() {
	local i try again=()
	for i in "${!names[@]}"; do
		[[ ${sources[i]} == tests/e2e/* || ${sources[i]} == tests/unit/* ]] || continue
		grep -q '^FAIL ' "$results/$i" || continue
		grep -q '^FAIL .*: exit status 1$' "$results/$i" || return 0
		again+=("$i")
	done
	[ "${#again[@]}" -gt 0 ] && [ "$failed" -eq "${#again[@]}" ] && [ "$failed" -le "${SECOND_TRIES:-8}" ] || return 0
	echo "again, alone: what failed"
	for i in "${again[@]}"; do
		mv "${logs[i]}" "${logs[i]%.log}.first.log"
		for try in 1 2; do
			run_test "$i" >"$results/$i"
			! grep -q '^ok ' "$results/$i" || break
		done
		failed=$((failed - 1))
		show "$results/$i"
		grep -q '^ok ' "$results/$i" && unsteady+=("${names[i]}")
	done
}

# The end is what is read of a long run.
report_failures() {
	local i log
	[ "$failed" -gt 0 ] || [ ${#unsteady[@]} -gt 0 ] || return 0
	for i in "${!names[@]}"; do
		log=${logs[i]}
		[ ! -e "${log%.log}.first.log" ] || log=${log%.log}.first.log
		grep -q '^FAIL ' "$results/$i" || [ "$log" != "${logs[i]}" ] || continue
		echo "---- ${names[i]}"
		[ -e "$log" ] || { cat "$results/$i"; continue; }
		{ grep -A 30 '^FAIL ' "$log" || tail -n 20 "$log"; } | cut -c 1-300 | head -n 40
	done
}

# Where the time of a run goes; a test that runs beside others has taken more than it would alone.
print_slowest() {
	local i
	echo "the ten slowest:"
	for i in "${!names[@]}"; do
		sed -nE 's/^(ok|FAIL) +([^ ]+) \(([0-9.]+ s, CPU [0-9.]+ s)\).*/\3  \2/p' "$results/$i"
	done | sort -rn | head -n 10 | sed 's/^/  /'
}

run_alone() {
	local i
	for i in "${!names[@]}"; do
		[ "${places[i]}" = alone ] || continue
		run_test "$i" >"$results/$i"
		show "$results/$i"
	done
}

[ $# -gt 0 ] || {
	echo "usage: $0 [DIR:]unit|golden|quick|e2e|long|soak|sanitized|servers|replay|fuzz|layers|house|format|distros[/TEST]…" >&2
	exit 2
}
results=$(mktemp -d "${TMPDIR:-/tmp}/sysprof-results.XXXXXX") || exit 1
trap cleanup EXIT
trap 'exit 130' INT TERM
for arg in "$@"; do
	plan_suite "$arg"
done
begin=$SECONDS
run_beside
beside_took=$((SECONDS - begin))
run_alone
run_again
report_failures
print_slowest
echo "$beside_took s for the tests that ran in parallel, $((SECONDS - begin - beside_took)) s for those that ran alone"

status=0
[ "$failed" -eq 0 ] && [ $((passed + skipped)) -gt 0 ] || status=1
if [ "${CI:-}" = true ] && [ "$root_skipped" -gt 0 ]; then
	echo "CI=true, and $root_skipped tests that need root were skipped: that is a failure"
	status=1
fi
[ ${#unsteady[@]} -eq 0 ] || echo "unsteady, passed when they ran again: ${unsteady[*]}"
echo "$passed passed, $failed failed, $skipped skipped"
exit $status
