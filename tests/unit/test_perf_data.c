/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files of perf record: testdata/perf_data.txt, whose words are the steps below. Here: what depends on the kernel that runs,
 * what takes a thousand records and more, and a file that is cut anywhere.
 */
#include "perf_records_support.h"

#include <sysprof/meta_keys.h>

#include "base/io.h"
#include "base/kernel_build_id.h"
#include "stream/perf/perf_data.h"
#include "stream/perf/perf_kernel.h"
#include "stream/perf/perf_tasks.h"
#include "tenants/outside_books.h"
#include "window/replay.h"

#define KERNEL 0xffffffff81000000ull

enum {
	FEATURE_BUILD_ID = 2,
	FEATURE_ARCH = 6,
	FEATURE_COMMAND = 11,
	FEATURE_EVENTS,
	FEATURE_CLOCK = 29
};
enum { HEADER_ATTR = 64, HEADER_BUILD_ID = 67, FINISHED_ROUND = 68, COMPRESSED = 81 };

/* ---- bytes ----------------------------------------------------------------------------------- */

/* A frame of zstd (RFC 8878) whose blocks are what they hold. */
static void begin_frame(bytes *to)
{
	put(to, "\x28\xb5\x2f\xfd\x00\x58", 6);
}

static void put_block(bytes *to, const void *data, size_t size)
{
	PUT32(to, (uint32_t)size << 3);
	to->count--; /* three bytes */
	put(to, data, size);
}

/* The records so far as one frame in two records, the first of `size` bytes. */
static void pack(size_t size)
{
	bytes inner = made.records, body = {};

	made.records = (bytes){};
	begin_frame(&body);
	put_block(&body, inner.data, size);
	put_record(&made.records, COMPRESSED, 0, &body);
	put_block(&body, inner.data + size, inner.count - size);
	put_record(&made.records, COMPRESSED, 0, &body);
	vec_free(&inner);
}

/* Blocks of one byte, 128 KB of it. */
static void add_bomb(size_t blocks)
{
	static const uint8_t block[] = {0x02, 0x00, 0x10, 0x00};
	bytes body = {};

	begin_frame(&body);
	for (size_t i = 0; i < blocks; i++)
		put(&body, block, sizeof(block));
	put_record(&made.records, COMPRESSED, 0, &body);
}

static void add_build_id(uint16_t misc, const uint8_t id[20], const char *path, size_t longer)
{
	bytes body = {}, *to = &made.features[FEATURE_BUILD_ID];
	size_t at = to->count;

	PUT32(&body, ~0u);
	put(&body, id, 20);
	PUT32(&body, 0);
	put_name(&body, path);
	put_record(to, HEADER_BUILD_ID, misc, &body);
	to->data[at + offsetof(struct perf_event_header, size)] += longer;
}

/* Of a path: bytes `first`, `first` + 1, … */
static void add_build_id_step(char *words)
{
	const char *path = text_word(&words);
	uint8_t id[20];

	for (uint8_t i = 0; i < 20; i++)
		id[i] = (uint8_t)(text_option(words, "first=", 1) + i);
	add_build_id(PERF_RECORD_MISC_USER, id, path, text_option(words, "longer=", 0));
}

/* The name of the first event. */
static void add_event_name(const char *name)
{
	bytes *to = &made.features[FEATURE_EVENTS];

	PUT32(to, 1, sizeof(*made.attrs));
	put(to, made.attrs, sizeof(*made.attrs));
	PUT32(to, 1, (uint32_t)strlen(name) / 8 * 8 + 8);
	put_name(to, name);
	PUT64(to, 1);
}

static void add_command(const char *option)
{
	const char *const arguments[] = {"perf", "record", option, "--", "sleep"};
	bytes *to = &made.features[FEATURE_COMMAND];

	PUT32(to, 5);
	for (size_t i = 0; i < 5; i++) {
		PUT32(to, (uint32_t)(strlen(arguments[i]) / 8 * 8 + 8));
		put_name(to, arguments[i]);
	}
}

