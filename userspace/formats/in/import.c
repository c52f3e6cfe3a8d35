/* SPDX-License-Identifier: BSD-2-Clause */
/* Selects the reader of a file, and describes files that have none. */
#include "formats/in/import.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/gzip.h"
#include "base/minmax.h"
#include "base/utf8.h"
#include "base/wire.h"
#include "formats/in/json.h"
#include "formats/in/text_span.h"

int import_fail(struct import_failure *failure, uint64_t offset, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(failure->what, sizeof(failure->what), format, args);
	va_end(args);
	failure->offset = offset;
	return error;
}

/* Text last: nearly anything can be folded stacks. */
static const struct importer *const importers[] = {
	&firefox_importer, &cpuprofile_importer, &trace_importer,
	&gecko_importer,   &speedscope_importer, &perf_script_importer,
	&pprof_importer,   &folded_importer,	 NULL,
};

#define PERFETTO_PACKETS 4 /* that are looked at */

/* A bare array of events is a trace too. */
static bool is_array(const uint8_t *bytes, size_t size)
{
	const struct json_text text = {(const char *)bytes, (const char *)bytes + size, NULL};
	const char *at = json_skip_spaces(&text, text.start);

	if (at == text.end || *at != '[')
		return false;
	at = json_skip_spaces(&text, at + 1);
	return at == text.end || *at == '{' || *at == ']';
}

/* The tables of the first thread: columns, or, in Gecko's format, a schema and rows. */
static bool has_columns(const struct json_text *text)
{
	const char *threads = json_member_at(text, text->start, "threads"), *samples;

	if (!threads || threads == text->end || *threads != '[')
		return false;
	samples = json_member_at(text, threads + 1, "samples");
	return json_member_at(text, samples, "stack") && !json_member_at(text, samples, "schema");
}

/* The processed format has a version of its own beside Gecko's, but for the first one, of 2016. */
static bool is_gecko(const struct json_text *text)
{
	struct json_value meta = {}, version = {}, processed = {};
	struct json_walk walk;
	int more = json_walk__init(&walk, text, text->start, JSON_OBJECT);

	while (!more && !meta.at && (more = json_walk__next(&walk)) > 0) {
		more = 0;
		if (json_walk__key_is(&walk, "meta"))
			meta = walk.value;
	}
	return json_type(meta) == JSON_OBJECT &&
	       !json_members(text, meta, {"version", &version},
			     {"preprocessedProfileVersion", &processed}) &&
	       version.at && !processed.at && !has_columns(text);
}

enum import_json import_json_kind(const uint8_t *bytes, size_t size)
{
	/* "head": nodes as Chrome wrote them before 57 */
	static const char *const keys[] = {"meta",	 "nodes",	"head",
					   "timeDeltas", "traceEvents", "$schema",
					   "profiles",	 "ph",		NULL};
	static const enum import_json kinds[] = {
		IMPORT_JSON_FIREFOX,	IMPORT_JSON_CPUPROFILE, IMPORT_JSON_CPUPROFILE,
		IMPORT_JSON_CPUPROFILE, IMPORT_JSON_TRACE,	IMPORT_JSON_SPEEDSCOPE,
		IMPORT_JSON_SPEEDSCOPE, IMPORT_JSON_TRACE, /* an event, with others behind it */
	};
	struct import_failure ignored;
	const struct json_text text = {(const char *)bytes, (const char *)bytes + size, &ignored};
	int key = json_first_key(bytes, size, keys);

	if (key == 0 && is_gecko(&text))
		return IMPORT_JSON_GECKO;
	if (key >= 0)
		return kinds[key];
	return is_array(bytes, size) ? IMPORT_JSON_TRACE : IMPORT_JSON_OTHER;
}

/* The type of an ELF file is ET_CORE. */
static bool is_core(const uint8_t *bytes, size_t size)
{
	return size > 17 &&
	       !memcmp(bytes,
		       "\x7f"
		       "ELF",
		       4) &&
	       (bytes[16] == 4 || bytes[17] == 4);
}

/* A word of 32 or 64 bits, in either byte order. */
static uint64_t word_at(const uint8_t *bytes, size_t size, size_t number, bool big)
{
	uint64_t word = 0;

	for (size_t i = 0; i < size; i++)
		word = word << 8 | bytes[number * size + (big ? i : size - 1 - i)];
	return word;
}

/* 0, 3 (numbers of the header that follow), 0 or, of Java, 1, the period in µs, 0. */
static bool is_gperftools(const uint8_t *bytes, size_t size)
{
	for (size_t word = 4; word <= 8; word += 4)
		for (int big = 0; big < 2; big++)
			if (size >= 5 * word && !word_at(bytes, word, 0, big) &&
			    word_at(bytes, word, 1, big) == 3 && word_at(bytes, word, 2, big) < 2)
				return true;
	return false;
}

/*
 * A first field that is a message of messages: pprof's has only numbers. Empty lines look alike, but
 * for their sizes. *first: what the inner one begins with, or 0.
 */
