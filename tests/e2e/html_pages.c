/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * html_pages DIR: peculiar profiles as DIR/NAME.html, with .folded and .json (the report's) beside each for
 * comparison. See html_page.py.
 */
#include "../golden/profiles.h"

#include "base/cleanup.h"
#include "formats/out/exporters.h"
#include "formats/out/report.h"

#define LONG_NAME    10000
#define DEEP	     500
#define THREADS	     500
#define THREADS_EACH 5 /* of a service */

/* Whoever lets one of these through runs it. */
static const char *const attacks[] = {
	"</script><script>globalThis.hacked = 1</script>",
	"<img src=x onerror='globalThis.hacked = 2'>",
	"\"'><svg onload=globalThis.hacked=3>",
	"line\xe2\x80\xa8separator \xe2\x80\xae"
	"desrever",
	"control\x01\x1b[31m\x7f\xc2\x85 and \xff\xfe\xc0\xaf bytes",
	"--><!--<![CDATA[]]>{{constructor}}${alert(1)}",
	"__proto__",
	"a;b\nc\r\td 1",
};

static void begin(struct fixture *f, double ms, const char *name)
{
	fixture__init(f, ms);
	f->process = add_process(f, 10, name, 0, 0);
}

static void build_attacks(struct fixture *f)
{
	size_t count = sizeof(attacks) / sizeof(attacks[0]);
	struct stack_id stack = {0};

	begin(f, 50, attacks[0]);
	profile_builder__meta(f->b, "target", attacks[1]);
	profile_builder__meta(f->b, attacks[2], attacks[0]);
	for (size_t i = 0; i < count; i++) {
		struct dso_id dso = add_dso(f, DSO_FILE, attacks[i], 0);
		struct location_id location = add_location(f, dso, 0x100 * (i + 1));
		struct thread_id thread = add_thread(f, f->process, 10 + (uint32_t)i, !i,
						     attacks[i], 0);

		NAME(f, location, {attacks[i], attacks[(i + 1) % count], 7, 0, 0, 0, 0, NULL});
		stack = profile_builder__stack(f->b, stack, location);
		for (int k = 0; k < 3; k++)
			add_sample(f, thread, (double)(i * 5) + k + 1, stack, 1, attacks[i]);
	}
	add_books(f, 0, 24, 26, 0);
}

static void build_one(struct fixture *f)
{
	struct location_id only;

	begin(f, 3, "one");
	only = add_location(f, f->program, 0x10);
	add_sample(f, add_thread(f, f->process, 10, true, "one", 0), 1, STACK(f, only), 1, "one");
	NAME(f, only, {.function = "main"});
	add_books(f, 0, 1, 2, 0);
}

static void build_threads(struct fixture *f)
{
	struct location_id work;

	begin(f, 2000, "many threads");
	work = add_location(f, f->program, 0x10);
	for (uint32_t t = 0; t < THREADS; t++) {
		struct thread_id thread;
		char name[32];

		snprintf(name, sizeof(name), "worker %u", t);
		thread = add_thread(f, f->process, 10 + t, !t, name, 0);
		for (uint32_t k = 0; k < 1 + t / 50; k++)
			add_sample(f, thread, t + 100.0 * k + 1, STACK(f, work), 1, name);
	}
	NAME(f, work, {.function = "work"});
}

/* Five threads of each of a hundred services; later ones use more CPU time. */
static void build_crowd(struct fixture *f)
{
	struct location_id work;

	begin(f, 2000, "crowd");
	work = add_location(f, f->program, 0x10);
	for (uint32_t t = 0; t < THREADS; t++) {
		char name[32];
		struct thread_id thread;
		struct profile_process process = {.pid = 1000 + t, .start = AT(0)};

		snprintf(name, sizeof(name), "service %u", t / THREADS_EACH);
		process.name = text(f, "server");
		process.names.service = text(f, name);
		thread = add_thread(f, profile_builder__process(f->b, &process), 1000 + t, true,
				    "server", 0);
		for (uint32_t k = 0; k < 1 + t / 100; k++)
			add_sample(f, thread, t + 100.0 * k + 1, STACK(f, work), 1 + t / 50.0,
				   "server");
	}
	NAME(f, work, {.function = "work"});
}

/* JIT code without names: two addresses of each of two processes, and one of a third. */
static void build_unnamed(struct fixture *f)
{
	static const char *const names[] = {"qemu", "guest", "small"};

	begin(f, 100, "start");
	for (uint32_t i = 0; i < 3; i++) {
		struct thread_id thread;
		struct location_id outer, inner;

		f->process = add_process(f, 100 + i, names[i], 0, 0);
		thread = add_thread(f, f->process, 100 + i, true, names[i], 0);
		outer = add_location(f, f->jit, 0x7f0000001000 + 0x100 * i);
		inner = add_location(f, f->jit, 0x7f0000001010 + 0x100 * i);
		add_sample(f, thread, 10, STACK(f, outer), 1, names[i]);
		if (i == 2)
			continue;
		add_sample(f, thread, 20, STACK(f, inner), 1, names[i]);
		add_sample(f, thread, 30, STACK(f, outer, inner), 1, names[i]);
	}
}

static void build_deep(struct fixture *f)
{
	struct stack_id stack = {0};
	struct thread_id thread;

	begin(f, 600, "deep");
	thread = add_thread(f, f->process, 10, true, "deep", 0);
	for (uint32_t d = 0; d < DEEP; d++) {
		struct location_id location = add_location(f, f->program, 0x10 * (d + 1));
		char name[LONG_NAME + 1];

		snprintf(name, sizeof(name), "level_%u", d);
		if (d == 3)
			memset(name, 'L', LONG_NAME);
		name[LONG_NAME] = 0;
		NAME(f, location, {.function = name});
		stack = profile_builder__stack(f->b, stack, location);
		add_sample(f, thread, d + 1, stack, 1, "deep");
	}
}

/* As from a format without times, whose rows stand for many ticks. */
static void build_untimed(struct fixture *f)
{
	struct location_id a, b;
	struct thread_id thread;
	const uint64_t ticks[] = {5, 1000000, 37};

	begin(f, 10, "untimed");
	profile_builder__session(f->b)->untimed = true;
	profile_builder__session(f->b)->period = 0;
	thread = add_thread(f, f->process, 10, true, "untimed", 0);
	a = add_location(f, f->program, 0x10);
	b = add_location(f, f->program, 0x20);
	for (unsigned int i = 0; i < 3; i++) {
		const struct profile_sample sample = {
			.kind = SAMPLE_CPU,
			.time = AT(i + 1),
			.ticks = ticks[i],
			.stack = i == 2 ? STACK(f, a) : STACK(f, a, b),
			.comm = text(f, "untimed"),
			.end = STACK_END_ROOT,
		};

		profile_builder__sample(f->b, thread, &sample);
	}
	NAME(f, a, {.function = "main"});
	NAME(f, b, {.function = "work"});
}

/* Allocations: two samples for 4,000 bytes, of which 1,000 are in code without a name. */
static void build_bytes(struct fixture *f)
{
	struct location_id named, nameless;
	struct thread_id thread;

	begin(f, 10, "bytes");
	thread = add_thread(f, f->process, 10, true, "bytes", 0);
	named = add_location(f, f->program, 0x10);
	nameless = add_location(f, f->program, 0x20);
	for (unsigned int i = 0; i < 2; i++)
		profile_builder__sample(f->b, thread,
					&(struct profile_sample){
						.time = AT(i + 1),
						.weight = MS,
						.events = i ? 1000 : 3000,
						.stack = STACK(f, i ? nameless : named),
						.comm = text(f, "bytes"),
					});
	profile_builder__session(f->b)->event = text(f, "memory");
	profile_builder__session(f->b)->event_unit = text(f, "bytes");
	NAME(f, named, {.function = "named"});
}

/* Two CPUs whose first ticks are late: they find six threads that have shared them until then. */
static void build_late(struct fixture *f)
{
	struct location_id work;

	begin(f, 1000, "late");
	work = add_location(f, f->program, 0x10);
	for (uint32_t t = 0; t < 6; t++) {
		struct thread_id thread = add_thread(f, f->process, 10 + t, !t, "late", 0);

		add_sample(f, thread, 400 + t, STACK(f, work), 130, "late");
		add_sample(f, thread, 700 + t, STACK(f, work), 1, "late");
	}
	NAME(f, work, {.function = "work"});
}

/* Two hosts with the same numbers and names, as Compose gives them, and a process of its own number. */
static void build_alike(struct fixture *f)
{
	static const struct {
		uint32_t pid;
		const char *container, *id;
	} processes[] = {{10, "web", "aaaaaaaaaaaa0000"},
			 {10, "web", "bbbbbbbbbbbb0000"},
			 {11, "db", "cccccccccccc0000"}};
	struct location_id work;

	begin(f, 100, "alike");
	work = add_location(f, f->program, 0x10);
	for (uint32_t i = 0; i < 3; i++) {
		struct profile_process process = {.pid = processes[i].pid, .start = AT(0)};
		struct thread_id thread;

		process.name = process.names.service = text(f, "app");
		process.names.container = text(f, processes[i].container);
		process.names.container_id = text(f, processes[i].id);
		thread = add_thread(f, profile_builder__process(f->b, &process), process.pid, true,
				    "app", 0);
		for (uint32_t k = 0; k <= i; k++)
			add_sample(f, thread, 10 * k + 1, STACK(f, work), 1, "app");
	}
	NAME(f, work, {.function = "work"});
}

static const struct named_profile own_profiles[] = {
	{"attacks", build_attacks}, {"one", build_one},	    {"threads", build_threads},
	{"deep", build_deep},	    {"late", build_late},   {"untimed", build_untimed},
	{"bytes", build_bytes},	    {"crowd", build_crowd}, {"unnamed", build_unnamed},
	{"alike", build_alike},
};

static FILE *open_beside(const char *dir, const char *name, const char *suffix)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s%s", dir, name, suffix);
	return fopen(path, "we");
}

