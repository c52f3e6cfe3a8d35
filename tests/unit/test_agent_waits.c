/* SPDX-License-Identifier: BSD-2-Clause */
/* The series of waits: sums and leaves in each format, no parked thread, and no other byte of CPU time. */
#include "base/cleanup.h"
#include "agent/spool.h" /* before cmocka, whose fail() is a macro */
#include "agent/spool_profiles.h"
#include "agent_support.h"

#include "agent/series.h"
#include "formats/out/waits.h"

#define HZ	 10
#define SERVICES 2
#define RUN_MS	 7 /* of the worker, … */
#define LOCK_MS	 40
#define DISK_MS	 20
#define CPU_MS	 5 /* … and what it waits for a CPU */

struct waits {
	struct fixture f;
	struct made_window m;
	struct parked parked;
};

static void account(struct fixture *f, struct thread_id thread, uint64_t blocked, uint64_t runnable)
{
	struct profile_wall wall = {
		.since = AT(0), .blocked = blocked * MS, .runnable = runnable * MS};

	wall.until = wall.since + wall.blocked + wall.runnable;
	profile_builder__thread_wall(f->b, thread, &wall);
}

/* A worker that waits for a lock, a disk and a CPU; an event loop, and one more process that does nothing but wait. */
static const struct profile *build_server(struct fixture *f, bool visited)
{
	struct location_id main_, work, loop;
	struct thread_id worker, looper, reader;
	struct stack_id at_work;

	fixture__init(f, 200);
	if (visited)
		profile_builder__session(f->b)->visits.hz = HZ;
	f->process = add_process(f, 10, "server", 0, 0);
	worker = add_thread(f, f->process, 10, true, "server", 0);
	looper = add_thread(f, f->process, 11, false, "loop", 0);
	reader = add_thread(f, add_process(f, 20, "reader", 0, 0), 20, true, "reader", 0);
	main_ = add_location(f, f->program, 0x10);
	work = add_location(f, f->program, 0x20);
	loop = add_location(f, f->program, 0x30);
	NAME(f, main_, {.function = "main"});
	NAME(f, work, {.function = "work"});
	NAME(f, loop, {.function = "loop"});
	at_work = STACK(f, main_, work);
	add_sample(f, worker, 1, at_work, RUN_MS, "server");
	if (!visited)
		return finish(f);
	add_wait(f, worker, 2, 42, at_work, WALL_LOCK, LOCK_MS, (struct thread_id){0});
	add_wait(f, worker, 43, 63, at_work, WALL_DISK, DISK_MS, (struct thread_id){0});
	add_wait(f, worker, 64, 69, at_work, WALL_RUNNABLE, CPU_MS, (struct thread_id){0});
	add_wait(f, looper, 2, 90, STACK(f, main_, loop), WALL_POLL, 88, (struct thread_id){0});
	add_wait(f, reader, 2, 32, STACK(f, main_), WALL_DISK, 30, (struct thread_id){0});
	account(f, worker, LOCK_MS + DISK_MS, CPU_MS);
	account(f, looper, 88, 0);
	account(f, reader, 30, 0);
	return finish(f);
}

static void waits__init(struct waits *w)
{
	made_window__init(&w->m, build_server(&w->f, true), SERVICES);
	assert_int_equal(parked__init(&w->parked, w->m.window.profile), 0);
	assert_int_equal(w->parked.threads, 1);
	w->m.window.parked = &w->parked;
}

static void waits__fini(struct waits *w)
{
	parked__fini(&w->parked);
	made_window__fini(&w->m);
	profile_builder__free(w->f.b);
}

static struct pprof_sums sums_of(const void *pprof, size_t size)
{
	struct pprof_sums sums;
	char why[128];

	if (!validate_pprof(pprof, size, &sums, why, sizeof(why)))
		fail_msg("%s", why);
	return sums;
}

/* Parts with copies of their profiles. */
static struct {
	struct series_part data[4];
	size_t count;
} series;

static int take_part(const struct series_part *part, struct bytes *made)
{
	struct series_part *kept = &series.data[series.count++];

	assert_in_range(series.count, 1, 4);
	*kept = *part;
	kept->pprof = (struct bytes){};
	return bytes__add(&kept->pprof, part->pprof.data, part->pprof.count);
}

static int add_nothing(struct series_request *request, const struct bytes *made)
{
	return 0;
}

static int seal_nothing(struct series_request *request)
{
	return 0;
}

