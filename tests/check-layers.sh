#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# check-layers.sh [TREE]: checks which room may include which, which file is the door to which foreign
# library, which files may print, and which functions are forbidden. The tables below are the rules; change a
# line of them on purpose. docs/ARCHITECTURE.md has them as printed by
#
# check-layers.sh --print layers|libraries
#
# Without TREE it checks itself first: a small tree that keeps every rule must pass, and the same tree
# with one violation planted must fail, once per rule. A tree without sources fails as well.
set -euo pipefail

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)

# layer: a directory of userspace/, or one in it that has a row of its own | its archive, `read` rooms include no others : rooms that it may include | headers of include/sysprof/ | its contents, for ARCHITECTURE's table
layers='
base           | read   : base |  | containers, strings, files, clocks, JSON, caches on disk, the log: no policy, and nothing of one room alone
tenants        | read   : base tenants |  | what the users of this host may make the collector do: helper processes (classes, confinement, keepers, pools), quotas, the books of what was left out, how their files are opened
elf            | read   : base elf | symbol_result.h | an open ELF file, its segments, notes and symbols; the function table of Go; instructions of x86, and for views as text
profile        | read   : base tenants profile | event.h profile.h profile_builder.h profile_code.h | the model; builder, checker, several profiles as one, timeline of a thread
filter         | read   : base profile filter | profile.h | which part of a profile: clauses as a value, regular expressions, slices of time; a profile without the rest, and the books of that
stream         | read   : base tenants stream | event.h event_handler.h meta_keys.h symbol_result.h | encoding and decoding of events, the queue, the recording file, clock arithmetic
stream/perf    | read   : base tenants stream stream/perf | event.h meta_keys.h | records of perf as events: of the side-band, and of perf.data files
runtimes       | read   : base tenants elf runtimes | event.h made_frames.h runtime_info.h | the memory of runtimes; a folder for each of them, and what finds and reads all of them
runtimes/place | read   : base world runtimes runtimes/place | event.h profile.h profile_builder.h | what was answered, and where in a stack a function of a runtime belongs
files          | read   : base tenants elf stream files | event.h event_handler.h | mapped files: found, opened, kept open, looked up by their identity
jit            | read   : base jit | profile.h | formats of perf maps and jitdumps, code over time, names of JIT compilers
jit/names      | read   : base tenants stream jit runtimes world jit/names | event.h meta_keys.h profile.h profile_builder.h profile_code.h | what a recording has of the JIT code of a process, and its names
world          | read   : base tenants stream jit jit/names runtimes runtimes/place world | event.h event_handler.h mapping.h profile.h profile_builder.h profile_code.h | processes, threads, mappings and images at time t; the recorder
symbolize      | read   : base tenants elf stream symbolize | symbolizer.h profile.h | names and lines from ELF, DWARF, kallsyms; sandboxed children; symbol cache
window         | read   : base elf files jit/names services stream stream/perf world window | profile.h profile_builder.h profile_code.h symbolizer.h | closed windows of the stream and their profiles; the replay of a recording
formats/out    | read   : base tenants elf profile formats/out | exporter.h profile.h | one file per format, and the report
formats/in     | read   : base formats/in | importer.h profile.h profile_builder.h | one reader per format of profiles
services       | read   : base formats/in services | profile.h profile_builder.h | what a process belongs to: service, container, pod, unit; by control groups, files of container runtimes and facts; texts fit to be labels
compare        | read   : base profile compare | profile.h profile_builder.h meta_keys.h | two sets of profiles, compared; one call tree, blocks of time, tests, verdicts, rules of a gate
serve          | read   : base tenants serve |  | the web server on the loopback interface, its routes
live/capture   | record : base stream stream/perf live/capture | bpf_shared.h event.h event_handler.h runtime_info.h unwind_table.h unwind_memory.h | the kernel side; loading, CPUs, rings, targets, feature probes, TSC counters
live/proc      | record : base tenants stream services live/proc | event.h event_handler.h meta_keys.h | snapshots of `/proc`: processes and their mappings, facts, control groups; kallsyms
jit/follow     | record : base tenants stream jit/follow | event.h event_handler.h made_frames.h runtime_info.h | perf maps and jitdumps as they grow, by a watcher of each user; requests to JVMs
runtimes/ask   | record : base tenants stream live runtimes runtimes/ask | event.h event_handler.h made_frames.h runtime_info.h | requests about the memory of runtimes while they run, and the reader that answers them
unwind         | record : base tenants elf runtimes unwind | event.h made_frames.h mapping.h unwind_memory.h unwind_state.h unwind_table.h unwind_walk.h | `.eh_frame`, Go tables and instructions → rows → table → store; builders; native unwinding
live           | record : base tenants stream services live/capture files live/proc jit/follow runtimes/ask live | bpf_shared.h event.h event_handler.h runtime_info.h | the live stream; all sources in one order; the table of live processes, and parts that follow them (facts, memory, control groups, JIT files, waits)
session        | record : base tenants elf stream live/capture files live/proc unwind jit jit/follow world symbolize runtimes runtimes/ask live window services filter session | bpf_shared.h event.h profile.h symbolizer.h unwind_memory.h | a live recording, from open to finished profile; what `check -p` finds in a process
agent          | record : base live/proc session formats/out formats/in services serve agent | profile.h meta_keys.h symbolizer.h exporter.h importer.h | continuous profiling; settings, windows, series of services, formats of backends, sinks with spools, budget, metrics
cli            | -      : base tenants elf profile stream live/capture live/proc jit window session formats/out formats/in filter compare serve agent cli | event.h event_handler.h meta_keys.h made_frames.h unwind_table.h profile.h profile_builder.h symbolizer.h exporter.h importer.h | one file per command; the only room that prints
bpf            | -      : | bpf_shared.h event.h event_header.h sample.h runtime_info.h unwind_ahead.h unwind_infer.h unwind_leaf.h unwind_replaced.h unwind_state.h unwind_table.h unwind_walk.h | programs that run in the kernel; `kernel.h` has the kernel structures that they read
sysprof        | -      : | event.h event_header.h sample.h unwind_ahead.h unwind_infer.h unwind_leaf.h unwind_replaced.h unwind_state.h unwind_table.h profile.h profile_builder.h profile_code.h meta_keys.h symbol_result.h | contracts between the rooms
'