static bool take_bytes_step(const char *name, char *words)
{
	bytes *records = &made.records;

	if (!strcmp(name, "bytes")) {
		put_words(records, words);
	} else if (!strcmp(name, "pack")) {
		pack(text_number(&words, 0));
	} else if (!strcmp(name, "bomb")) {
		add_bomb(text_number(&words, 0));
	} else if (!strcmp(name, "flip")) { /* this far into the records; or from their end */
		long at = strtol(words, NULL, 0);

		records->data[at < 0 ? (long)records->count + at : at] ^= 0x80;
	} else {
		return false;
	}
	return true;
}

static bool take_file_step(const char *name, char *words)
{
	if (!strcmp(name, "pipe"))
		made.pipe = true;
	else if (!strcmp(name, "without-ids"))
		made.without_ids = true;
	else if (!strcmp(name, "copies"))
		made.copies = true;
	else if (!strcmp(name, "shared-ids"))
		made.shared_ids = text_number(&words, 0);
	else if (!strcmp(name, "cut"))
		made.cut = text_number(&words, 0);
	else if (!strcmp(name, "set"))
		made.change_at = text_number(&words, 0), put_words(&made.change, words);
	else if (!strcmp(name, "build-id"))
		add_build_id_step(words);
	else if (!strcmp(name, "event-name"))
		add_event_name(words);
	else if (!strcmp(name, "command"))
		add_command(words);
	else if (!strcmp(name, "arch"))
		put_words(&made.features[FEATURE_ARCH], words);
	else if (!strcmp(name, "wall-clock"))
		put_words(&made.features[FEATURE_CLOCK], words);
	else
		return false;
	return true;
}

static bool take_step(FILE *out, const char *name, char *words)
{
	if (!strcmp(name, "with"))
		change_event(words);
	else if (!strcmp(name, "round"))
		put_record(&made.records, FINISHED_ROUND, 0, &(bytes){});
	else
		return take_event_step(name, words) || take_record_step(name, words) ||
		       take_bytes_step(name, words) || take_file_step(name, words);
	return true;
}

/* ---- the file ------------------------------------------------------------------------------ */

static void put_header(bytes *file, uint64_t data_at)
{
	uint64_t header[13] = {0,
			       104,
			       sizeof(struct perf_event_attr) + 16,
			       104,
			       made.attr_count * (sizeof(struct perf_event_attr) + 16),
			       data_at,
			       made.records.count};

	memcpy(header, "PERFILE2", 8);
	for (size_t i = 0; i < 32; i++)
		header[9] |= (uint64_t)(made.features[i].count > 0) << i;
	put(file, header, sizeof(header));
}

static void put_features(bytes *file)
{
	size_t count = 0;
	uint64_t at;

	for (size_t i = 0; i < 32; i++)
		count += made.features[i].count > 0;
	at = file->count + 16 * count;
	for (size_t i = 0; i < 32; i++) {
		if (!made.features[i].count)
			continue;
		PUT64(file, at, made.features[i].count);
		at += made.features[i].count;
	}
	for (size_t i = 0; i < 32; i++)
		put(file, made.features[i].data, made.features[i].count);
}

static void put_pipe(bytes *file)
{
	put(file, "PERFILE2", 8);
	PUT64(file, 16);
	for (size_t i = 0; i < made.attr_count; i++) {
		const struct perf_event_header header = {
			.type = HEADER_ATTR,
			.size = (uint16_t)(sizeof(header) + sizeof(*made.attrs) +
					   (made.without_ids ? 0 : 8))};

		put(file, &header, sizeof(header));
		put(file, &made.attrs[i], sizeof(*made.attrs));
		if (!made.without_ids)
			PUT64(file, i + 1);
	}
	put(file, made.records.data, made.records.count);
	put(file, made.features[FEATURE_BUILD_ID].data, made.features[FEATURE_BUILD_ID].count);
}

