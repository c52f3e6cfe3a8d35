/* SPDX-License-Identifier: BSD-2-Clause */
/* Which sources of a window are recorded, and for the programs of which root directories. */
#include "unit.h"
#include "base/cleanup.h"
#include "stream/code_events.h"
#include "window/hot_code.h"

#define EMITTED_MAX 8

static struct hot_code h; /* of the running test */
static size_t several;
static struct hot_code_counts counts;
static struct emitted {
	char path[32], text[32];
	uint8_t root, state;
} emitted[EMITTED_MAX];

static void set_up(void)
{
	h = (struct hot_code){};
	several = 0;
}

static void tear_down(void)
{
	hot_code__fini(&h);
}

EACH_TEST_WITH(set_up, tear_down);

/* `text` NULL: it could not be read. */
static void add(int root_fd, const char *path, const char *text, enum source_state state,
		bool is_script)
{
	const struct symbolizer_source source = {.root_fd = root_fd,
						 .path = path,
						 .text = text,
						 .size = text ? strlen(text) : 0,
						 .state = state};

	assert_int_equal(hot_code__add_source(&h, &source, is_script), 0);
}

static void add_source(int root_fd, const char *path, const char *text)
{
	add(root_fd, path, text, SOURCE_PLAUSIBLE, false);
}

static void add_script(int root_fd, const char *text, enum source_state state)
{
	add(root_fd, "/app.py", text, state, true);
}

/* A function without lines, whose events have this size. */
static void add_function(uint32_t size)
{
	_cleanup_free_ struct code_text_event *e = calloc(1, size);

	e->header = (struct event_header){.size = size, .type = EVENT_CODE_TEXT};
	assert_int_equal(hot_code__add(&h, (struct dso_id){1}, e, size), 0);
}

static int keep(void *context, struct event_header *event)
{
	const struct source_event *e = (const void *)event;
	size_t index = counts.sources - counts.left_sources - 1;
	struct emitted *at;

	(void)context;
	if (event->type != EVENT_SOURCE)
		return 0;
	assert_in_range(index, 0, EMITTED_MAX - 1);
	at = &emitted[index];
	*at = (struct emitted){.root = e->root, .state = e->state};
	snprintf(at->path, sizeof(at->path), "%s", e->data);
	snprintf(at->text, sizeof(at->text), "%.*s", (int)e->count, e->data + e->path_size);
	return 0;
}

/* The number of sources. */
static size_t emit(uint64_t limit)
{
	counts = (struct hot_code_counts){};
	assert_int_equal(hot_code__number_roots(&h, &several), 0);
	assert_int_equal(hot_code__emit(&h, limit, 0, keep, NULL, &counts), 0);
	return counts.sources - counts.left_sources;
}

static void assert_emitted(size_t i, uint8_t root, const char *text)
{
	assert_int_equal(emitted[i].root, root);
	assert_string_equal(emitted[i].text, text);
}

TEST(roots_with_the_same_files_share_a_number)
{
	for (int root = 3; root < 5; root++) {
		add_source(root, "/a.c", "one");
		add_source(root, "/b.c", NULL);
	}
	add_source(5, "/a.c", "another");
	add_source(5, "/b.c", NULL);
	assert_int_equal(emit(1000), 2);
	assert_emitted(0, 0, "one");
	assert_emitted(1, 1, "another");
	assert_int_equal(hot_code__root(&h, 4), 0);
	assert_int_equal(hot_code__root(&h, 5), 1);
}

/* Programs of the one may name files of the other in code that is not hot. */
TEST(roots_with_other_files_share_none)
{
	add_source(3, "/a.c", "one");
	add_source(3, "/b.c", "two");
	add_source(4, "/a.c", "one");
	add_source(5, "/a.c", "one");
	add_source(5, "/c.c", "three");
	assert_int_equal(emit(1000), 5);
	for (int root = 3; root < 6; root++)
		assert_int_equal(hot_code__root(&h, root), root - 3);
}