static bool has_nested_message(const uint8_t *bytes, size_t size, uint8_t *first)
{
	struct wire w = wire_of(bytes, size);
	uint64_t outer, inner;
	const uint8_t *begin;

	if (size < 4 || *w.at++ != 0x0a || !wire_varint(&w, &outer) || w.at == w.end)
		return false;
	begin = w.at++;
	if ((*begin != 0x0a && *begin != 0x12) || !wire_varint(&w, &inner))
		return false;
	*first = inner && w.at < w.end ? *w.at : 0;
	return (uint64_t)(w.at - begin) <= outer && inner <= outer - (uint64_t)(w.at - begin);
}

/* Messages of perf_data_converter: an event's attributes begin with a number. */
static bool is_quipper(const uint8_t *bytes, size_t size)
{
	uint8_t first;

	return has_nested_message(bytes, size, &first) && first == 0x08;
}

static bool is_otlp(const uint8_t *bytes, size_t size)
{
	uint8_t first;

	return has_nested_message(bytes, size, &first);
}

/* Functions of Python and Java have names like <module>. */
static bool is_page(const uint8_t *bytes, size_t size)
{
	static const char *const begins[] = {"<!", "<?xml", "<html", "<svg"};

	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++)
		if (size >= strlen(begins[i]) && !memcmp(bytes, begins[i], strlen(begins[i])))
			return true;
	return false;
}

/* What `xctrace export` prints. */
static bool is_xctrace(const uint8_t *bytes, size_t size)
{
	size_t begin = min_u64(size, 1024);

	return memmem(bytes, begin, "<trace-query-result", 19) ||
	       memmem(bytes, begin, "<trace-toc", 10);
}

/* The name of the first file: "run.trace/form.template". */
static bool is_zipped_trace(const uint8_t *bytes, size_t size)
{
	static const char folder[] = ".trace/";

	return size > 30 && !memcmp(bytes, "PK\3\4", 4) &&
	       memmem(bytes + 30, min_u64(size - 30, bytes[26] | bytes[27] << 8), folder,
		      strlen(folder));
}

/* "go 1.22 trace" and zeros */
static bool is_go_trace(const uint8_t *bytes, size_t size)
{
	return size >= 16 && !memcmp(bytes, "go 1.", 5) && memmem(bytes, 16, " trace\0", 7);
}

static bool is_heap_snapshot(const uint8_t *bytes, size_t size)
{
	return json_first_key(bytes, size, (const char *const[]){"snapshot", "nodes", NULL}) == 0;
}

static bool is_otlp_json(const uint8_t *bytes, size_t size)
{
	return json_first_key(bytes, size,
			      (const char *const[]){"resourceProfiles", "traceEvents", "nodes",
						    NULL}) == 0;
}

static bool is_safari(const uint8_t *bytes, size_t size)
{
	return json_first_key(bytes, size,
			      (const char *const[]){"recording", "traceEvents", "nodes", NULL}) ==
	       0;
}

static bool is_stackprof(const uint8_t *bytes, size_t size)
{
	return json_first_key(
		       bytes, size,
		       (const char *const[]){"missed_samples", "traceEvents", "nodes", NULL}) == 0;
}

/* With `pyinstrument -r json`, and sessions (.pyisession). */
static bool is_pyinstrument(const uint8_t *bytes, size_t size)
{
	return json_first_key(bytes, size,
			      (const char *const[]){"target_description", "traceEvents", "nodes",
						    NULL}) == 0;
}

/* "code" first: other files may have such ticks. */
static bool is_prof_process(const uint8_t *bytes, size_t size)
{
	return !json_first_key(bytes, size, (const char *const[]){"code", "ticks", NULL}) &&
	       !json_first_key(bytes, size, (const char *const[]){"ticks", "nodes", NULL});
}

/*
 * Packets of a Perfetto trace: messages one behind the other. The first one begins with a field of the
 * service that writes it (user, sequence, clocks, time, configuration, mark, statistics, id, system, …);
 * what pprof and OTLP have begins with others.
 */
static bool is_perfetto(const uint8_t *bytes, size_t size)
{
	static const uint8_t fields[] = {0x18, 0x32, 0x40, 0x50, 0x8a, 0x9a, 0xa2, 0xb8,
					 0xc2, 0xc8, 0xca, 0xd0, 0xda, 0xe2, 0xea};
	struct wire w = wire_of(bytes, size);
	unsigned int packets = 0;

	for (; w.at < w.end && packets < PERFETTO_PACKETS; packets++) {
		uint64_t length;

		if (*w.at++ != 0x0a || !wire_varint(&w, &length) || !length || w.at == w.end ||
		    (!packets && !memchr(fields, *w.at, sizeof(fields))))
			return false;
		w.at += min_u64(length, (uint64_t)(w.end - w.at));
	}
	return packets > 1;
}

/* Python's marshal of a dictionary by tuples of three: file, line, function. Reference flags are 0x80. */
static bool is_pstats(const uint8_t *bytes, size_t size)
{
	return size >= 3 && (bytes[0] & 0x7f) == '{' && (bytes[1] & 0x7f) == ')' && bytes[2] == 3;
}