static bytes finished_file(void)
{
	size_t attrs = made.attr_count * (sizeof(*made.attrs) + 16);
	uint64_t ids_at = 104 + attrs, data_at = ids_at + 8 * made.attr_count;
	bytes file = {};

	if (made.pipe) {
		put_pipe(&file);
		return file;
	}
	put_header(&file, data_at);
	for (size_t i = 0; i < made.attr_count; i++) {
		put(&file, &made.attrs[i], sizeof(*made.attrs));
		PUT64(&file, made.shared_ids ? data_at + made.records.count : ids_at + 8 * i,
		      made.shared_ids ? 8 * made.shared_ids : 8);
	}
	for (size_t i = 0; i < made.attr_count; i++)
		PUT64(&file, i + 1);
	put(&file, made.records.data, made.records.count);
	for (size_t i = 0; i < made.shared_ids; i++)
		PUT64(&file, 1);
	put_features(&file);
	if (made.change.count)
		memcpy(file.data + made.change_at, made.change.data, made.change.count);
	file.count = made.cut ?: file.count;
	return file;
}

/* ---- what is read ---------------------------------------------------------------------------- */

struct reading {
	FILE *out;
	uint64_t last;
	bool all; /* facts of the event too */
	bool begun, after_fact, ended;
};

/* Of the last file. */
static struct perf_data_summary summary;

/* Facts are lines of their own; the end has the time of what is last. */
static int take_event(void *context, const struct event_header *event)
{
	struct reading *r = context;
	const char *key = ((const struct meta_event *)event)->text;
	bool fact = event->type == EVENT_META;

	assert_int_equal(event_check(event, event->size), 0);
	assert_true(event->time >= r->last && !r->ended);
	if (event->type == EVENT_COMM && ((const struct comm_event *)event)->pid + 1 <= 1)
		return 0; /* the idle task and those that have ended: always */
	r->ended = event->type == EVENT_END;
	if (r->ended)
		assert_true(event->time == r->last);
	r->last = event->time;
	if (r->ended ||
	    (fact && strcmp(key, META_NOT_READ) && strcmp(key, META_UNTIMED) && !r->all))
		return 0;
	fputs(!r->begun ? "" : fact || r->after_fact ? "\n" : ", ", r->out);
	put_event(r->out, event);
	r->begun = true;
	r->after_fact = fact;
	return 0;
}

static int read_bytes(const bytes *file, bool all, char **text)
{
	int fd = memfd_create("perf.data", MFD_CLOEXEC), err;
	struct failure failure = {};
	struct reading r = {.all = all};
	struct running_kernel kernel;
	size_t size;

	assert_int_equal(write_full(fd, file->data, file->count), 0);
	r.out = open_memstream(text, &size);
	running_kernel__open(&kernel);
	err = perf_data_read(fd, &(struct perf_data_options){made.copies, &kernel}, take_event, &r,
			     &summary, &failure);
	running_kernel__close(&kernel);
	assert_true(err || r.ended);
	if (err)
		fprintf(r.out, "%s: %s", strerrorname_np(-err), failure.what);
	fclose(r.out);
	close(fd);
	return err;
}

static void build(const char *steps)
{
	_cleanup_free_ char *copy = strdup(steps);

	begin_file();
	text_run_steps(stderr, copy, take_step);
}

static char *read_file(bool all)
{
	bytes file = finished_file();
	char *text;

	read_bytes(&file, all, &text);
	vec_free(&file);
	return text;
}

/* ---- the table ------------------------------------------------------------------------------- */

static void print_file(FILE *out, char *input, bool all)
{
	_cleanup_free_ char *text = NULL;

	begin_file();
	text_run_steps(out, input, take_step);
	text = read_file(all);
	fputs(text, out);
}