# foreign header (a prefix of its name) : the only files that may include it
doors='
bpf/libbpf  : userspace/live/capture/bpf_session_private.h userspace/live/capture/features.c
bpf/bpf.h   : userspace/live/capture/bpf_session.c userspace/live/capture/bpf_session_unwind.c userspace/live/capture/bpf_visits.c userspace/live/capture/features.c userspace/live/capture/tick_rings.c
bpf/btf     : userspace/live/capture/kernel_types.c
libelf      : userspace/elf/elf_private.h
gelf        : userspace/elf/elf_private.h
elfutils/   : userspace/symbolize/dwarf_private.h
dwarf.h     : userspace/symbolize/dwarf_image.c userspace/symbolize/dwarf_units.c userspace/symbolize/dwarf_lines.c userspace/symbolize/dwarf_sources.c userspace/unwind/cfi.c userspace/unwind/cfi_machine.c
zlib        : userspace/base/gzip.c
cjson/      : userspace/formats/in/json.c userspace/serve/source_api.c
cJSON       : userspace/formats/in/json.c
microhttpd  : userspace/serve/server_private.h
curl/       : userspace/agent/http.c
ini.h       : userspace/agent/settings.c
lzma        : userspace/symbolize/minidebug.c
dlfcn       : userspace/symbolize/debuginfod.c userspace/agent/http.c userspace/stream/perf/perf_unpack.c userspace/elf/disassembly.c
libiberty   : userspace/symbolize/demangle.c
seccomp.h   : userspace/tenants/filter.c
demangle.h  : userspace/symbolize/demangle.c
'

# function that registers a callback : the only layers that may call it. A callback is at or below the layer of its
# caller, or it is an observer that session/ registers.
registrars='
process_table__observe : world session
event_queue__set_stage : live
live__set_stage        : session
windows__set_forgetting : session
dso_opener__see        : live
dso_opener__request    : session window
dso_opener__request_by_identity : window
runtime_reader__request    : session
unwind_feed__new       : session
finisher__new          : window
jit_tail__new          : live session
recording_read         : window
perf_data_read         : stream/perf
perf_child__read       : window stream/perf
'

