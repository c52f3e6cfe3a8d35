/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whatever is written is read back by its own reader with the same totals: of recordings, of profiles that are made
 * here and of files of other tools, in each format, and from there in each format again.
 *
 * Totals: what samples count, and CPU time, of each call path, with the file and the category of each function; also
 * whether the number of samples is known.
 */
#include "import_support.h"
#include "pprof_text.h"

#include <fcntl.h>
#include <glob.h>

#include "base/cleanup.h"
#include "base/order.h"
#include "base/vec.h"
#include "formats/out/describe.h"
#include "profile/profile.h"
#include "window/replay.h"

/* What a format keeps. */
static const struct format {
	const struct exporter *exporter;
	bool one_thread;
	bool no_times;
	bool no_cpu; /* CPU time is kept of weights alone */
	bool deltas; /* CPU time is that since the sample before: time until the next one is another's */
	bool no_files; /* with code */
} formats[] = {
	{.exporter = &pprof_exporter, .no_times = true},
	{.exporter = &firefox_exporter, .deltas = true},
	{&cpuprofile_exporter, .one_thread = true},
	{.exporter = &trace_exporter},
	{&folded_exporter, .no_times = true, .no_cpu = true, .no_files = true},
};
#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define FORMATS	     COUNT(formats)

/* ---- totals ---------------------------------------------------------------------------------- */

struct path {
	char *text;
	uint64_t events, cpu;
};

struct paths {
	struct path *data;
	size_t count, capacity;
};

DEFINE_ORDER(compare_paths, struct path, strcmp(x->text, y->text));

/* In most formats code without file and address is all the same, so a second format has JIT code as unknown. */
static void print_file(FILE *out, const struct profile *p, const struct profile_location *l)
{
	const char *name = dso_display_name(p, l->dso);

	if (!strcmp(name, "[unknown]") || !strcmp(name, "[jit]"))
		fprintf(out, " (no file)");
	else
		fprintf(out, " (%s, %d)", name, l->category);
}

/* Names of functions, outermost first; with `files` also where they are. */
static char *path_of(const struct profile *p, struct stack_id stack, bool files)
{
	uint32_t depth = p->stacks[stack.v].depth;
	struct location_id *frames = calloc(depth, sizeof(*frames));
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (uint32_t i = depth; i--; stack = p->stacks[stack.v].parent)
		frames[i] = p->stacks[stack.v].location;
	for (uint32_t i = 0; i < depth; i++) {
		const struct profile_location *l = &p->locations[frames[i].v];

		for (uint32_t k = l->line_count; k--;) {
			struct function_id f = p->lines[l->first_line + k].function;

			fprintf(out, ";%s", profile__string(p, p->functions[f.v].name));
			if (files)
				print_file(out, p, l);
		}
	}
	fclose(out);
	free(frames);
	return text;
}

/* CPU time after the last sample is that sample's. */
static void sum_thread(const struct profile *p, const struct profile_thread *t, bool files,
		       struct paths *paths)
{
	const struct profile_samples *s = &t->samples[SAMPLE_CPU];

	for (size_t i = 0; i < s->count; i++)
		assert_int_equal(vec_push(paths, (struct path){path_of(p, s->stack[i], files),
							       profile_samples__events(s, i),
							       s->weight[i] + (i + 1 == s->count
										       ? t->cpu_tail
										       : 0)}),
				 0);
}

/* Which threads: this one, those of this process, or all. */
struct part {
	uint32_t thread, process;
	bool files;
};

static bool is_in(const struct profile *p, const struct part *part, uint32_t thread)
{
	return part->process ? p->threads[thread].process.v == part->process
			     : !part->thread || thread == part->thread;
}

/* A line for each call path. `cpu`: of each; the sum comes first. */
static char *totals(const struct profile *p, struct part part, bool cpu, bool cpu_sum)
{
	uint64_t sum_cpu = 0;
	struct paths paths = {};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (uint32_t i = 1; i < p->thread_count; i++)
		if (is_in(p, &part, i))
			sum_thread(p, &p->threads[i], part.files, &paths);
	vec_sort(&paths, compare_paths);
	for (size_t i = 0; i < paths.count; i++)
		sum_cpu += paths.data[i].cpu;
	fprintf(out, "%s\n%llu ns\n", p->uncounted ? "weights" : "counts",
		(unsigned long long)(cpu_sum ? sum_cpu : 0));
	for (size_t i = 0, next; i < paths.count; i = next) {
		struct path sum = {};

		for (next = i;
		     next < paths.count && !strcmp(paths.data[i].text, paths.data[next].text);
		     next++) {
			sum.events += paths.data[next].events;
			sum.cpu += paths.data[next].cpu;
		}
		sum.cpu = cpu ? sum.cpu : 0;
		if (!sum.events && !sum.cpu)
			continue; /* samples without an event are in no folded stack */
		/* weights may be in another unit of CPU time */
		fprintf(out, "%llu %llu %s\n",
			(unsigned long long)(p->tick_cpu ? sum.events * p->tick_cpu : sum.events),
			(unsigned long long)sum.cpu, paths.data[i].text);
	}
	for (size_t i = 0; i < paths.count; i++)
		free(paths.data[i].text);
	vec_free(&paths);
	fclose(out);
	return text;
}