/* "goroutine 1 [running]:", of /debug/pprof with debug=2, or of a crash. */
static bool is_goroutines(const uint8_t *bytes, size_t size)
{
	static const char begin[] = "goroutine ";
	const uint8_t *end = memchr(bytes, '\n', min_u64(size, 256));
	size_t length = end ? (size_t)(end - bytes) : 0;

	return length > strlen(begin) + 2 && !memcmp(bytes, begin, strlen(begin)) &&
	       !memcmp(end - 2, "]:", 2);
}

/*
 * "  libc.so.1`read+0xa", as ustack() prints frames. perf's text may have a name of C++ like that,
 * behind an address and a space, and with a file behind it: "401000 `anonymous namespace'::f+0x1 (a)".
 */
static bool is_dtrace_frame(const char *at, const char *end)
{
	const char *tick = memchr(at, '`', (size_t)(end - at));
	const char *offset = tick ? memmem(tick, (size_t)(end - tick), "+0x", 3) : NULL;

	if (*at != ' ' || !offset || memchr(offset, '(', (size_t)(end - offset)))
		return false;
	while (at < tick && *at == ' ')
		at++;
	return at < tick && !memchr(at, ' ', (size_t)(tick - at));
}

static bool is_dtrace(const uint8_t *bytes, size_t size)
{
	const char *at = (const char *)bytes, *end = at + min_u64(size, 4096), *newline;

	for (; at < end; at = newline + 1) {
		newline = memchr(at, '\n', (size_t)(end - at)) ?: end;
		if (is_dtrace_frame(at, newline))
			return true;
	}
	return false;
}

/* A number of its version: folded stacks may begin with the name of a thread like that. */
static bool is_austin(const uint8_t *bytes, size_t size)
{
	return size > 3 && !memcmp(bytes, "MOJ", 3) && bytes[3] < 0x20;
}

static bool takes_number(struct span *text, const char *before)
{
	const char *at = text->at;

	if (!span_begins(*text, before))
		return false;
	at = text->at += strlen(before);
	while (text->at < text->end && is_digit(*text->at))
		text->at++;
	return text->at > at;
}

/* The beginning of a text without its first lines, if these are empty or comments. */
static struct span behind_comments(const uint8_t *bytes, size_t size)
{
	struct span text = {(const char *)bytes, (const char *)bytes + min_u64(size, 1024)};

	while (text.at < text.end && strchr("#\r\n", *text.at) && *text.at) {
		const char *end = line_end(text.at, text.end);

		text.at = end + (end < text.end);
	}
	return text;
}

/* Without its header: "P12;T0x7f…;…", and "Process 12;Thread 34;…" of the first versions. */
static bool is_austin_text(const uint8_t *bytes, size_t size)
{
	struct span text = behind_comments(bytes, size);
	struct span again = text;

	return (takes_number(&text, "P") && takes_number(&text, ";T")) ||
	       (takes_number(&again, "Process ") && takes_number(&again, ";Thread "));
}

static bool is_callgrind(const uint8_t *bytes, size_t size)
{
	static const char *const begins[] = {"version: ", "creator: ", "positions: ", "events: "};
	struct span text = behind_comments(bytes, size);

	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++)
		if (span_begins(text, begins[i]))
			return true;
	return size >= 18 && !memcmp(bytes, "# callgrind format", 18);
}

/* "v 10300 3": its version, and that of the format. */
static bool is_heaptrack(const uint8_t *bytes, size_t size)
{
	struct span text = {(const char *)bytes, (const char *)bytes + min_u64(size, 64)};

	return takes_number(&text, "v 1") && takes_number(&text, " ") && span_begins(text, "\n");
}

/* The level, and what begins a block, or the end of an empty file. */
static bool is_bzip2(const uint8_t *bytes, size_t size)
{
	return size >= 10 && !memcmp(bytes, "BZh", 3) && bytes[3] >= '1' && bytes[3] <= '9' &&
	       (!memcmp(bytes + 4, "1AY&SY", 6) || !memcmp(bytes + 4, "\x17rE8P\x90", 6));
}

static bool begin_has(const uint8_t *bytes, size_t size, const char *text)
{
	return memmem(bytes, min_u64(size, 1024), text, strlen(text));
}

/* What `pprof -top`, -raw, -traces and -list print: lines that begin like a stack and a number. */
static bool is_pprof_text(const uint8_t *bytes, size_t size)
{
	return begin_has(bytes, size, "Showing nodes accounting for ") ||
	       begin_has(bytes, size, "\nPeriod: ") ||
	       begin_has(bytes, size, "-----------+------------") ||
	       begin_has(bytes, size, "\nROUTINE ======");
}

static bool is_bpftrace(const uint8_t *bytes, size_t size)
{
	return size > 3 && (!memcmp(bytes, "@[\n", 3) || begin_has(bytes, size, "\n@[\n"));
}

/* "@ inst_retired.any [35705 samples]" */
static bool is_pmcstat(const uint8_t *bytes, size_t size)
{
	const uint8_t *end = memchr(bytes, '\n', min_u64(size, 256));

	return end && size > 2 && !memcmp(bytes, "@ ", 2) && begin_has(bytes, size, " samples]\n");
}