# log.c prints what cli/ requests, and debug lines; output_file.c opens standard output for "-"
printers='userspace/cli/ userspace/base/log.c userspace/base/output_file.c'
forbidden='strcpy strcat sprintf vsprintf atoi atol atof strtok system popen gets'

# rooms that the table has in an archive, in order
rooms_of() { # archive
	awk -F ' *[:|] *' -v archive="$1" '$2 == archive { print $1 }' <<<"$layers" | sort
}

# The Makefile makes the archives that the table has.
check_drawn() {
	diff <(sed -n 's/^RECORD_ROOMS *:= *//p' Makefile | tr -s ' ' '\n' | sort) <(rooms_of record) || {
		echo "Makefile: RECORD_ROOMS are not the rooms of \`record\` in the table of layers"
		return 1
	}
}

check_tree() { # tree
	local files
	cd "$1"
	files=$(find bpf include userspace -name '*.[ch]' 2>/dev/null | sort) || true
	for part in bpf include/sysprof userspace/base userspace/cli; do
		grep -q "^$part/" <<<"$files" || {
			echo "no source found in $part/: nothing was checked"
			return 1
		}
	done
	check_drawn || return 1
	# shellcheck disable=SC2086 # names without blanks, all our own
	awk -v layers="$layers" -v doors="$doors" -v printers="$printers" -v forbidden="$forbidden" -v registrars="$registrars" \
		"$program" $files
}

# shellcheck disable=SC2016 # awk's dollars
program='
function complain(what) {
	printf "%s:%d: %s\n", FILENAME, FNR, what
	bad = 1
}

function refuse(what) {
	print "the table of layers: " what
	bad = 1
}

function has(list, word) {
	return index(" " list " ", " " word " ") > 0
}

function begins(text, prefix) {
	return substr(text, 1, length(prefix)) == prefix
}

BEGIN {
	count = split(layers, lines, "\n")
	for (i = 1; i <= count; i++) {
		if (split(lines[i], part, /[:|]/) < 4)
			continue
		name = part[1]
		gsub(/ /, "", name)
		gsub(/ /, "", part[2])
		gsub(/ +/, " ", part[3])
		gsub(/ +/, " ", part[4])
		archives[name] = part[2]
		directories[name] = part[3]
		headers[name] = part[4]
	}
	check_archives()
	count = split(doors, lines, "\n")
	for (i = 1; i <= count; i++)
		if (split(lines[i], part, / +: /) == 2)
			door[part[1]] = part[2]
	count = split(registrars, lines, "\n")
	for (i = 1; i <= count; i++)
		if (split(lines[i], part, / +: /) == 2)
			registrar[part[1]] = part[2]
	printer_count = split(printers, printer, " ")
	forbidden_words = forbidden
	gsub(/ /, "|", forbidden_words)
}

# What reads recordings depends on nothing that makes them.
function check_archives(    name, count, room, i) {
	for (name in archives) {
		if (archives[name] !~ /^(read|record|-)$/)
			refuse(name "/ is in no archive: " archives[name])
		count = split(directories[name], room, " ")
		for (i = 1; i <= count && archives[name] == "read"; i++)
			if (archives[room[i]] != "read")
				refuse(name "/ is in the archive `read` and may not include " room[i] "/, which is not")
	}
}

FNR == 1 {
	in_comment = 0
	split(FILENAME, path, "/")
	layer = path[1] == "bpf" ? "bpf" : room_of(path[2], path[3])
	if (!(layer in directories))
		complain("directory " layer "/ is in no layer")
	may_print = layer == "bpf"
	for (i = 1; i <= printer_count; i++)
		if (begins(FILENAME, printer[i]))
			may_print = 1
	dual = layer == "bpf" || has(headers["bpf"], substr(FILENAME, length("include/sysprof/") + 1))
	license = dual ? "GPL-2.0-only OR BSD-2-Clause" : "BSD-2-Clause"
	if ($0 != "/* SPDX-License-Identifier: " license " */")
		complain("the first line is not the SPDX line of " license)
}