/* ---- there and back -------------------------------------------------------------------------- */

static struct imported read_back(const struct profile *p, const struct format *f)
{
	size_t size;
	char *bytes = export_bytes(f->exporter, p, NULL, &size);
	struct imported i = import_bytes(bytes, size);

	if (i.err)
		fail_msg("%s refuses what it wrote: %s", f->exporter->name, i.failure.what);
	free(bytes);
	return i;
}

static bool keeps_cpu(const struct profile *p, const struct format *f)
{
	return !(f->no_cpu && !p->tick_cpu);
}

/* Folded stacks of an event are read by the looks of their numbers. */
static bool keeps_meaning(const struct profile *p, const struct format *f)
{
	return !(f->no_cpu && p->event.v && !p->uncounted);
}

/* The first line that differs is enough. */
static void expect_same(const char *before, const char *after, const char *what, const char *format)
{
	while (*before && strcspn(before, "\n") == strcspn(after, "\n") &&
	       !strncmp(before, after, strcspn(before, "\n") + 1)) {
		size_t size = strcspn(before, "\n") + 1;

		before += size;
		after += size;
	}
	if (strcmp(before, after))
		fail_msg("%s as %s:\n%.*s\nis read as\n%.*s", what, format,
			 (int)strcspn(before, "\n"), before, (int)strcspn(after, "\n"), after);
}

static void check_format(const struct profile *p, const struct format *f, const char *what,
			 struct imported *read)
{
	bool sum = keeps_cpu(p, f), cpu = sum && !(f->deltas && p->weight_ahead);
	uint32_t thread = f->one_thread ? export_busiest_thread(p).v : 0;
	_cleanup_free_ char *before = NULL, *after = NULL;

	*read = read_back(p, f);
	if (read->p->untimed != (p->untimed || f->no_times))
		fail_msg("%s as %s is read %s times", what, f->exporter->name,
			 read->p->untimed ? "without" : "with");
	before = totals(p, (struct part){.thread = thread, .files = !f->no_files}, cpu, sum);
	after = totals(read->p, (struct part){.files = !f->no_files}, cpu, sum);
	expect_same(keeps_meaning(p, f) ? before : strchr(before, '\n'),
		    keeps_meaning(p, f) ? after : strchr(after, '\n'), what, f->exporter->name);
}

/* In each format, and from there in each again. */
static void check_pairs(const struct profile *p, const char *what)
{
	for (size_t i = 0; i < FORMATS; i++) {
		struct imported once, twice;
		char pair[256];

		check_format(p, &formats[i], what, &once);
		snprintf(pair, sizeof(pair), "%s, read from %s,", what, formats[i].exporter->name);
		for (size_t k = 0; k < FORMATS && once.p->sample_count; k++) {
			check_format(once.p, &formats[k], pair, &twice);
			import_done(&twice);
		}
		import_done(&once);
	}
}

/* Each process with all its threads in one file. */
static void check_processes(const struct profile *p, const char *what)
{
	for (uint32_t i = 1; i < p->thread_count; i++) {
		const struct export_request options = {.thread = {i}, .merge_threads = true};
		const struct part part = {.process = p->threads[i].process.v, .files = true};
		char *before, *after, *bytes;
		struct imported read;
		size_t size;

		if (!p->threads[i].samples[SAMPLE_CPU].count)
			continue;
		bytes = export_bytes(&cpuprofile_exporter, p, &options, &size);
		read = import_bytes(bytes, size);
		assert_int_equal(read.err, 0);
		assert_int_equal(read.p->thread_count, 2);
		assert_string_equal(profile__meta(read.p, META_CPU_TIME) ?: "",
				    profile__meta(p, META_CPU_TIME) ?: "");
		before = totals(p, part, true, true);
		after = totals(read.p, (struct part){.files = true}, true, true);
		expect_same(before, after, what, "one .cpuprofile of all threads");
		free(bytes);
		free(before);
		free(after);
		import_done(&read);
	}
}