static void free_series(void)
{
	while (series.count)
		free(series.data[--series.count].pprof.data);
}

static void make_series(const struct agent_window *window, bool counts)
{
	static const struct series_requests kind = {.series_max = 100,
						    .size_max = VALID_SIZE_MAX,
						    .make = take_part,
						    .add = add_nothing,
						    .seal = seal_nothing};
	const struct series_options options = {.counts = counts,
					       .name_all = true,
					       .samples_max = VALID_SAMPLES_MAX,
					       .size_max = VALID_SIZE_MAX};
	_cleanup_(sealed_window__fini) struct sealed_window sealed = {};

	free_series();
	assert_int_equal(series__seal(window, &options, &kind, &sealed), 0);
	assert_int_equal(sealed.series_invalid, 0);
}

static void check_worker(const struct series_part *part)
{
	const struct pprof_sums sums = sums_of(part->pprof.data, part->pprof.count);

	assert_string_equal(part->labels[0].value, "wall");
	assert_int_equal(part->samples + part->cpu_ns, 0); /* these are in the other one */
	assert_int_equal(part->wall_ns, (RUN_MS + LOCK_MS + DISK_MS + CPU_MS) * MS);
	assert_int_equal(sums.values[0], part->wall_ns);
	assert_int_equal(sums.samples, 4);
	for (size_t i = 0; i < 3; i++) {
		static const char *const leaves[] = {"[waiting: lock]", "[waiting: disk]",
						     "[waiting: runnable]"};

		assert_true(contains(part->pprof.data, part->pprof.count, leaves[i]));
	}
	assert_false(contains(part->pprof.data, part->pprof.count, "[waiting: poll]"));
	assert_false(contains(part->pprof.data, part->pprof.count, "loop"));
	assert_false(contains(part->pprof.data, part->pprof.count, "samples"));
}

/* Of each service CPU time, if it has any, and then all time; no two at one time. */
TEST(a_series_of_all_time_follows_cpu_time)
{
	_cleanup_(waits__fini) struct waits w = {};

	waits__init(&w);
	for (int counts = 0; counts < 2; counts++) {
		const struct series_part *part = series.data;

		make_series(&w.m.window, counts);
		assert_int_equal(series.count, 3);
		assert_string_equal(part[0].labels[0].value, "process_cpu");
		assert_int_equal(part[0].cpu_ns, RUN_MS * MS);
		assert_int_equal(part[0].wall_ns, 0);
		assert_false(contains(part[0].pprof.data, part[0].pprof.count, "waiting"));
		check_worker(&part[1]);
		assert_int_equal(part[2].service, 1);
		assert_int_equal(part[2].wall_ns, 30 * MS);
		assert_int_not_equal(sums_of(part[0].pprof.data, part[0].pprof.count).time_ns / MS,
				     sums_of(part[1].pprof.data, part[1].pprof.count).time_ns / MS);
	}
	free_series();
}

/* Without the setting: what a profile without visits gives, byte for byte. */
TEST(without_the_setting_requests_are_those_without_waits)
{
	static const char *const formats[] = {"pyroscope", "parca", "otlp"};
	_cleanup_(made_window__fini) struct made_window without = {};
	_cleanup_fixture_ struct fixture f = {};
	_cleanup_(waits__fini) struct waits w = {};

	waits__init(&w);
	w.m.window.parked = NULL;
	made_window__init(&without, build_server(&f, false), SERVICES);
	for (size_t i = 0; i < 3; i++) {
		struct sealed_window a = seal(formats[i], &w.m.window, true);
		struct sealed_window b = seal(formats[i], &without.window, true);

		assert_int_equal(a.request_count, 1);
		assert_int_equal(b.request_count, 1);
		assert_int_equal(a.requests[0].size, b.requests[0].size);
		assert_memory_equal(a.requests[0].body, b.requests[0].body, a.requests[0].size);
		assert_int_equal(a.wall_ns + a.wall_bytes, 0);
		sealed_window__fini(&a);
		sealed_window__fini(&b);
	}
}

struct taken {
	size_t profiles;
	bool has_waits;
};

static int take_profile(void *context, const void *pprof, size_t size)
{
	struct taken *taken = context;
	uint8_t *plain = NULL;
	size_t plain_size = size;

	if (is_gzip(pprof, size))
		plain = unzip(pprof, size, &plain_size);
	taken->profiles++;
	taken->has_waits |= contains(plain ? plain : pprof, plain_size, "\x04wall");
	free(plain);
	return 0;
}