/* "\tSun Aug  6 14:52 2023 Time and Allocation Profiling Report  (Final)" */
static bool is_ghc(const uint8_t *bytes, size_t size)
{
	return size && *bytes == '\t' &&
	       begin_has(bytes, size, " Time and Allocation Profiling Report ");
}

/* `+RTS -pj` */
static bool is_ghc_json(const uint8_t *bytes, size_t size)
{
	return json_first_key(
		       bytes, size,
		       (const char *const[]){"rts_arguments", "traceEvents", "nodes", NULL}) == 0;
}

static bool is_vtune(const uint8_t *bytes, size_t size)
{
	return begin_has(bytes, size, "Function Stack,CPU Time:Self");
}

static bool is_flamebearer(const uint8_t *bytes, size_t size)
{
	return json_first_key(bytes, size,
			      (const char *const[]){"flamebearer", "traceEvents", "nodes", NULL}) ==
	       0;
}

/* "format":"profileJSONWithSymbolicationTable,1" */
static bool is_cleopatra(const uint8_t *bytes, size_t size)
{
	return json_first_key(bytes, size,
			      (const char *const[]){"profileJSON", "traceEvents", "nodes", NULL}) ==
	       0;
}

static bool is_dhat(const uint8_t *bytes, size_t size)
{
	return json_first_key(
		       bytes, size,
		       (const char *const[]){"dhatFileVersion", "traceEvents", "nodes", NULL}) == 0;
}

/* Its lines of counts look like those of perf script. */
static bool is_pstats_text(const uint8_t *bytes, size_t size)
{
	return begin_has(bytes, size, " function calls ") &&
	       begin_has(bytes, size, "\n   Ordered by: ");
}

static bool is_perf_stat(const uint8_t *bytes, size_t size)
{
	return begin_has(bytes, size, "\n Performance counter stats for ");
}

/* Stacks, each with a line "    -                NAME (PID)" below it, or one without a PID. */
static bool is_bcc(const uint8_t *bytes, size_t size)
{
	static const char task[] = "\n    -                ";

	return memmem(bytes, min_u64(size, 65536), task, strlen(task));
}

/* Where the column of addresses ends, 16 wide behind two blanks, or behind one at the begin; NULL: nowhere. */
static const char *address_end(struct span line)
{
	for (const char *at = line.at + 1, *hex; at + 17 < line.end; at++) {
		for (hex = at; hex < at + 12 && *hex == ' ';)
			hex++;
		if (at[-1] != ' ' || (at > line.at + 1 && at[-2] != ' ') || at[16] != ' ')
			continue;
		while (hex < at + 16 && hex_digit(*hex) >= 0)
			hex++;
		if (hex == at + 16)
			return hex;
	}
	return NULL;
}

/* perf script -F comm,ip,sym of a recording without call chains: a line a sample, of which an address is sure. */
static bool is_flat_perf_script(const uint8_t *bytes, size_t size)
{
	const char *at = (const char *)bytes, *end = at + min_u64(size, 4096), *column;
	bool all_begin = true, has_letter = false;

	for (const char *newline; at < end && (newline = memchr(at, '\n', (size_t)(end - at)));
	     at = newline + 1) {
		column = address_end((struct span){at, newline});
		if (!column)
			return false;
		all_begin &= column == at + 17;
		for (const char *digit = column; digit[-1] != ' '; digit--)
			has_letter |= !is_digit(digit[-1]);
	}
	return has_letter && (all_begin || !perf_script_importer.recognizes(bytes, size));
}

#define UNPACK(command) "`" command " FILE | sysprof report -` reads it"
#define OTLP		"a message of OTLP, which is not read; give the profile it was made of"
#define GO_TEXT(what)                                                                              \
	"a list of " what                                                                          \
	", as Go's /debug/pprof has it as text; its /debug/pprof/profile is a pprof file with "    \
	"CPU time"
#define HPROF                                                                                      \
	"the text of Java's hprof; `stackcollapse-hprof` of hprof2flamegraph folds its CPU samples"
#define BCC    "stacks of a tool of bcc; its option -f folds them"
#define AUSTIN "a file of Austin; `austin2speedscope` makes one that is read"
#define RBSPY  "a raw file of rbspy; `rbspy report --format speedscope` makes one that is read"
#define ART    "a trace of methods of Android's ART; the Firefox Profiler opens it"
#define TRACE_FOLDED                                                                               \
	"`xctrace export` and `inferno-collapse-xctrace` make folded stacks of a .trace"
#define INSTRUMENTS "a trace of Instruments, zipped; " TRACE_FOLDED
#define INSTRUMENTS_TABLE                                                                          \
	"a table copied from Instruments; `stackcollapse-instruments.pl` folds a call tree's"

/*
 * Formats that are not read, and what to do with them. They come before the guesses of readers:
 * nearly any text has a line that ends in a number.
 */