TEST(recordings_are_read_back_from_all_pairs_of_formats)
{
	glob_t found;

	assert_int_equal(glob("tests/golden/recordings/*.sysprof", 0, NULL, &found), 0);
	assert_true(found.gl_pathc > 10);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		_cleanup_close_ int fd = open(found.gl_pathv[i], O_RDONLY | O_CLOEXEC);
		const struct replay_options options = {.symbols = {.cache = false}};
		struct recording_summary summary = {};
		struct failure failure = {};
		const struct profile *p;
		struct windows *windows;

		assert_int_equal(replay_recording(fd, found.gl_pathv[i], &options, &windows, &p,
						  &summary, &failure),
				 0);
		check_pairs(p, found.gl_pathv[i]);
		check_processes(p, found.gl_pathv[i]);
		windows__free(windows);
	}
	globfree(&found);
}

TEST(profiles_are_read_back_from_all_pairs_of_formats)
{
	for (size_t i = 0; i < NAMED_PROFILES; i++) {
		_cleanup_fixture_ struct fixture f = {};
		const struct profile *p = build_profile(&f, named_profiles[i].name);

		/* names that are no UTF-8 are others in files, and an empty file has no thread */
		if (strcmp(named_profiles[i].name, "hostile") && p->sample_count) {
			check_pairs(p, named_profiles[i].name);
			check_processes(p, named_profiles[i].name);
		}
	}
}

#define CODE                                                                                       \
	" 4={1=1 4={1=1}} 4={1=2 4={1=2}} 5={1=1 2='big'} 5={1=2 2='small'} 11={1='cpu' 2='nanoseconds'}"
#define COUNTS "1={1='samples' 2='count'} "
#define CPU    "1={1='cpu' 2='nanoseconds'} "

TEST(files_of_other_tools_are_read_back_from_all_pairs_of_formats)
{
	static const char *const pprofs[] = {
		CPU "2={1=1 2=[900000000]} 2={1=2 1=1 2=[100000000]}" CODE,
		CPU "2={1=1 2=[900000001]} 2={1=2 1=1 2=[100000000]} 12=1" CODE,
		CPU
		"2={1=1 2=[900000000]} 2={1=2 1=1 2=[100000000]} 10=5000000000 12=10000000" CODE,
		COUNTS "2={1=1 2=[9]} 2={1=2 1=1 2=[1]} 12=10000000" CODE,
		COUNTS CPU
		"2={1=1 2=[9 90000000]} 2={1=2 1=1 2=[1 10000000]} 10=5000000000 12=10000000" CODE,
		COUNTS CPU
		"2={1=1 2=[1 900000001]} 2={1=2 1=1 2=[9 100000000]} 2={1=2 2=[2 3]}" CODE,
		COUNTS "1={1='cycles' 2='count'} 2={1=1 2=[9 90000000]} 2={1=2 1=1 2=[1 17]}" CODE,
		COUNTS
		"1={1='cycles' 2='count'} 2={1=1 2=[9 9000000000000]} 2={1=2 1=1 2=[0 17]} 2={1=2 2=[4 0]}" CODE,
		COUNTS CPU
		"1={1='wall' 2='milliseconds'} 14='wall' 2={1=1 2=[9 5 90]} 2={1=2 1=1 2=[1 6 70]}" CODE,
		COUNTS CPU
		"2={1=1 2=[3 0]} 2={1=2 1=1 2=[0 900000001]} 2={1=2 2=[9 100000000]}" CODE,
		"1={1='weight' 2='bytes'} 2={1=1 2=[4096]} 2={1=2 1=1 2=[8192]}" CODE,
	};
	static const char *const texts[] = {
		"x;a;f 30303030\nx;a;g 70707070\nx;a;g 10101010\n",
		"x;a;f 30303031\nx;a;g 70707070\ny;a 182488640845\n",
		"x;a;f 3\nx;a;g 4\ny;b 1\n",
		"a;b;c 0.4\na;b;d 0.30\na 0.2\n",
		"# weights: 5 ns of CPU time\nx;a 3\nx;a;b 4\n",
		"# weights: bytes\nx;a 3\nx;a;b 4\n",
		/* a century: more than times that are read */
		"# weights: 5000000000 ns of CPU time\nx;a 400000000\nx;b 300000000\nx;c 1\n",
		"x;a 4611686018427387000\nx;b 3\n",
		"# weights: bytes\nx;a 4611686018427387000\ny;b 3\n",
		/* samples of unequal CPU times */
		"{\"nodes\":["
		"{\"id\":1,\"callFrame\":{\"functionName\":\"(root)\"},\"children\":[2,3]},"
		"{\"id\":2,\"callFrame\":{\"functionName\":\"big\"}},"
		"{\"id\":3,\"callFrame\":{\"functionName\":\"small\"}}],"
		"\"startTime\":1000,\"endTime\":9000,"
		"\"samples\":[2,2,3,2],\"timeDeltas\":[1000,1000,5000,300]}",
		/* 16 years between two samples */
		"{\"nodes\":["
		"{\"id\":1,\"callFrame\":{\"functionName\":\"(root)\"},\"children\":[2,3]},"
		"{\"id\":2,\"callFrame\":{\"functionName\":\"big\"}},"
		"{\"id\":3,\"callFrame\":{\"functionName\":\"small\"}}],"
		"\"startTime\":0,\"endTime\":1000000000000000,"
		"\"samples\":[2,3],\"timeDeltas\":[0,499999999999000]}",
	};

	for (size_t i = 0; i < COUNT(pprofs) + COUNT(texts); i++) {
		char text[1024];
		size_t size;
		_cleanup_free_ char *bytes = NULL;
		_cleanup_imported_ struct imported read = {};

		snprintf(text, sizeof(text), "%s",
			 i < COUNT(pprofs) ? pprofs[i] : texts[i - COUNT(pprofs)]);
		bytes = i < COUNT(pprofs) ? encode_pprof(text, &size) : NULL;
		read = bytes ? import_bytes(bytes, size) : import_good(text);
		if (read.err)
			fail_msg("%s: %s", text, read.failure.what);
		check_pairs(read.p, i < COUNT(pprofs) ? pprofs[i] : texts[i - COUNT(pprofs)]);
		check_processes(read.p, i < COUNT(pprofs) ? pprofs[i] : texts[i - COUNT(pprofs)]);
	}
}