/* Sums of all formats; what reads spools for CPU time passes over waits. */
TEST(readers_of_cpu_profiles_skip_the_series_of_waits)
{
	static const char *const formats[] = {"pyroscope", "parca", "otlp"};
	_cleanup_(waits__fini) struct waits w = {};

	waits__init(&w);
	for (size_t i = 0; i < 3; i++) {
		struct sealed_window sealed = seal(formats[i], &w.m.window, true);
		struct taken taken = {};

		assert_int_equal(sealed.request_count, 1);
		assert_int_equal(sealed.requests[0].series, 3);
		assert_int_equal(sealed.requests[0].samples, 1);
		assert_int_equal(sealed.wall_ns, (RUN_MS + LOCK_MS + DISK_MS + CPU_MS + 30) * MS);
		assert_in_range(sealed.wall_bytes, 50, 4000);
		assert_int_equal(sink_request__profiles(&sealed.requests[0], "service-0",
							take_profile, &taken),
				 0);
		assert_int_equal(taken.profiles, 1);
		assert_int_equal(sink_request__profiles(&sealed.requests[0], "service-1",
							take_profile, &taken),
				 0);
		assert_int_equal(taken.profiles, 1);
		if (i < 2) /* the dictionary of OTLP is that of all */
			assert_false(taken.has_waits);
		sealed_window__fini(&sealed);
	}
}

TEST(in_files_the_state_of_waits_is_a_label)
{
	_cleanup_(sealed_window__fini) struct sealed_window sealed = {};
	_cleanup_(waits__fini) struct waits w = {};
	uint8_t *plain;
	_cleanup_cjson_ cJSON *json = NULL;
	size_t size;

	waits__init(&w);
	sealed = seal("dir", &w.m.window, true);
	plain = unzip(sealed.requests[0].body, sealed.requests[0].size, &size);
	assert_int_equal(count_fields(plain, size, PPROF_SAMPLE_TYPE), 3);
	assert_int_equal(count_fields(plain, size, PPROF_SAMPLE), 5);
	assert_true(contains(plain, size, "state"));
	assert_true(contains(plain, size, "lock"));
	assert_false(contains(plain, size, "[waiting"));
	free(plain);
	json = cJSON_ParseWithLength(sealed.requests[1].body, sealed.requests[1].size);
	assert_non_null(json);
	assert_int_equal(number(json, "cpu_ns"), RUN_MS * MS);
	assert_int_equal(number(json, "wall_ns"), (RUN_MS + LOCK_MS + DISK_MS + CPU_MS + 30) * MS);
	assert_int_equal(number(cJSON_GetArrayItem(get(json, "services"), 1), "wall_ns"), 30 * MS);
}

/* A leaf more: the stack is cut one frame earlier. */
TEST(leaves_of_waits_count_towards_the_depth_limit)
{
	struct location_id functions[2];
	struct stack_id stack = {0};
	struct thread_id thread;
	_cleanup_(waits__fini) struct waits w = {};

	fixture__init(&w.f, 200);
	profile_builder__session(w.f.b)->visits.hz = HZ;
	w.f.process = add_process(&w.f, 10, "deep", 0, 0);
	thread = add_thread(&w.f, w.f.process, 10, true, "deep", 0);
	for (uint32_t i = 0; i < 2; i++) {
		functions[i] = add_location(&w.f, w.f.program, 0x1000 + 0x100 * i);
		NAME(&w.f, functions[i], {.function = i ? "odd" : "even"});
	}
	for (size_t i = 0; i < VALID_DEPTH_MAX; i++)
		stack = profile_builder__stack(w.f.b, stack, functions[i % 2]);
	add_wait(&w.f, thread, 2, 42, stack, WALL_DISK, 40, (struct thread_id){0});
	account(&w.f, thread, 40, 0);
	made_window__init(&w.m, finish(&w.f), 1);
	assert_int_equal(parked__init(&w.parked, w.m.window.profile), 0);
	w.m.window.parked = &w.parked;
	make_series(&w.m.window, true);
	assert_int_equal(series.count, 1);
	assert_int_equal(series.data[0].wall_ns, 40 * MS);
	assert_true(contains(series.data[0].pprof.data, series.data[0].pprof.count, "[truncated]"));
	free_series();
}