static int write_as(const struct profile *p, const char *dir, const char *name, const char *format)
{
	const struct exporter *exporter = exporter_by_name(format);
	_cleanup_fclose_ FILE *out = open_beside(dir, name, exporter->suffixes[0]);
	const struct export_request request = {.profile = p, .out = out};

	return out ? exporter->write(&request) : -1;
}

static int write_report(const struct profile *p, const char *dir, const char *name)
{
	const struct report_options options = {.by = REPORT_FUNCTION, .json = true};
	_cleanup_fclose_ FILE *out = open_beside(dir, name, ".json");
	const struct export_request request = {.profile = p, .out = out, .top = 1000000};

	return out ? report_write(&request, &options) : -1;
}

static int write_profile(const struct named_profile *named, const char *dir)
{
	const struct profile *p;
	struct fixture f;
	char why[256] = "";
	int err;

	named->build(&f);
	err = profile_builder__finish(f.b, &p, why, sizeof(why));
	if (!err)
		err = write_as(p, dir, named->name, "html");
	if (!err)
		err = write_as(p, dir, named->name, "folded");
	if (!err)
		err = write_report(p, dir, named->name);
	if (err)
		fprintf(stderr, "%s: %d %s\n", named->name, err, why);
	profile_builder__free(f.b);
	return err;
}

int main(int argc, char **argv)
{
	int failed = argc != 2;

	for (size_t i = 0; !failed && i < NAMED_PROFILES; i++)
		failed = write_profile(&named_profiles[i], argv[1]);
	for (size_t i = 0; !failed && i < sizeof(own_profiles) / sizeof(own_profiles[0]); i++)
		failed = write_profile(&own_profiles[i], argv[1]);
	return failed ? 1 : 0;
}