/* How many samples and events each line has, as "7: 3 30; ". */
static void put_lines(FILE *out, const struct profile *p)
{
	const struct profile_samples *s = &p->threads[1].samples[SAMPLE_CPU];

	for (uint32_t line = 0; line < 10; line++) {
		uint64_t ticks = 0, events = 0;

		for (size_t i = 0; i < s->count; i++) {
			const struct profile_location *l =
				&p->locations[p->stacks[s->stack[i].v].location.v];

			if (p->lines[l->first_line].line != line)
				continue;
			ticks += profile_samples__ticks(s, i);
			events += profile_samples__events(s, i);
		}
		if (ticks || events)
			fprintf(out, "%u: %llu %llu; ", line, (unsigned long long)ticks,
				(unsigned long long)events);
	}
}

TEST(lines_of_events_are_read_back_from_cpuprofile_files)
{
	char text[] = COUNTS
		"1={1='cycles' 2='count'} 2={1=1 2=[3 30]} 2={1=2 2=[1 9000000000]} 2={1=1 2=[4 5]} "
		"2={1=3 2=[2 60]} 4={1=1 4={1=1 2=7}} 4={1=2 4={1=1 2=3}} 4={1=3 4={1=1}} "
		"5={1=1 2='f' 4='/a.c' 5=1}";
	size_t size;
	_cleanup_free_ char *bytes = encode_pprof(text, &size);
	struct imported once = import_bytes(bytes, size), twice;
	char *lines = NULL;
	FILE *out;

	assert_int_equal(once.err, 0);
	twice = read_back(once.p, &formats[2]);
	out = open_memstream(&lines, &size);
	put_lines(out, twice.p);
	fclose(out);
	assert_string_equal(lines, "0: 2 60; 3: 1 9000000000; 7: 7 35; ");
	free(lines);
	import_done(&once);
	import_done(&twice);
}

TEST(a_trace_of_events_that_is_cut_has_their_samples)
{
	char text[] = COUNTS "1={1='cycles' 2='count'} 2={1=1 2=[3 30]} 2={1=2 1=1 2=[1 900]}" CODE;
	size_t size;
	_cleanup_free_ char *bytes = encode_pprof(text, &size), *trace = NULL;
	struct imported once = import_bytes(bytes, size), cut;

	assert_int_equal(once.err, 0);
	trace = export_bytes(&trace_exporter, once.p, NULL, &size);
	cut = import_bytes(trace, (size_t)(strstr(trace, "\"metadata\"") - trace));
	assert_int_equal(cut.err, 0);
	assert_int_equal(cut.p->sample_count, 4);
	assert_int_equal(cut.p->event_count, 4);
	import_done(&once);
	import_done(&cut);
}

TEST(modules_of_a_damaged_file_are_unknown)
{
	char text[512];
	_cleanup_imported_ struct imported read = {};

	snprintf(
		text, sizeof(text), "%s",
		"{\"nodes\":[{\"id\":1,\"callFrame\":{\"functionName\":\"f\",\"scriptId\":\"1\"}}],"
		"\"samples\":[1],\"timeDeltas\":[1],\"$sysprof\":{\"modules\":[{\"kind\":\"none\"}],"
		"\"scriptModules\":[0]}}");
	read = import_good(text);
	assert_int_equal(read.err, 0);
	assert_int_equal(read.p->sample_count, 1);
}