static const struct {
	const char *magic;
	size_t size;
	bool (*is)(const uint8_t *bytes, size_t size); /* instead of a magic */
	const char *what;
} foreign[] = {
	{"PERFILE2", 8, NULL, "a perf.data file packed by gzip; " UNPACK("zcat")},
	{"SYSPROF\n", 8, NULL, "a recording packed by gzip; " UNPACK("zcat")},
	{"PERFFILE", 8, NULL, "a perf.data file in perf's first format, which is not read"},
	{"FLR\0", 4, NULL,
	 "a Java Flight Recording; async-profiler's jfrconv makes folded stacks or pprof"},
	{"Nettrace", 8, NULL,
	 "a .nettrace file; `dotnet-trace convert --format Speedscope` makes one that is read"},
	{NULL, 0, is_core, "a core dump, which has no samples"},
	{"\x7f"
	 "ELF",
	 4, NULL,
	 "an ELF file, which has no samples; `sysprof record -- PROGRAM` takes those of a program"},
	{NULL, 0, is_zipped_trace, INSTRUMENTS},
	{"PK\3\4", 4, NULL, "a zip archive; " UNPACK("unzip -p")},
	{"\xfd"
	 "7zXZ\0",
	 6, NULL, "packed by xz; " UNPACK("xzcat")},
	{"\x28\xb5\x2f\xfd", 4, NULL, "packed by zstd; " UNPACK("zstdcat")},
	{NULL, 0, is_bzip2, "packed by bzip2; " UNPACK("bzcat")},
	{NULL, 0, is_xctrace,
	 "XML of Instruments; `inferno-collapse-xctrace` folds its time-profile table"},
	{NULL, 0, is_page, "a page or an image, from which nothing is read"},
	{"SQLite format 3", 15, NULL, "an SQLite database"},
	{NULL, 0, is_callgrind, "a callgrind file; open it in KCachegrind"},
	{"goroutine profile: ", 19, NULL, GO_TEXT("goroutines")},
	{NULL, 0, is_goroutines, GO_TEXT("goroutines")},
	{"threadcreate profile: ", 22, NULL, GO_TEXT("threads")},
	{"--- mutex:", 10, NULL, GO_TEXT("locks")},
	{"--- contention:", 15, NULL, GO_TEXT("locks")},
	{"--- contentionz ", 16, NULL, "a list of locks of gperftools, which has no CPU time"},
	{"--- heapz ", 10, NULL, "a heap profile of gperftools, which has no CPU time"},
	{"--- threadz ", 12, NULL, "a list of threads of gperftools, which has no CPU time"},
	{"heap profile: ", 14, NULL,
	 "a heap profile as text; without ?debug=1 Go's /debug/pprof makes a pprof file, and "
	 "its /debug/pprof/profile one with CPU time"},
	{NULL, 0, is_gperftools,
	 "a profile in gperftools' own format; `pprof -proto PROGRAM FILE` makes a pprof file"},
	{NULL, 0, is_go_trace,
	 "an execution trace of Go, which has no CPU time; Go's /debug/pprof/profile is a pprof "
	 "file with it"},
	{NULL, 0, is_perfetto,
	 "a trace of Perfetto, which is not read; `traceconv profile --perf` makes pprof files of "
	 "its CPU samples"},
	{NULL, 0, is_quipper,
	 "a file of perf_data_converter's quipper; give the perf.data that it was made from"},
	{NULL, 0, is_otlp, OTLP},
	{NULL, 0, is_otlp_json, OTLP},
	{NULL, 0, is_heap_snapshot,
	 "a heap snapshot; open it in the Memory panel of Chrome's DevTools"},
	{NULL, 0, is_safari, "a timeline of Safari; open it in its Web Inspector"},
	{"\x04\x08{", 3, NULL,
	 "a stackprof dump; `stackprof --stackcollapse` makes folded stacks of it"},
	{NULL, 0, is_stackprof,
	 "JSON of stackprof; `stackprof --stackcollapse` makes folded stacks of its dump"},
	{NULL, 0, is_pyinstrument,
	 "JSON of pyinstrument; `pyinstrument -r speedscope` makes what is read, also of a session "
	 "(`--load`)"},
	{NULL, 0, is_prof_process,
	 "a log of `node --prof` as JSON; `node --cpu-prof` writes what is read"},
	{"bplist00", 8, NULL, "a binary property list, as Instruments has; " TRACE_FOLDED},
	{NULL, 0, is_pstats,
	 "a profile of Python's cProfile, which counts calls and has no stacks; open it with "
	 "`python3 -m pstats`"},
	{NULL, 0, is_pstats_text,
	 "the text of Python's cProfile, which counts calls and has no stacks"},
	{"Statistical profiling result from ", 34, NULL,
	 "the text of `node --prof-process`; `node --cpu-prof` writes what is read"},
	{NULL, 0, is_austin, AUSTIN},
	{"# austin: ", 10, NULL, AUSTIN}, /* its numbers are times */
	{NULL, 0, is_austin_text, AUSTIN},
	{"rbspy01\n", 8, NULL, RBSPY},
	{"rbspy02\n", 8, NULL, RBSPY},
	{NULL, 0, is_heaptrack, "a file of heaptrack, which has memory and no CPU time"},
	{"heap_v2/", 8, NULL, "a heap profile of jemalloc, which has no CPU time"},
	{"memray", 7, NULL, "a file of memray, which has memory and no CPU time"},
	{"JAVA PROFILE 1.0.1, created", 27, NULL, HPROF},
	{"CPU SAMPLES BEGIN (", 19, NULL, HPROF},
	{"JAVA PROFILE ", 13, NULL, "a heap dump of Java, which has no CPU time"},
	{"*version\n", 9, NULL, ART},
	{"SLOW\2\0", 6, NULL, ART},
	{"SLOW\3\0", 6, NULL, ART},
	{"SLOW\xf2\0", 6, NULL, ART},
	{"SLOW\xf3\0", 6, NULL, ART},
	{"gmon\1", 5, NULL, "a profile of gprof, which has no stacks; open it with `gprof`"},
	{"Flat profile:\n", 14, NULL, "the text of gprof, which has no stacks"},
	{"v8-version,", 11, NULL, "a log of `node --prof`; `node --cpu-prof` writes what is read"},
	{"# To display the perf.data header", 33, NULL,
	 "the text of `perf report`; give perf.data itself, or the text of `perf script`"},
	{NULL, 0, is_perf_stat,
	 "the text of `perf stat`, which counts and has no samples; `perf record` takes them"},
	{"\x17\x08\x44tracing", 10, NULL, "a file of trace-cmd, which has no samples"},
	{"\x5e\x97\xca\xfd", 4, NULL,
	 "a capture of GNOME Sysprof, a different program; open it there"},
	{NULL, 0, is_pprof_text, "the text of pprof; give the file that it was made from"},
	{NULL, 0, is_dtrace, "stacks of DTrace; `stackcollapse.pl` folds them"},
	{NULL, 0, is_pmcstat, "stacks of pmcstat; `stackcollapse-pmc.pl` folds them"},
	{"Analysis of sampling ", 21, NULL,
	 "the text of macOS's `sample`; `stackcollapse-sample.awk` folds it"},
	{NULL, 0, is_vtune, "a table of VTune; `stackcollapse-vtune.pl` folds it"},
	{"Level,Function Name,", 20, NULL,
	 "a table of Visual Studio; `stackcollapse-vsprof.pl` folds it"},
	{NULL, 0, is_ghc,
	 "a report of GHC's profiler; `inferno-collapse-ghcprof` folds that of `+RTS -P`"},
	{NULL, 0, is_ghc_json, "a report of GHC's profiler as JSON; speedscope opens it"},
	{NULL, 0, is_flamebearer, "a flame graph of Pyroscope; export the profile as pprof"},
	{NULL, 0, is_cleopatra,
	 "a profile of Cleopatra, which the Firefox Profiler has replaced in 2016; record a new one"},
	{NULL, 0, is_dhat, "a heap profile of DHAT, which has no CPU time"},
	{"QPERFSTREAM", 11, NULL,
	 "a file of Hotspot's perfparser; give the perf.data that it was made from"},
	{"Sampling at ", 12, NULL, BCC},
	{"Tracing off-CPU time (us) of ", 29, NULL, BCC},
	{"Tracing blocked time (us) by ", 29, NULL, BCC},
	{NULL, 0, is_bcc, BCC},
	{NULL, 0, is_flat_perf_script,
	 "the text of `perf script` without call chains, and without task or event; `perf script -F "
	 "comm,pid,tid,time,period,event,ip,sym,dso` prints what is read"},
	{NULL, 0, is_bpftrace, "stacks of bpftrace; `stackcollapse-bpftrace.pl` folds them"},
	{"SIMPLEPERF", 10, NULL,
	 "a trace of simpleperf; give its perf.data, or the text of its `report-sample`"},
	{"Running Time\t", 13, NULL, INSTRUMENTS_TABLE},
	{"Bytes Used\t", 11, NULL, INSTRUMENTS_TABLE},
	{"Weight\t", 7, NULL, INSTRUMENTS_TABLE},
};