static void read_input(FILE *out, char *input)
{
	print_file(out, input, false);
}

static void facts_input(FILE *out, char *input)
{
	print_file(out, input, true);
}

/* The target of a profile of which perf ran with this option. */
static void target_input(FILE *out, char *input)
{
	_cleanup_free_ char *text = NULL;
	const char *at;

	build("clock; sample 100 1"); /* without records it has no features */
	add_command(input);
	text = read_file(true);
	at = strstr(text, META_TARGET ": ");
	if (at)
		fprintf(out, "%.*s", (int)strcspn(at, "\n"), at);
}

static void module_input(FILE *out, char *input)
{
	char name[16];

	perf_kernel__module_name(input, name, sizeof(name));
	fputs(name, out);
}

static const struct text_verb verbs[] = {{"read", read_input},
					 {"facts", facts_input},
					 {"target", target_input},
					 {"module", module_input},
					 {}};

TEXT_TABLE("perf_data", verbs, NULL, NULL);

/* ---- the kernel that runs -------------------------------------------------------------------- */

/* False: it does not show its build-id. */
static bool add_own_kernel(void)
{
	char text[64];
	uint8_t id[20];

	if (kernel_build_id__read(text, sizeof(text)) || strlen(text) != 2 * sizeof(id))
		return false;
	for (size_t i = 0; i < sizeof(id); i++)
		assert_int_equal(sscanf(text + 2 * i, "%2hhx", &id[i]), 1);
	add_build_id(PERF_RECORD_MISC_KERNEL, id, "[kernel.kallsyms]", 0);
	return true;
}

TEST(the_same_kernel_has_no_names_where_its_address_was_not_recorded)
{
	static const char *const files[] = {
		"clock; sample 100 kernel ffffffff81000001", /* no mapping at all */
		"clock; sample 100 kernel ffffffff81000001; old-map 0 ffffffff81000000 [kernel.kallsyms] kernel"};

	for (size_t i = 0; i < 2; i++) {
		_cleanup_free_ char *text = NULL;

		build(files[i]);
		if (!add_own_kernel())
			skip();
		text = read_file(false);
		assert_string_equal(
			text, "100 sample 7/8 250000 ns in the kernel: ffffffff81000001 end 1");
		assert_int_equal(summary.kernel_names, PERF_KERNEL_UNKNOWN);
	}
}

/* ---- many records ---------------------------------------------------------------------------- */

TEST(reports_of_kernel_code_over_a_limit_are_counted)
{
	_cleanup_free_ char *text = NULL;
	char words[64];

	build("clock");
	for (unsigned int i = 0; i < 32768 + 3; i++) {
		snprintf(words, sizeof(words), "%llx bpf_prog_1", KERNEL + 64ull * (100000 - i));
		add_ksymbol(PERF_RECORD_KSYMBOL, 100, words);
	}
	text = read_file(false);
	assert_non_null(
		strstr(text, "not_read: reports of kernel code over the limit of 32,768: 3"));
}

/* One mapping as `count`, each behind the one before. */
static void add_mappings(uint32_t count)
{
	uint64_t start = 0x100000000;
	size_t size;

	build("clock; map 100 100000000 /bin/pages");
	size = made.records.count;
	assert_int_equal(vec_reserve(&made.records, size * count), 0);
	for (uint32_t i = 1; i < count; i++) {
		uint8_t *copy = made.records.data + size * i;

		start += 0x2000;
		memcpy(copy, made.records.data, size);
		memcpy(copy + 16, &start, sizeof(start));
	}
	made.records.count = size * count;
}

