/* SPDX-License-Identifier: BSD-2-Clause */
/* Code in the cache on disk: what comes out is what was put in, with the samples of the new recording. */
#include <dirent.h>

#include "unit.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "stream/code_events.h"
#include "symbolize/code_cache.h"

#include "unit/tools.h"

#define FUNCTION_SIZE 64u
#define LIMIT	      (UINT64_C(1) << 20)

static const struct symbol_key KEY = {
	.identity = 7, .build_id_size = 20, .build_id = {0xab, 0xcd, 1, 2, 3}};

EACH_TEST_WITH(make_scratch, remove_scratch);

struct events {
	VEC(char) data;
};

static int keep(void *context, struct event_header *event)
{
	struct events *e = context;

	return vec_append(&e->data, (const char *)event, event->size);
}

/* ---- functions that follow from their number: each has its source, and one that all have ------- */

static uint64_t address_of(unsigned int number)
{
	return 0x1000 + number * 0x100;
}

static void put_source(struct events *e, const char *path, uint64_t time)
{
	const struct source_text source = {.path = path, .text = "0123456789abcdef", .size = 16};

	assert_int_equal(source_text__emit(&source, time, keep, e), 0);
}

/* As module__code(): a source is there before the first lines that name it. */
static void put_function(struct events *e, unsigned int number, uint64_t time, bool has_lines,
			 bool is_first)
{
	uint8_t bytes[FUNCTION_SIZE];
	const struct code_text text = {
		.machine = 1, .address = address_of(number), .bytes = bytes, .size = sizeof(bytes)};
	struct code_lines *lines = calloc(1, sizeof(*lines));
	char name[16], file[16];
	struct symbol_frame frame = {.function = name, .file = "/common.h", .line = 1};

	memset(bytes, (int)number, sizeof(bytes));
	snprintf(name, sizeof(name), "f%u", number);
	snprintf(file, sizeof(file), "/src/%u.c", number);
	assert_non_null(lines);
	*lines = (struct code_lines){.text = &text, .time = time, .push = keep, .context = e};
	assert_int_equal(code_text__emit(&text, time, keep, e), 0);
	if (has_lines) {
		assert_int_equal(code_lines__add(lines, 0, 0, &frame), 0);
		if (is_first)
			put_source(e, frame.file, time);
		frame.file = file;
		frame.line = 10 + number;
		put_source(e, frame.file, time);
		assert_int_equal(code_lines__add(lines, 8, 0, &frame), 0);
		assert_int_equal(code_lines__end(lines), 0);
	}
	free(lines);
}

static void put_name(struct symbol_blob *names, size_t index, unsigned int number,
		     unsigned int offset)
{
	const struct symbol_frame frame = {.function = "f",
					   .function_address = 0x400000 + address_of(number),
					   .function_size = FUNCTION_SIZE,
					   .line = 3};
	const struct symbol_result result = {
		.elf_address = frame.function_address + offset, .frames = &frame, .frame_count = 1};

	assert_int_equal(symbol_blob__add(names, index, &result), 0);
}

static struct code_cache *open_cache(void)
{
	struct code_cache *c = code_cache__open(scratch, LIMIT);

	assert_non_null(c);
	return c;
}

static void add(const struct symbol_key *key, const struct symbol_blob *names,
		const struct events *e)
{
	struct code_cache *c = open_cache();

	assert_int_equal(code_cache__add(c, key, names, e->data.data, e->data.count), 0);
	code_cache__free(c);
}

static void add_functions(const unsigned int *numbers, size_t count)
{
	struct events e = {};

	for (size_t i = 0; i < count; i++)
		put_function(&e, numbers[i], 99, true, !i);
	add(&KEY, NULL, &e);
	vec_free(&e.data);
}

/* With a sample at each of two places of the functions, and one more of the first one. */
static int ask(const struct symbol_key *key, const unsigned int *numbers, size_t count,
	       uint32_t least, struct events *out)
{
	struct code_cache *c = open_cache();
	struct symbol_blob names = {};
	struct code_address *addresses = calloc(2 * count, sizeof(*addresses));
	const struct code_question question = {.key = key,
					       .addresses = addresses,
					       .count = 2 * count,
					       .names = &names,
					       .least = least};
	size_t size = 0;
	char *events = NULL;
	int err;

	assert_non_null(addresses);
	for (size_t i = 0; i < 2 * count; i++) {
		addresses[i] = (struct code_address){address_of(numbers[i / 2]) + 8 * (i % 2),
						     1 + !i, 1 + !i};
		put_name(&names, i, numbers[i / 2], 8 * (i % 2));
	}
	err = code_cache__read(c, &question, &events, &size);
	if (!err && size)
		assert_int_equal(vec_append(&out->data, events, size), 0);
	free(events);
	free(addresses);
	symbol_blob__fini(&names);
	code_cache__free(c);
	return err;
}

