/* SPDX-License-Identifier: BSD-2-Clause */
#include "formats/in/foreign.h"

#include <errno.h>
#include <string.h>

#include "base/minmax.h"
#include "base/wire.h"
#include "formats/in/import.h"
#include "formats/in/json.h"
#include "formats/in/text_span.h"

#define PERFETTO_PACKETS 4 /* that are looked at */

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

static bool is_massif(const uint8_t *bytes, size_t size)
{
	return size > 6 && !memcmp(bytes, "desc: ", 6) && begin_has(bytes, size, "\ntime_unit: ");
}

/* "0 usleep <internal>:-1", the innermost frame, and "1 main /a.php:3" or an empty line behind it */
static bool is_phpspy(const uint8_t *bytes, size_t size)
{
	struct span text = {(const char *)bytes, (const char *)bytes + min_u64(size, 4096)};
	const char *end = line_end(text.at, text.end), *digit = end;
	struct span next = {end + (end < text.end), text.end};

	while (digit > text.at && is_digit(digit[-1]))
		digit--;
	digit -= digit > text.at && digit[-1] == '-';
	return span_begins(text, "0 ") && digit < end && digit[-1] == ':' &&
	       (span_begins(next, "1 ") || span_begins(next, "\n") || span_begins(next, "#"));
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

/* Its lines of counts look like those of perf script. */
static bool is_pstats_text(const uint8_t *bytes, size_t size)
{
	return begin_has(bytes, size, " function calls ") &&
	       begin_has(bytes, size, "\n   Ordered by: ");
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
#define PPROF_TEXT "the text of pprof; give the file that it was made from"
#define BCC	   "stacks of a tool of bcc; its option -f folds them"
#define AUSTIN	   "a file of Austin; `austin2speedscope` makes one that is read"
#define RBSPY	   "a raw file of rbspy; `rbspy report --format speedscope` makes one that is read"
#define ART	   "a trace of methods of Android's ART; the Firefox Profiler opens it"
#define TRACE_FOLDED                                                                               \
	"`xctrace export` and `inferno-collapse-xctrace` make folded stacks of a .trace"
#define INSTRUMENTS "a trace of Instruments, zipped; " TRACE_FOLDED
#define INSTRUMENTS_TABLE                                                                          \
	"a table copied from Instruments; `stackcollapse-instruments.pl` folds a call tree's"

#define BEGINS(text) AT_BEGIN, text, sizeof(text) - 1, NULL
#define HAS(text)    IN_BEGIN, text, 0, NULL /* in the first KiB */
#define KEY(text)    FIRST_KEY, text, 0, NULL
#define IS(function) BY_FUNCTION, NULL, 0, function

/*
 * Formats that are not read, and what to do with them. They come before the guesses of readers:
 * nearly any text has a line that ends in a number.
 */
static const struct foreign {
	enum { AT_BEGIN, IN_BEGIN, FIRST_KEY, BY_FUNCTION } how;
	const char *text;
	size_t size;
	bool (*is)(const uint8_t *bytes, size_t size);
	const char *what;
} foreign[] = {
	{BEGINS("PERFILE2"), "a perf.data file packed by gzip; " UNPACK("zcat")},
	{BEGINS("SYSPROF\n"), "a recording packed by gzip; " UNPACK("zcat")},
	{BEGINS("PERFFILE"), "a perf.data file in perf's first format, which is not read"},
	{BEGINS("FLR\0"),
	 "a Java Flight Recording; async-profiler's jfrconv makes folded stacks or pprof"},
	{BEGINS("Nettrace"),
	 "a .nettrace file; `dotnet-trace convert --format Speedscope` makes one that is read"},
	{IS(is_core), "a core dump, which has no samples"},
	{BEGINS("\x7f"
		"ELF"),
	 "an ELF file, which has no samples; `sysprof record -- PROGRAM` takes those of a program"},
	{IS(is_zipped_trace), INSTRUMENTS},
	{BEGINS("PK\3\4"), "a zip archive; " UNPACK("unzip -p")},
	{BEGINS("\xfd"
		"7zXZ\0"),
	 "packed by xz; " UNPACK("xzcat")},
	{BEGINS("\x28\xb5\x2f\xfd"), "packed by zstd; " UNPACK("zstdcat")},
	{IS(is_bzip2), "packed by bzip2; " UNPACK("bzcat")},
	{IS(is_xctrace),
	 "XML of Instruments; `inferno-collapse-xctrace` folds its time-profile table"},
	{IS(is_page), "a page or an image, from which nothing is read"},
	{BEGINS("SQLite format 3"), "an SQLite database"},
	{IS(is_callgrind), "a callgrind file; open it in KCachegrind"},
	{BEGINS("goroutine profile: "), GO_TEXT("goroutines")},
	{IS(is_goroutines), GO_TEXT("goroutines")},
	{BEGINS("threadcreate profile: "), GO_TEXT("threads")},
	{BEGINS("--- mutex:"), GO_TEXT("locks")},
	{BEGINS("--- contention:"), GO_TEXT("locks")},
	{BEGINS("--- contentionz "), "a list of locks of gperftools, which has no CPU time"},
	{BEGINS("--- heapz "), "a heap profile of gperftools, which has no CPU time"},
	{BEGINS("--- threadz "), "a list of threads of gperftools, which has no CPU time"},
	{BEGINS("heap profile: "),
	 "a heap profile as text; without ?debug=1 Go's /debug/pprof makes a pprof file, and "
	 "its /debug/pprof/profile one with CPU time"},
	{IS(is_gperftools),
	 "a profile in gperftools' own format; `pprof -proto PROGRAM FILE` makes a pprof file"},
	{IS(is_go_trace),
	 "an execution trace of Go, which has no CPU time; Go's /debug/pprof/profile is a pprof "
	 "file with it"},
	{IS(is_perfetto),
	 "a trace of Perfetto, which is not read; `traceconv profile --perf` makes pprof files of "
	 "its CPU samples"},
	{IS(is_quipper),
	 "a file of perf_data_converter's quipper; give the perf.data that it was made from"},
	{IS(is_otlp), OTLP},
	{KEY("resourceProfiles"), OTLP},
	{KEY("snapshot"), "a heap snapshot; open it in the Memory panel of Chrome's DevTools"},
	{KEY("recording"), "a timeline of Safari; open it in its Web Inspector"},
	{BEGINS("\x04\x08{"),
	 "a stackprof dump; `stackprof --stackcollapse` makes folded stacks of it"},
	{KEY("missed_samples"),
	 "JSON of stackprof; `stackprof --stackcollapse` makes folded stacks of its dump"},
	{KEY("target_description"),
	 "JSON of pyinstrument; `pyinstrument -r speedscope` makes what is read, also of a session "
	 "(`--load`)"},
	{IS(is_prof_process),
	 "a log of `node --prof` as JSON; `node --cpu-prof` writes what is read"},
	{BEGINS("bplist00"), "a binary property list, as Instruments has; " TRACE_FOLDED},
	{IS(is_pstats),
	 "a profile of Python's cProfile, which counts calls and has no stacks; open it with "
	 "`python3 -m pstats`"},
	{IS(is_pstats_text), "the text of Python's cProfile, which counts calls and has no stacks"},
	{BEGINS("Statistical profiling result from "),
	 "the text of `node --prof-process`; `node --cpu-prof` writes what is read"},
	{IS(is_austin), AUSTIN},
	{BEGINS("# austin: "), AUSTIN},
	/* its numbers are times */
	{IS(is_austin_text), AUSTIN},
	{BEGINS("rbspy01\n"), RBSPY},
	{BEGINS("rbspy02\n"), RBSPY},
	{IS(is_heaptrack), "a file of heaptrack, which has memory and no CPU time"},
	{BEGINS("heap_v2/"), "a heap profile of jemalloc, which has no CPU time"},
	{BEGINS("memray\0"), "a file of memray, which has memory and no CPU time"},
	{BEGINS("JAVA PROFILE 1.0.1, created"), HPROF},
	{BEGINS("CPU SAMPLES BEGIN ("), HPROF},
	{BEGINS("JAVA PROFILE "), "a heap dump of Java, which has no CPU time"},
	{BEGINS("*version\n"), ART},
	{BEGINS("SLOW\2\0"), ART},
	{BEGINS("SLOW\3\0"), ART},
	{BEGINS("SLOW\xf2\0"), ART},
	{BEGINS("SLOW\xf3\0"), ART},
	{BEGINS("gmon\1"), "a profile of gprof, which has no stacks; open it with `gprof`"},
	{BEGINS("Flat profile:\n"), "the text of gprof, which has no stacks"},
	{BEGINS("v8-version,"), "a log of `node --prof`; `node --cpu-prof` writes what is read"},
	{BEGINS("# To display the perf.data header"),
	 "the text of `perf report`; give perf.data itself, or the text of `perf script`"},
	{HAS("\n Performance counter stats for "),
	 "the text of `perf stat`, which counts and has no samples; `perf record` takes them"},
	{BEGINS("\x17\x08\x44tracing"), "a file of trace-cmd, which has no samples"},
	{BEGINS("\x5e\x97\xca\xfd"),
	 "a capture of GNOME Sysprof, a different program; open it there"},
	/* what its -top, -raw, -traces and -list print */
	{HAS("Showing nodes accounting for "), PPROF_TEXT},
	{HAS("\nPeriod: "), PPROF_TEXT},
	{HAS("-----------+------------"), PPROF_TEXT},
	{HAS("\nROUTINE ======"), PPROF_TEXT},
	{IS(is_massif),
	 "a file of massif, which has memory and no CPU time; open it with `ms_print`"},
	{IS(is_phpspy), "stacks of phpspy; its `stackcollapse-phpspy.pl` folds them"},
	{HAS("Source code & Disassembly of "),
	 "the text of `perf annotate`; give perf.data itself, or the text of `perf script`"},
	{IS(is_dtrace), "stacks of DTrace; `stackcollapse.pl` folds them"},
	{IS(is_pmcstat), "stacks of pmcstat; `stackcollapse-pmc.pl` folds them"},
	{BEGINS("Analysis of sampling "),
	 "the text of macOS's `sample`; `stackcollapse-sample.awk` folds it"},
	{HAS("Function Stack,CPU Time:Self"),
	 "a table of VTune; `stackcollapse-vtune.pl` folds it"},
	{BEGINS("Level,Function Name,"),
	 "a table of Visual Studio; `stackcollapse-vsprof.pl` folds it"},
	{IS(is_ghc),
	 "a report of GHC's profiler; `inferno-collapse-ghcprof` folds that of `+RTS -P`"},
	{KEY("rts_arguments"), "a report of GHC's profiler as JSON; speedscope opens it"},
	{KEY("flamebearer"), "a flame graph of Pyroscope; export the profile as pprof"},
	{KEY("profileJSON"),
	 "a profile of Cleopatra, which the Firefox Profiler has replaced in 2016; record a new one"},
	{KEY("dhatFileVersion"), "a heap profile of DHAT, which has no CPU time"},
	{BEGINS("QPERFSTREAM"),
	 "a file of Hotspot's perfparser; give the perf.data that it was made from"},
	{BEGINS("Sampling at "), BCC},
	{BEGINS("Tracing off-CPU time (us) of "), BCC},
	{BEGINS("Tracing blocked time (us) by "), BCC},
	{IS(is_bcc), BCC},
	{IS(is_flat_perf_script),
	 "the text of `perf script` without call chains, and without task or event; `perf script -F "
	 "comm,pid,tid,time,period,event,ip,sym,dso` prints what is read"},
	{IS(is_bpftrace), "stacks of bpftrace; `stackcollapse-bpftrace.pl` folds them"},
	{BEGINS("SIMPLEPERF"),
	 "a trace of simpleperf; give its perf.data, or the text of its `report-sample`"},
	{BEGINS("Running Time\t"), INSTRUMENTS_TABLE},
	{BEGINS("Bytes Used\t"), INSTRUMENTS_TABLE},
	{BEGINS("Weight\t"), INSTRUMENTS_TABLE},
};

static bool is_it(const struct foreign *f, const uint8_t *bytes, size_t size)
{
	const char *const keys[] = {f->text, "traceEvents", "nodes", NULL};

	switch (f->how) {
	case AT_BEGIN:
		return size >= f->size && !memcmp(bytes, f->text, f->size);
	case IN_BEGIN:
		return begin_has(bytes, size, f->text);
	case FIRST_KEY:
		return json_first_key(bytes, size, keys) == 0;
	case BY_FUNCTION:
		return f->is(bytes, size);
	}
	return false;
}

int foreign_refuse(const struct import_request *request, struct import_failure *failure)
{
	for (size_t i = 0; i < sizeof(foreign) / sizeof(*foreign); i++)
		if (is_it(&foreign[i], request->bytes, request->size))
			return import_fail(failure, 0, -EPROTONOSUPPORT, "it is %s",
					   foreign[i].what);
	return 0;
}