/* 0: it is none of these. */
static int refuse_foreign(const struct import_request *request, struct import_failure *failure)
{
	for (size_t i = 0; i < sizeof(foreign) / sizeof(*foreign); i++)
		if (foreign[i].is
			    ? foreign[i].is(request->bytes, request->size)
			    : request->size >= foreign[i].size &&
				      !memcmp(request->bytes, foreign[i].magic, foreign[i].size))
			return import_fail(failure, 0, -EPROTONOSUPPORT, "it is %s",
					   foreign[i].what);
	return 0;
}

static int refuse(const struct import_request *request, struct import_failure *failure)
{
	if (!request->size)
		return import_fail(failure, 0, -EBADMSG, "the file is empty");
	return import_fail(
		failure, 0, -EBADMSG,
		"it is neither a recording nor a profile of a format that is read here "
		"(.cpuprofile, Chrome trace, Firefox Profiler, speedscope, pprof, perf script, "
		"folded stacks, perf.data)");
}

/*
 * A profile that is a member of another object. What Firefox's developer tools saved until version 97
 * has Gecko's own format; answers of the DevTools protocol to Profiler.stop, with or without the rest
 * of the message, have a .cpuprofile. NULL: it is none.
 */
static const struct importer *find_wrapped(const struct import_request *request,
					   struct json_value *inner)
{
	struct import_failure ignored;
	const char *bytes = (const char *)request->bytes;
	const struct json_text text = {bytes, bytes + request->size, &ignored};
	struct json_value type = {}, result = {};
	struct json_walk walk;
	int more;