TEST(a_root_without_sources_gets_none_of_others)
{
	assert_int_equal(hot_code__root(&h, 3), 0); /* there are none */
	add_source(3, "/a.c", "one");
	emit(1000);
	assert_int_equal(hot_code__root(&h, 3), 0);
	assert_int_equal(hot_code__root(&h, 4), SOURCE_ROOT_NONE);
	assert_int_equal(hot_code__root(&h, -1), SOURCE_ROOT_NONE);
}

TEST(a_file_of_this_machine_is_one_for_all_roots)
{
	add_source(-1, "/a.c", "mapped");
	assert_int_equal(emit(1000), 1);
	assert_emitted(0, SOURCE_ROOT_ALL, "mapped");
	assert_int_equal(hot_code__root(&h, 3), 0);
}

TEST(a_script_is_apart_from_a_source_of_its_path)
{
	add_source(3, "/app.py", "of a program");
	add_script(3, "of a script", SOURCE_PLAUSIBLE);
	assert_int_equal(emit(1000), 2);
	assert_emitted(0, 0, "of a program");
	assert_emitted(1, SOURCE_ROOT_SCRIPTS, "of a script");
}

TEST(scripts_with_other_texts_are_left_out)
{
	add_script(3, "one", SOURCE_PLAUSIBLE);
	add_script(4, "two", SOURCE_PLAUSIBLE);
	assert_int_equal(emit(1000), 0);
	assert_int_equal(several, 1);
}

TEST(equal_scripts_are_one_in_the_worst_state)
{
	add_script(3, "one", SOURCE_PLAUSIBLE);
	add_script(4, "one", SOURCE_CHANGED);
	assert_int_equal(emit(1000), 1);
	assert_int_equal(several, 0);
	assert_int_equal(emitted[0].state, SOURCE_CHANGED);
}

TEST(a_script_of_an_unknown_root)
{
	add_script(-1, NULL, 0);
	add_script(3, "one", SOURCE_PLAUSIBLE);
	assert_int_equal(emit(1000), 1);
	assert_int_equal(emitted[0].state, SOURCE_PLAUSIBLE);
}

TEST(a_script_that_could_not_be_read_in_one_root)
{
	add_script(4, NULL, 0);
	add_script(3, "one", SOURCE_PLAUSIBLE);
	assert_int_equal(emit(1000), 1);
	assert_emitted(0, SOURCE_ROOT_SCRIPTS, "one");
	assert_int_equal(emitted[0].state, SOURCE_CHANGED);
	assert_int_equal(several, 0);
}

/* Of 1000 bytes 250 are the sources', if they use them. */
TEST(a_text_of_several_roots_takes_room_once)
{
	for (int root = 3; root < 8; root++)
		add_source(root, "/a.c", "0123456789012345678901234567890123456789");
	add_function(960);
	assert_int_equal(emit(1000), 1);
	assert_int_equal(counts.functions, 1);
}

TEST(sources_of_roots_without_a_number_are_counted)
{
	char text[8];

	for (int root = 0; root <= SOURCE_ROOT_LAST + 2; root++) {
		snprintf(text, sizeof(text), "%d", root);
		add_source(root, "/a.c", text);
	}
	assert_int_equal(hot_code__number_roots(&h, &several), 0);
	assert_int_equal(hot_code__root(&h, SOURCE_ROOT_LAST), SOURCE_ROOT_LAST);
	assert_int_equal(hot_code__root(&h, SOURCE_ROOT_LAST + 1), SOURCE_ROOT_NONE);
	counts = (struct hot_code_counts){};
	assert_int_equal(hot_code__emit(&h, 8, 0, keep, NULL, &counts), 0);
	assert_int_equal(counts.sources, SOURCE_ROOT_LAST + 3);
	assert_int_equal(counts.left_sources, SOURCE_ROOT_LAST + 3 - EMITTED_MAX);
}