static uint64_t time_of(uint64_t samples)
{
	return samples << 32 | samples;
}

static void assert_same(const struct events *got, const struct events *wanted)
{
	assert_int_equal(got->data.count, wanted->data.count);
	assert_memory_equal(got->data.data, wanted->data.data, wanted->data.count);
}

static void put_wanted(struct events *e, unsigned int number, uint64_t samples, bool is_first)
{
	put_function(e, number, time_of(samples), true, is_first);
}

/* ---- what comes out -------------------------------------------------------------------------- */

TEST(functions_come_back_with_the_samples_of_the_new_recording)
{
	struct events got = {}, wanted = {};

	add_functions((unsigned int[]){1, 2, 3}, 3);
	assert_int_equal(ask(&KEY, (unsigned int[]){3, 1}, 2, 1, &got), 0);
	put_wanted(&wanted, 3, 3, true); /* the hottest first, sources once */
	put_wanted(&wanted, 1, 2, false);
	assert_same(&got, &wanted);
	vec_free(&got.data);
	vec_free(&wanted.data);
}

TEST(functions_with_few_samples_need_not_be_there)
{
	struct events got = {}, wanted = {};

	add_functions((unsigned int[]){1}, 1);
	assert_int_equal(ask(&KEY, (unsigned int[]){1, 2}, 2, 1, &got), -ENOENT);
	assert_int_equal(ask(&KEY, (unsigned int[]){1, 2}, 2, 3, &got), 0);
	put_wanted(&wanted, 1, 3, true);
	assert_same(&got, &wanted);
	vec_free(&got.data);
	vec_free(&wanted.data);
}

TEST(what_is_new_is_added_to_what_is_there)
{
	struct events got = {}, wanted = {};

	add_functions((unsigned int[]){1, 2}, 2);
	add_functions((unsigned int[]){2, 3}, 2);
	assert_int_equal(ask(&KEY, (unsigned int[]){1, 2, 3}, 3, 1, &got), 0);
	put_wanted(&wanted, 1, 3, true);
	put_wanted(&wanted, 2, 2, false);
	put_wanted(&wanted, 3, 2, false);
	assert_same(&got, &wanted);
	vec_free(&got.data);
	vec_free(&wanted.data);
}

TEST(other_files_have_other_code)
{
	struct symbol_key other = KEY, nameless = KEY, without_lines = KEY;
	struct events got = {};

	add_functions((unsigned int[]){1}, 1);
	other.identity++;
	nameless.build_id_size = 0;
	without_lines.symbols_only = 1;
	assert_int_equal(ask(&other, (unsigned int[]){1}, 1, 1, &got), -ENOENT);
	assert_int_equal(ask(&nameless, (unsigned int[]){1}, 1, 1, &got), -ENOENT);
	assert_int_equal(ask(&without_lines, (unsigned int[]){1}, 1, 1, &got), -ENOENT);
	vec_free(&got.data);
}

TEST(functions_without_lines_are_kept_if_there_are_none)
{
	struct symbol_blob names = {};
	struct events e = {}, got = {};

	put_name(&names, 0, 1, 0); /* has a line */
	put_function(&e, 1, 99, false, false);
	add(&KEY, &names, &e);
	assert_int_equal(ask(&KEY, (unsigned int[]){1}, 1, 1, &got), -ENOENT);
	add(&KEY, NULL, &e);
	assert_int_equal(ask(&KEY, (unsigned int[]){1}, 1, 1, &got), 0);
	symbol_blob__fini(&names);
	vec_free(&e.data);
	vec_free(&got.data);
}

/* ---- bad files ------------------------------------------------------------------------------- */

static void only_file(char path[512])
{
	DIR *d = opendir(scratch);
	struct dirent *entry;

	assert_non_null(d);
	*path = '\0';
	while ((entry = readdir(d)))
		if (strstr(entry->d_name, ".code"))
			snprintf(path, 512, "%s/%s", scratch, entry->d_name);
	closedir(d);
}

TEST(a_file_that_is_cut_is_deleted)
{
	struct events got = {};
	char path[512];

	add_functions((unsigned int[]){1, 2}, 2);
	only_file(path);
	assert_int_equal(truncate(path, 200), 0);
	assert_int_equal(ask(&KEY, (unsigned int[]){1}, 1, 1, &got), -ENOENT);
	only_file(path);
	assert_string_equal(path, "");
	vec_free(&got.data);
}

/* The checksum is right: the content is checked as well. */
TEST(events_that_are_no_code_are_refused)
{
	struct event_header header = {.size = sizeof(header), .type = EVENT_BOOKS};
	struct events e = {};
	struct code_cache *c = open_cache();

	assert_int_equal(keep(&e, &header), 0);
	assert_int_equal(code_cache__add(c, &KEY, NULL, e.data.data, e.data.count), -EBADMSG);
	code_cache__free(c);
	vec_free(&e.data);
}