	*inner = (struct json_value){};
	if (import_json_kind(request->bytes, request->size) != IMPORT_JSON_OTHER ||
	    json_walk__init(&walk, &text, text.start, JSON_OBJECT))
		return NULL;
	while ((more = json_walk__next(&walk)) > 0) {
		if (json_walk__key_is(&walk, "profile"))
			*inner = walk.value;
		else if (json_walk__key_is(&walk, "fileType"))
			type = walk.value;
		else if (json_walk__key_is(&walk, "result"))
			result = walk.value;
	}
	if (more || json_expect_end(&text, walk.at))
		return NULL;
	if (!inner->at && json_type(result) == JSON_OBJECT &&
	    json_members(&text, result, {"profile", inner}))
		return NULL;
	if (json_type(*inner) != JSON_OBJECT)
		return NULL;
	if (json_is(type, "\"Recorded Performance Data\""))
		return &gecko_importer;
	return import_json_kind((const uint8_t *)inner->at, (size_t)(inner->end - inner->at)) ==
			       IMPORT_JSON_CPUPROFILE
		       ? &cpuprofile_importer
		       : NULL;
}

static int fail_cut(const struct import_request *request, const char *why,
		    struct import_failure *failure)
{
	return import_fail(failure, request->cut, -EBADMSG, "its gzip data are cut off%s", why);
}

/* Which of them it is says what the profile cannot have. */
static int read_by(const struct importer *importer, const struct import_request *request,
		   struct import_failure *failure)
{
	if (request->cut && !importer->reads_cut)
		return fail_cut(request,
				", and what is missing may name, time or weigh what is there",
				failure);
	profile_builder__meta(request->builder, META_FORMAT, importer->name);
	return importer->read(request, failure);
}

static int read_unpacked(const struct import_request *request, struct import_failure *failure)
{
	struct import_request inner = *request;
	const struct importer *importer;
	struct json_value value;
	int err = refuse_foreign(request, failure);

	if (err)
		return err;
	importer = find_wrapped(request, &value);
	if (importer) {
		inner.bytes = (const uint8_t *)value.at;
		inner.size = (size_t)(value.end - value.at);
		err = read_by(importer, &inner, failure);
		failure->offset += err ? (uint64_t)(inner.bytes - request->bytes) : 0;
		return err;
	}
	for (const struct importer *const *i = importers; *i; i++)
		if ((*i)->recognizes(request->bytes, request->size))
			return read_by(*i, request, failure);
	return request->cut ? fail_cut(request, "", failure) : refuse(request, failure);
}

/* The unit of UTF-16 number i; 0: there is none. */
static uint32_t utf16_unit(const struct import_request *r, size_t i, bool big)
{
	const uint8_t *at = r->bytes + 2 * i;

	if (i >= r->size / 2)
		return 0;
	return big ? (uint32_t)at[0] << 8 | at[1] : (uint32_t)at[1] << 8 | at[0];
}

/* Text in UTF-16, as PowerShell writes what a program prints; halves of characters are replaced. */
static int read_utf16(const struct import_request *request, struct import_failure *failure)
{
	size_t units = request->size / 2;
	_cleanup_free_ char *bytes = malloc(4 * units); /* utf8_put() needs as much */
	struct import_request text = *request;
	bool big = request->bytes[0] == 0xfe;

	if (!bytes)
		return -ENOMEM;
	text.bytes = (const uint8_t *)bytes;
	text.size = 0;
	for (size_t i = 1; i < units; i++) {
		uint32_t c = utf16_unit(request, i, big), low = utf16_unit(request, i + 1, big);

		if (c >> 10 == 0xd800 >> 10 && low >> 10 == 0xdc00 >> 10) {
			c = 0x10000 + ((c & 0x3ff) << 10 | (low & 0x3ff));
			i++;
		} else if (c >> 11 == 0xd800 >> 11) {
			c = 0xfffd;
		}
		text.size += utf8_put(bytes + text.size, c);
	}
	return read_unpacked(&text, failure);
}

static int read_text(const struct import_request *request, struct import_failure *failure)
{
	struct import_request text = *request;

	if (request->size >= 4 &&
	    (!memcmp(request->bytes, "\xff\xfe", 2) || !memcmp(request->bytes, "\xfe\xff", 2)))
		return read_utf16(request, failure);
	if (request->size > 3 && !memcmp(request->bytes, "\xef\xbb\xbf", 3)) {
		text.bytes += 3; /* a byte order mark, of which UTF-8 has no need */
		text.size -= 3;
	}
	return read_unpacked(&text, failure);
}