# The room of a file: the directory in a directory, if that has a row of its own.
function room_of(outer, inner) {
	return (outer "/" inner) in directories ? outer "/" inner : outer
}

# The line without comments, and with its strings and characters emptied.
function code_of(line,    out, c, two) {
	out = ""
	while (line != "") {
		two = substr(line, 1, 2)
		c = substr(line, 1, 1)
		if (in_comment) {
			if (!match(line, /\*\//))
				return out
			line = substr(line, RSTART + 2)
			in_comment = 0
		} else if (two == "/*") {
			in_comment = 1
			line = substr(line, 3)
		} else if (two == "//") {
			return out
		} else if (c == "\"" && match(line, /^"([^"\\]|\\.)*"/)) {
			out = out "\"\""
			line = substr(line, RLENGTH + 1)
		} else if (c == "\047" && match(line, /^\047([^\047\\]|\\.[^\047]*)\047/)) {
			out = out "0"
			line = substr(line, RLENGTH + 1)
		} else {
			out = out c
			line = substr(line, 2)
		}
	}
	return out
}

# The layer whose function it is: where its header says so, by the name of its file.
function owner_of(name) {
	if (name ~ /^(process_table|world)__/)
		return "world"
	if (name ~ /^(event_queue__|recording_)/)
		return "stream"
	if (name ~ /^dso_opener__/)
		return "files"
	if (name ~ /^live__/)
		return "live"
	if (name ~ /^runtime_reader__/)
		return "runtimes/ask"
	if (name ~ /^jit_tail__/)
		return "jit/follow"
	if (name ~ /^unwind_feed__/)
		return "unwind"
	return name ~ /^(windows|finisher)__/ ? "window" : "session"
}

# "runtimes/python/" of "runtimes/python/cpython.h"
function folder_of(header) {
	sub(/[^\/]*$/, "", header)
	return header
}

function check_quoted(header,    slash, directory, part) {
	slash = index(header, "/")
	split(header, part, "/")
	directory = room_of(part[1], part[2])
	if (layer == "bpf") {
		if (slash)
			complain("bpf/ may not include \"" header "\"")
	} else if (header ~ /\.skel\.h$/) {
		if (!has(door["bpf/libbpf"], FILENAME))
			complain("libbpf has its doors elsewhere: \"" header "\"")
	} else if (!slash) {
		complain("\"" header "\" is not named with its directory")
	} else if (!has(directories[layer], directory)) {
		complain(layer "/ may not include \"" header "\"")
	} else if (directory == "runtimes" && header ~ /^runtimes\/.*\// && !begins(FILENAME, "userspace/" folder_of(header))) {
		complain("\"" header "\" is private to its runtime")
	} else if (header ~ /_private\.h$/ && directory != layer) {
		complain("\"" header "\" is private to " directory "/")
	}
}

function check_system(header,    prefix) {
	if (begins(header, "sysprof/")) {
		if (!has(headers[layer], substr(header, 9)))
			complain(layer "/ may not include <" header ">")
		return
	}
	if (layer == "bpf") {
		if (header !~ /^(std(bool|def)|bpf\/bpf_[a-z_]*|linux\/[a-z_]*)\.h$/)
			complain("bpf/ may not include <" header ">")
		return
	}
	for (prefix in door)
		if (begins(header, prefix) && !has(door[prefix], FILENAME))
			complain("<" header "> has its door in " door[prefix])
}

{
	was_comment = in_comment
	code = code_of($0)
	if (!was_comment && match($0, /^[ \t]*#[ \t]*include[ \t]*[<"][^>"]+/)) {
		name = substr($0, RSTART, RLENGTH)
		quoted = name ~ /"/
		sub(/^[^<"]*[<"]/, "", name)
		if (quoted)
			check_quoted(name)
		else
			check_system(name)
	}
	if (match(code, "(^|[^A-Za-z0-9_.>])(" forbidden_words ")[ \t]*\\(")) {
		name = substr(code, RSTART, RLENGTH)
		gsub(/[^a-z]/, "", name)
		complain(name "() is forbidden")
	}
	for (name in registrar)
		if (layer != owner_of(name) && !has(registrar[name], layer) &&
		    match(code, "(^|[^A-Za-z0-9_])" name "[ \t]*\\("))
			complain(name "() registers a callback: that is for " registrar[name])
	if (!may_print && code ~ /(^|[^A-Za-z0-9_.>])(v?printf|puts|putchar|perror)[ \t]*\(/)
		complain("only cli/ prints")
	if (!may_print && code ~ /(^|[^A-Za-z0-9_])(stdout|stderr)([^A-Za-z0-9_]|$)/)
		complain("only cli/ may use standard output and standard error")
	if ($0 ~ /(^|[^A-Za-z0-9_])(TO[D]O|FIX[M]E|X[X]X)([^A-Za-z0-9_]|$)/)
		complain("unfinished work is an issue, not a comment")
}

END { exit bad }
'

# ---- the check of the check ----------------------------------------------------------------------

bsd='/* SPDX-License-Identifier: BSD-2-Clause */'
dual='/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */'

make_good_tree() { # directory
	mkdir -p "$1"/{bpf,include/sysprof}
	for layer in base elf profile stream live/capture files jit/follow window session world symbolize formats/out cli; do
		mkdir -p "$1/userspace/$layer"
		printf '%s\n#include "base/vec.h"\n' "$bsd" >"$1/userspace/$layer/good.c"
	done
	echo "RECORD_ROOMS  := $(rooms_of record | tr '\n' ' ' | sed 's/ $//')" >"$1/Makefile"
	printf '%s\n#include <linux/types.h>\n' "$dual" >"$1/include/sysprof/event.h"
	printf '%s\n#include <bpf/bpf_helpers.h>\n#include <sysprof/event.h>\n' "$dual" >"$1/bpf/a.bpf.c"
	cat >"$1/userspace/formats/out/quiet.c" <<-SOURCE
	$bsd
	/* strcpy(a, b) in a comment,
	 * and printf() on its second line */
	#include <stdio.h>
	void quiet(FILE *f) __attribute__((format(printf, 1, 2)));
	const char *text = "system(\"x\"); // stderr";
	int ecosystem(struct s *s) { return s->system(0) + fprintf(s->out, "stdout"); }
	SOURCE
}

must_pass() { # tree
	(check_tree "$1") || {
		echo "self-test: a tree that keeps the rules was refused"
		return 1
	}
}

must_fail() { # tree, what was planted, what must be said of it
	local said
	said=$(check_tree "$1") && {
		echo "self-test: not found: $2"
		return 1
	}
	grep -q "${3:-planted\|nothing was checked}" <<<"$said" || {
		echo "self-test: found for the wrong reason: $2: $said"
		return 1
	}
}

# directory | a line that breaks a rule there
violations='
userspace/base      | #include "elf/elf_file.h"
userspace/base      | #include <sysprof/event.h>
userspace/elf       | #include "profile/profile.h"
userspace/profile   | #include <sysprof/symbolizer.h>
userspace/live/capture | #include "formats/out/folded.h"
userspace/live/capture | #include "symbolize/symbolize.h"
userspace/live/capture | #include <sysprof/profile.h>
userspace/live/capture | #include "live/proc/proc_snapshot.h"
userspace/files     | #include "jit/follow/jit_find.h"
userspace/session   | #include "runtimes/python/cpython.h"
userspace/runtimes  | #include "runtimes/python/cpython.h"
userspace/runtimes/v8 | #include "runtimes/python/cpython.h"
userspace/jit/follow  | #include "live/capture/target.h"
userspace/stream    | #include "world/recorder.h"
userspace/session   | #include "formats/out/folded.h"
userspace/world     | #include "live/capture/cpu_visit.h"
userspace/window    | #include "session/session.h"
userspace/formats/in   | #include "agent/spool.h"
userspace/symbolize | #include "world/recorder.h"
userspace/symbolize | #include "elf/elf_private.h"
userspace/formats/out  | #include "stream/clock.h"
userspace/formats/out  | #  include <sysprof/event_handler.h>
userspace/formats/out  | #include <sysprof/profile_builder.h>
userspace/formats/out  | #include "profile/profile_builder_private.h"
userspace/formats/out  | #include "folded.h"
userspace/formats/out  | #include "../base/vec.h"
userspace/newlayer  | int x;
bpf                 | #include "base/vec.h"
bpf                 | #include <sysprof/profile.h>
bpf                 | #include <stdio.h>
userspace/world     | #include <bpf/libbpf.h>
userspace/live/capture | #include "sampler.skel.h"
userspace/symbolize | #include <libelf.h>
userspace/formats/out  | #include <zlib.h>
userspace/formats/out  | #include <cjson/cJSON.h>
userspace/cli       | #include <libiberty/demangle.h>
userspace/formats/out  | void f(void) { printf("x"); }
userspace/live/capture | void f(void) { fprintf(stderr, "x"); }
userspace/base      | void f(void) { perror("x"); }
userspace/cli       | void f(char *a, char *b) { strcpy (a, b); }
userspace/cli       | int f(char *a) { return atoi(a); }
userspace/cli       | void f(void) { if (1) system("x"); }
userspace/files     | int f(void) { return process_table__observe(t, o); }
userspace/cli       | void f(void) { event_queue__set_stage(q, s, c); }
userspace/formats/out  | int f(void) { return dso_opener__request (o, i, a, c); }
userspace/base      | /* comment */ char *f(char *a) { return strtok(a, "/*"); }
userspace/base      | char c = 0x27; /* FIX''ME: later */
'

self_test() {
	local tree part line planted
	tree=$(mktemp -d)
	# shellcheck disable=SC2064 # this directory, now
	trap "rm -rf '$tree'" EXIT
	(must_fail "$tree" "an empty tree")
	make_good_tree "$tree"
	must_pass "$tree"
	while IFS='|' read -r part line; do
		part=${part// /}
		[ -n "$part" ] || continue
		line=${line# }
		planted=$tree/$part/planted.c
		mkdir -p "$tree/$part"
		[ "$part" = bpf ] && echo "$dual" >"$planted" || echo "$bsd" >"$planted"
		echo "${line//\'\'/}" >>"$planted"
		(must_fail "$tree" "$part: $line")
		rm "$planted"
	done <<<"$violations"
	echo "int no_license;" >"$tree/userspace/base/planted.c"
	(must_fail "$tree" "a file without SPDX line")
	rm "$tree/userspace/base/planted.c"
	(
		layers=${layers/| read   : base elf files/| read   : base live elf files}
		must_fail "$tree" "a row of \`read\` with a room of \`record\`" 'window/ is in .* may not include live/'
	)
	(
		layers=${layers/| read   : base elf/| other  : base elf}
		must_fail "$tree" "a row with an unknown archive" 'elf/ is in no archive'
	)
	sed -i 's/ unwind//' "$tree/Makefile"
	(must_fail "$tree" "a Makefile without a room of \`record\`" RECORD_ROOMS)
	make_good_tree "$tree"
	must_pass "$tree"
}

# ---- the tables of docs/ARCHITECTURE.md ------------------------------------------------------------

print_layers() {
	echo '| room | archive | contents | may include rooms | headers of `include/sysprof/` |'
	echo '|---|---|---|---|---|'
	awk -F ' *[:|] *' '
		NF >= 5 {
			name = $1
			archive = $2 == "-" ? "" : $2
			rooms = " " $3 " "
			sub(" " name " ", " ", rooms)
			gsub(/^ +| +$/, "", rooms)
			gsub(/\.h/, "", $4)
			path = name == "bpf" ? "bpf/" : name == "sysprof" ? "include/sysprof/" : "userspace/" name "/"
			printf "| `%s` | %s | %s | %s | %s |\n", path, archive, $5, rooms, $4
		}' <<<"$layers"
}

print_libraries() {
	echo '| header | the files that may include it |'
	echo '|---|---|'
	sed -nE 's/^([^ ]+) +: (.*)/| `\1` | \2 |/p' <<<"$doors" | sed -E 's#userspace/([^ ]+)#`\1`#g; s#` `#`, `#g'
}

case ${1:-} in
--print) "print_${2:?layers or libraries}" ;;
"")
	self_test
	check_tree "$top"
	;;
*) check_tree "$1" ;;
esac