TEST(mappings_over_a_limit_are_in_the_profile_as_left_out)
{
	enum { MAX = 262144 };
	const struct replay_options options = {};
	const struct profile *profile;
	struct windows *windows;
	struct failure failure = {};
	bytes file;
	_cleanup_close_ int fd = memfd_create("perf.data", MFD_CLOEXEC);

	add_mappings(MAX + 3);
	file = finished_file();
	assert_int_equal(write_full(fd, file.data, file.count), 0);
	assert_int_equal(
		replay_perf_data(fd, "x", &options, &windows, &profile, &summary, &failure), 0);
	assert_int_equal(profile->outside_count, 1);
	assert_int_equal(profile->outside[0].thing, OUTSIDE_MAPPINGS);
	assert_int_equal(profile->outside[0].reason, OUTSIDE_BY_ITSELF);
	assert_int_equal(profile->outside[0].count, 3);
	windows__free(windows);
	vec_free(&file);
}

TEST(a_file_has_no_more_lives_of_tasks_than_its_size_allows)
{
	_cleanup_free_ struct perf_tasks *tasks = calloc(1, sizeof(*tasks));
	uint32_t admitted = 0;

	while (perf_tasks__admit(tasks, 400, 7, 7, true) == PERF_TASK_ADMITTED)
		admitted++;
	assert_int_equal(admitted, 4096 + 100);
	assert_int_equal(perf_tasks__admit(tasks, 400, 7, 7, false), PERF_TASK_ADMITTED);
	assert_int_equal(perf_tasks__admit(tasks, 400, 7, 8, false), PERF_TASK_OVER_LIMIT);
	assert_int_equal(perf_tasks__admit(tasks, 800, 7, 8, false), PERF_TASK_ADMITTED);
}

/* Samples at `time`, `time` + 1, …, in several pieces of the file's order, and rounds. */
static void add_many(uint64_t time, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		add_sample(PERF_RECORD_SAMPLE, time + i, (char[]){"deep=100"});
		if (i % 50 == 49)
			put_record(&made.records, FINISHED_ROUND, 0, &(bytes){});
	}
}

/* All samples at their own times, in order. */
static void assert_in_order(uint64_t time, unsigned int count)
{
	_cleanup_free_ char *text = read_file(false);
	char *at = text, sample[64];

	for (unsigned int i = 0; i < count; i++) {
		snprintf(sample, sizeof(sample), "%" PRIu64 " sample ", time + i);
		at = strstr(at, sample);
		if (!at)
			fail_msg("no '%s'", sample);
	}
	assert_null(strstr(text, " lost "));
}

TEST(mappings_far_ahead_of_their_place_do_not_move_later_samples)
{
	build("clock");
	for (uint64_t i = 0; i < 1000; i++) /* as perf inject --jit puts them */
		add_mapping(PERF_RECORD_MMAP2, 1000 + 2 * i, (char[]){"400000 /tmp/jitted-7-1.so"});
	add_many(1000, 2000);
	assert_in_order(1000, 2000);
}

TEST(a_sample_whose_time_is_damaged_does_not_move_others)
{
	build("clock");
	add_many(1000, 200);
	add_sample(PERF_RECORD_SAMPLE, 1ull << 62, (char[]){"1"});
	add_many(1200, 400);
	assert_in_order(1000, 600);
}

TEST(rounds_of_any_size_are_put_in_order)
{
	build("clock");
	add_many(1300, 300);
	add_many(1000, 300);
	put_record(&made.records, FINISHED_ROUND, 0, &(bytes){});
	assert_in_order(1000, 600);
}

TEST(wherever_a_file_is_cut_it_is_read_or_refused_with_a_reason)
{
	bytes file;

	build("clock; build-id /bin/known; map 99 500000 /bin/known; sample 100 1; round");
	file = finished_file();
	for (size_t whole = file.count; file.count--;) {
		_cleanup_free_ char *text = NULL;
		int err = read_bytes(&file, false, &text);

		if (err && !strcmp(strchr(text, ':'), ": "))
			fail_msg("%zu of %zu bytes: no reason", file.count, whole);
	}
	file.count = 0;
	vec_free(&file);
}