static int read_packed(const struct import_request *request, struct import_failure *failure)
{
	uint64_t limit = min_u64(IMPORT_SIZE_MAX,
				 request->size * (uint64_t)IMPORT_RATIO_MAX + IMPORT_RATIO_FREE);
	struct import_request unpacked = *request;
	_cleanup_free_ uint8_t *bytes = NULL;
	uint64_t offset;
	int err = gunzip_bytes(request->bytes, request->size, limit, &bytes, &unpacked.size,
			       &offset);

	if (err == -EFBIG)
		return import_fail(
			failure, offset, -E2BIG,
			"its gzip data unpack to more than %llu MiB, which no profile of "
			"that size does",
			(unsigned long long)(limit >> 20));
	if (err == -EBADMSG)
		return import_fail(failure, offset, err, "its gzip data are damaged");
	if (err && err != -ENODATA)
		return err;
	unpacked.bytes = bytes;
	unpacked.cut = err ? request->size : 0;
	if (!unpacked.size)
		return err ? fail_cut(&unpacked, "", failure) : refuse(&unpacked, failure);
	if (is_gzip(bytes, unpacked.size))
		return import_fail(failure, 0, -EBADMSG, "it was packed by gzip twice");
	return read_text(&unpacked, failure);
}

int import_names(const struct json_text *text, struct json_value own, struct profile_builder *b,
		 struct profile_names *to)
{
#define X(field, label) {label, offsetof(struct profile_names, field)},
	static const struct {
		const char *label;
		size_t field;
	} names[] = {PROCESS_NAMES(X)};
#undef X
	enum { COUNT = sizeof(names) / sizeof(*names) };
	struct json_value values[COUNT] = {};
	struct json_member wanted[COUNT + 1] = {};
	int err;

	for (size_t i = 0; i < COUNT; i++)
		wanted[i] = (struct json_member){names[i].label, &values[i]};
	err = json_find_members(text, own, wanted);
	for (size_t i = 0; i < COUNT && !err; i++) {
		_cleanup_free_ char *copy = NULL;

		if (json_type(values[i]) != JSON_STRING)
			continue;
		err = json_string_copy(text, values[i], &copy);
		if (!err)
			*(struct string_id *)((char *)to + names[i].field) =
				profile_builder__string(b, copy);
	}
	return err;
}

int import_event(const struct json_text *text, struct json_value object, struct profile_builder *b)
{
	struct profile *session = profile_builder__session(b);
	_cleanup_free_ char *event_name = NULL, *unit_name = NULL, *cpu_text = NULL,
			    *part_text = NULL;
	struct json_value event, unit, known, times, tick, cpu, part;
	int64_t tick_cpu = 0;
	int err = json_members(text, object, {"event", &event}, {"eventUnit", &unit},
			       {"samplesKnown", &known}, {"timesKnown", &times},
			       {"tickCpuNs", &tick}, {"cpuTimeIs", &cpu}, {"partOf", &part});

	if (!err && tick.at)
		err = json_integer(text, tick, "tickCpuNs", 0, INT64_MAX, &tick_cpu);
	if (!err && json_type(cpu) == JSON_STRING)
		err = json_string_copy(text, cpu, &cpu_text);
	if (!err && json_type(part) == JSON_STRING)
		err = json_string_copy(text, part, &part_text);
	if (part_text)
		profile_builder__meta(b, META_PART_OF, part_text);
	if (cpu_text)
		profile_builder__meta(b, META_CPU_TIME, cpu_text);
	session->untimed = json_is(times, "false");
	session->uncounted = json_is(known, "false");
	session->tick_cpu = session->uncounted ? (uint64_t)tick_cpu : 0;
	if (err || json_type(event) != JSON_STRING || json_type(unit) != JSON_STRING)
		return err;
	err = json_string_copy(text, event, &event_name)
		      ?: json_string_copy(text, unit, &unit_name);
	if (err || !*event_name)
		return err;
	session->event = profile_builder__string(b, event_name);
	session->event_unit = profile_builder__string(b, *unit_name ? unit_name : "count");
	return 0;
}

void import_weigh_by_cpu(struct profile_builder *b)
{
	struct profile *session = profile_builder__session(b);

	session->event = profile_builder__string(b, EVENT_CPU);
	session->event_unit = profile_builder__string(b, EVENT_CPU_UNIT);
}

bool import_events_are_cpu(struct profile_builder *b)
{
	const struct profile *session = profile_builder__session(b);

	return !session->uncounted && session->event.v &&
	       !strcmp(profile_builder__get_string(b, session->event), EVENT_CPU) &&
	       !strcmp(profile_builder__get_string(b, session->event_unit), EVENT_CPU_UNIT);
}

static int read_any(const struct import_request *request, struct import_failure *failure)
{
	return is_gzip(request->bytes, request->size) ? read_packed(request, failure)
						      : read_text(request, failure);
}

int import_profile(const struct import_request *request, struct import_failure *failure)
{
	int err;

	if (request->size > IMPORT_SIZE_MAX)
		return import_fail(failure, IMPORT_SIZE_MAX, -E2BIG, "it is larger than %llu GiB",
				   IMPORT_SIZE_MAX >> 30);
	err = read_any(request, failure) ?: profile_builder__error(request->builder);
	if (err == -ENOMEM)
		import_fail(failure, 0, err, "out of memory");
	return err;
}
