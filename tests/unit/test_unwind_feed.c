/* SPDX-License-Identifier: BSD-2-Clause */
/* Which tables are built when, for processes that have this program's own files mapped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clocks.h"
#include "runtimes/table.h"
#include "unwind/build.h"
#include "unwind/table_cache.h"
#include "unwind/unwind_feed.h"
#include "unwind/unwind_feed_files.h"
#include "unwind/unwind_table.h"

#include "unit/table_memory.h"

#define SEGMENT_SIZE (4u << 20)
#define SECOND	     1000000000ull
#define FILES	     3
#define MADE_CODE    (FILES + 1) /* the image that is no file */

struct scene {
	struct table_memory memory;
	struct table_store *store;
	struct helper_pool *builders;
	struct unwind_feed *feed;
	uint32_t described; /* the last process whose jitdump's table is there */
	int fds[FILES + 1]; /* by image, from 1 on */
	struct mapping mappings[FILES + 1];
	bool jvm, pypy;
	unsigned int requested, requests;
	bool late; /* nothing is reported at once */
	struct image_id pending;
	/* of the last requests */
	uint64_t ticket;
	struct made_runtime runtime;
};

/* Now, or when answer_now() is called. */
static int request_file(void *context, struct image_id image)
{
	struct scene *w = context;
	int fd = image.v <= FILES ? w->fds[image.v] : -1;

	w->requests++;
	w->pending = image;
	return w->late ? 0 : unwind_feed__answer_file(w->feed, image, fd, 0);
}

static struct fed_image describe(void *context, struct image_id image)
{
	struct scene *w = context;
	const char *name = image.v != 1 ? "" : w->pypy ? "pypy3" : w->jvm ? "libjvm.so" : "";

	return (struct fed_image){.is_made = image.v == MADE_CODE,
				  .runtime = runtime_of_file(name)};
}

static int request_frames(void *context, const struct made_request *request)
{
	struct scene *w = context;
	struct made_frame frame = {.size = 192, .ra_offset = -8};
	const struct made_answer answer = {
		.ticket = request->ticket,
		.runtime = request->runtime,
		.frames = &frame,
		.count = 1,
	};

	assert_int_equal(request->runtime->by, MADE_BY_PYPY);
	assert_int_equal(request->area_count, 1);
	assert_int_equal(request->areas[0].start, 0x10000);
	assert_true(request->registers && request->registers[14] == 14);
	w->requested++;
	frame.start = request->areas[0].start;
	frame.end = request->areas[0].end;
	if (!w->late)
		return unwind_feed__answer_frames(w->feed, &answer) < 0 ? -ENOMEM : 0;
	w->ticket = request->ticket;
	w->runtime = *request->runtime;
	return 0;
}

static int note_described(void *context, uint32_t tgid)
{
	((struct scene *)context)->described = tgid;
	return 0;
}

static bool is_file_mapping(const char *line, struct mapping *mapping, char path[4096])
{
	unsigned long start, end, offset;
	char mode[5];

	if (sscanf(line, "%lx-%lx %4s %lx %*s %*s %4095s", &start, &end, mode, &offset, path) != 5)
		return false;
	*mapping = (struct mapping){.start = start, .end = end, .page_offset = offset};
	return mode[2] == 'x' && path[0] == '/';
}

static uint64_t size_of(const struct mapping *mapping)
{
	return mapping->end - mapping->start;
}

static void replace_file(struct scene *w, uint32_t image, const struct mapping *mapping,
			 const char *path)
{
	if (w->fds[image] > 0)
		close(w->fds[image]);
	w->mappings[image] = *mapping;
	w->mappings[image].image.v = image;
	w->fds[image] = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(w->fds[image] >= 0);
}

/* The executable mappings of two small files of this process, and of one with a table that is worth keeping. */
static void find_files(struct scene *w)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4096], path[4096];
	struct mapping mapping;
	uint32_t found = 0;

	assert_non_null(maps);
	memset(w->fds, 0, sizeof(w->fds));
	memset(w->mappings, 0, sizeof(w->mappings));
	while (fgets(line, sizeof(line), maps)) {
		if (!is_file_mapping(line, &mapping, path))
			continue;
		if (size_of(&mapping) < 1 << 20) {
			if (found < FILES - 1)
				replace_file(w, ++found, &mapping, path);
		} else if (!w->fds[FILES] || size_of(&mapping) < size_of(&w->mappings[FILES])) {
			replace_file(w, FILES, &mapping, path);
		}
	}
	assert_int_equal(found, FILES - 1);
	assert_true(w->fds[FILES] > 0);
	fclose(maps);
}

static void set_up_options(struct scene *w, const struct unwind_feed_options *more)
{
	struct unwind_feed_options options = {
		.table_limit = SEGMENT_SIZE,
		.credit = more->credit,
		.cache = more->cache,
		.files_max = more->files_max,
		.request_file = request_file,
		.describe = describe,
		.request_frames = request_frames,
		.described = note_described,
		.context = w,
	};
	const struct table_store_options store = {.memory = &w->memory.shared};

	*w = (struct scene){};
	table_memory__init(&w->memory, SEGMENT_SIZE, 1);
	find_files(w);
	options.store = w->store = table_store__new(&store);
	assert_int_equal(helper_pool__new(&builder_options, &w->builders), 0);
	options.builders = w->builders;
	assert_int_equal(unwind_feed__new(&options, &w->feed), 0);
}

static void set_up_with(struct scene *w, int64_t credit, struct table_cache *cache)
{
	set_up_options(w, &(struct unwind_feed_options){.credit = credit, .cache = cache});
}

static void set_up_files(struct scene *w, size_t files_max)
{
	set_up_options(w, &(struct unwind_feed_options){.files_max = files_max});
}

static void set_up(struct scene *w, int64_t credit)
{
	set_up_with(w, credit, NULL);
}

static void tear_down(struct scene *w)
{
	unwind_feed__free(w->feed);
	helper_pool__free(w->builders);
	table_store__free(w->store);
	for (int i = 1; i <= FILES; i++)
		close(w->fds[i]);
	table_memory__fini(&w->memory);
}

/* With the images that are named by their digits. */
struct scene_maps {
	struct mapping data[FILES + 1];
	struct mapping_run run;
	size_t count;
};

static int compare_mappings(const void *a, const void *b)
{
	const struct mapping *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static struct mappings maps_of(const struct scene *w, const char *images, struct scene_maps *maps)
{
	maps->count = 0;
	for (; *images; images++) {
		unsigned int image = *images - '0';
		struct mapping made = {.start = 0x10000, .end = 0x20000, .image = {MADE_CODE}};

		maps->data[maps->count++] = image == MADE_CODE ? made : w->mappings[image];
	}
	qsort(maps->data, maps->count, sizeof(maps->data[0]), compare_mappings);
	maps->run = (struct mapping_run){maps->data, maps->count, maps->data[maps->count - 1].end};
	return (struct mappings){.runs = &maps->run, .run_count = 1, .count = maps->count};
}

static struct fed_runtimes runtimes_of(const struct scene *w, struct mappings maps)
{
	struct fed_runtimes runtimes = {};
	struct mapping_cursor at = {};

	for (const struct mapping *m; (m = mappings__next(maps, &at));)
		unwind_feed__note_runtime(w->feed, m, &runtimes);
	return runtimes;
}

static struct fed_process process_with(const struct scene *w, uint32_t tgid, struct mappings maps)
{
	return (struct fed_process){.tgid = tgid,
				    .time = monotonic_ns(),
				    .maps = maps,
				    .runtimes = runtimes_of(w, maps)};
}

/* What is published for the place of a dso: a table's number, or what there is instead. */
static uint32_t published(const struct scene *w, uint32_t tgid, unsigned int dso)
{
	uint64_t start = dso == MADE_CODE ? 0x10000 : w->mappings[dso].start;

	for (size_t i = 0; i < UNWIND_PROCESSES; i++) {
		uint64_t word = w->memory.shared.processes[i];
		const uint64_t *starts;
		const struct unwind_place *places;

		if (!word || unwind_word_tgid(word) != tgid)
			continue;
		starts = (const void *)(w->memory.shared.places + unwind_word_offset(word) + 8);
		places = (const void *)(starts + unwind_word_count(word));
		for (uint32_t p = 0; p < unwind_word_count(word); p++)
			if (starts[p] == start)
				return places[p].table;
	}
	fail_msg("nothing is published for dso %u of process %u", dso, tgid);
	return 0;
}

static bool is_there(const struct scene *w, uint32_t number)
{
	return number < UNWIND_TABLES && w->memory.shared.tables[number].number_size;
}

/* The feed's answer to a stack that ended in the file of this dso. */
static int await(const struct scene *w, const struct fed_process *process, unsigned int dso)
{
	return unwind_feed__await(w->feed, process, w->mappings[dso].start);
}

/* Places first, tables later; a stack waits for them a while, and at the end for as long as it takes. */
static void a_stack_waits_for_tables_that_are_being_built(void **state)
{
	struct scene_maps maps_space;
	struct mappings maps;
	struct scene w;
	struct fed_process process;
	uint32_t number;

	(void)state;
	set_up(&w, 0);
	maps = maps_of(&w, "12", &maps_space);
	process = process_with(&w, 10, maps);
	assert_int_equal(unwind_feed__publish(w.feed, &process), 0);
	number = published(&w, 10, 1);
	assert_true(number < UNWIND_TABLES);
	/* they are not taken yet, built or not */
	assert_false(is_there(&w, number));
	assert_true(unwind_feed__is_building(w.feed));
	assert_int_equal(await(&w, &process, 1), -EAGAIN);
	assert_int_equal(await(&w, &process, 2), -EAGAIN);
	assert_int_equal(unwind_feed__await(w.feed, &process, 0x1000), 0);
	process.time -= SECOND;
	assert_int_equal(await(&w, &process, 1), 0);
	unwind_feed__end(w.feed);
	assert_int_equal(await(&w, &process, 1), 1);
	assert_true(is_there(&w, number));
	assert_int_equal(await(&w, &process, 1), 0);
	assert_int_equal(await(&w, &process, 2), 1);
	assert_true(is_there(&w, published(&w, 10, 2)));
	assert_false(unwind_feed__is_building(w.feed));
	assert_true(unwind_feed__has_tables(w.feed, maps));
	/* the next process has them at once */
	process.tgid = 11;
	assert_int_equal(unwind_feed__publish(w.feed, &process), 0);
	assert_int_equal(published(&w, 11, 1), number);
	tear_down(&w);
}

/* A table that made room for others comes back when it is missed, once. */
static void an_evicted_table_comes_back_when_it_is_missed(void **state)
{
	struct unwind_feed_stats stats;
	struct scene_maps maps_space;
	struct mappings maps;
	struct fed_process process;
	struct scene w;
	uint32_t number;

	(void)state;
	set_up(&w, 0);
	maps = maps_of(&w, "1", &maps_space);
	process = process_with(&w, 10, maps);
	unwind_feed__end(w.feed);
	assert_int_equal(unwind_feed__publish(w.feed, &process), 0);
	assert_int_equal(await(&w, &process, 1), 1);
	number = published(&w, 10, 1);
	assert_int_equal(unwind_feed__missed(w.feed, &process, w.mappings[1].start, NULL), 0);
	assert_true(is_there(&w, number));
	w.memory.shared.tables[number].number_size = 0;
	assert_int_equal(unwind_feed__missed(w.feed, &process, 0x1000, NULL), 0);
	assert_int_equal(unwind_feed__missed(w.feed, &process, w.mappings[1].start, NULL), 0);
	assert_int_equal(unwind_feed__missed(w.feed, &process, w.mappings[1].start, NULL), 0);
	assert_int_equal(await(&w, &process, 1), 1);
	assert_true(is_there(&w, number));
	unwind_feed__stats(w.feed, &stats);
	assert_int_equal(stats.put_off, 0);
	tear_down(&w);
}

/* A user without credit builds for processes of some age only. */
static void without_credit_tables_are_built_only_for_older_processes(void **state)
{
	struct scene_maps first_space, second_space;
	struct mappings first, second;
	struct fed_process old, young;
	struct unwind_feed_stats stats;
	struct scene w;

	(void)state;
	set_up(&w, 1);
	first = maps_of(&w, "1", &first_space);
	second = maps_of(&w, "2", &second_space);
	unwind_feed__end(w.feed);
	old = process_with(&w, 10, first);
	old.born = old.time - 10 * SECOND;
	assert_int_equal(unwind_feed__publish(w.feed, &old), 0);
	assert_int_equal(await(&w, &old, 1), 1);
	young = (struct fed_process){.tgid = 11, .time = old.time, .maps = second};
	young.born = young.time - SECOND / 10;
	assert_int_equal(unwind_feed__publish(w.feed, &young), 0);
	assert_int_equal(published(&w, 11, 2), UNWIND_LATER);
	assert_false(unwind_feed__has_tables(w.feed, second));
	assert_int_equal(await(&w, &young, 2), 0);
	assert_int_equal(unwind_feed__missed(w.feed, &young, w.mappings[2].start, NULL), 0);
	unwind_feed__stats(w.feed, &stats);
	assert_int_equal(stats.put_off, 2);
	/* it has lived long enough, and is published again */
	young.time += SECOND;
	assert_int_equal(unwind_feed__missed(w.feed, &young, w.mappings[2].start, NULL), 1);
	assert_int_equal(unwind_feed__publish(w.feed, &young), 0);
	assert_int_equal(await(&w, &young, 2), 1);
	assert_true(is_there(&w, published(&w, 11, 2)));
	tear_down(&w);
}

/* The file with the most code; its table is in the cache. */
static unsigned int cache_one(struct scene *w, const char *directory)
{
	struct table_cache *cache = table_cache__open(directory, TABLE_CACHE_LIMIT, true);
	unsigned int largest = 1;
	struct unwind_table_image image;
	struct file_stamp stamp;
	struct elf_file *file;

	for (unsigned int i = 2; i <= FILES; i++)
		if (w->mappings[i].end - w->mappings[i].start >
		    w->mappings[largest].end - w->mappings[largest].start)
			largest = i;
	assert_non_null(cache);
	assert_int_equal(file_stamp__read(w->fds[largest], &stamp), 0);
	assert_int_equal(elf_file__open(w->fds[largest], &file), 0);
	assert_int_equal(unwind_table__build(file, SEGMENT_SIZE, &image), 0);
	table_cache__keep(cache, w->fds[largest], &stamp, &image);
	assert_true(table_cache__write(cache));
	unwind_table_image__fini(&image);
	elf_file__free(file);
	table_cache__free(cache);
	return largest;
}

static void delete_directory(const char *path)
{
	DIR *d = opendir(path);

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		if (e->d_name[0] != '.')
			assert_int_equal(unlinkat(dirfd(d), e->d_name, 0), 0);
	closedir(d);
	assert_int_equal(rmdir(path), 0);
}

/* What is in the cache is there for the youngest process, when nothing is built for it any more. */
static void cached_tables_are_published_even_without_credit(void **state)
{
	char directory[] = "/tmp/unwind-feed-XXXXXX";
	struct scene_maps first_space, both_space;
	struct mappings first, both;
	struct fed_process old, young;
	struct unwind_feed_stats stats;
	unsigned int cached, others[2];
	struct scene w;

	(void)state;
	assert_non_null(mkdtemp(directory));
	set_up(&w, 0);
	cached = cache_one(&w, directory);
	tear_down(&w);
	others[0] = cached == 1 ? 2 : 1;
	others[1] = 6 - cached - others[0];
	set_up_with(&w, 1, table_cache__open(directory, TABLE_CACHE_LIMIT, true));
	first = maps_of(&w, (char[]){'0' + others[0], 0}, &first_space);
	both = maps_of(&w, (char[]){'0' + cached, '0' + others[1], 0}, &both_space);
	unwind_feed__end(w.feed);
	old = process_with(&w, 10, first);
	old.born = old.time - 10 * SECOND;
	assert_int_equal(unwind_feed__publish(w.feed, &old), 0);
	assert_int_equal(await(&w, &old, others[0]), 1);
	young = (struct fed_process){.tgid = 11, .time = old.time, .maps = both};
	young.born = young.time - SECOND / 10;
	assert_int_equal(unwind_feed__publish(w.feed, &young), 0);
	assert_int_equal(await(&w, &young, cached), 1);
	assert_int_equal(await(&w, &young, others[1]), 0);
	assert_true(is_there(&w, published(&w, 11, cached)));
	assert_false(is_there(&w, published(&w, 11, others[1])));
	unwind_feed__stats(w.feed, &stats);
	assert_int_equal(stats.built, 1);
	assert_int_equal(stats.cached, 1);
	assert_int_equal(stats.put_off, 1);
	/* the cache is not read again */
	assert_int_equal(unwind_feed__missed(w.feed, &young, w.mappings[others[1]].start, NULL), 0);
	unwind_feed__stats(w.feed, &stats);
	assert_int_equal(stats.put_off, 2);
	young.time += SECOND;
	assert_int_equal(unwind_feed__missed(w.feed, &young, w.mappings[others[1]].start, NULL), 1);
	assert_int_equal(await(&w, &young, others[1]), 1);
	assert_true(is_there(&w, published(&w, 11, others[1])));
	tear_down(&w);
	delete_directory(directory);
}

static void take_all(struct scene *w)
{
	while (unwind_feed__is_building(w->feed)) {
		assert_int_equal(unwind_feed__take(w->feed), 0);
		usleep(1000);
	}
}

/* HotSpot's code is followed only if its memory says that it keeps frame pointers. */
static void frame_pointers_are_used_if_all_runtimes_keep_them(void **state)
{
	struct scene_maps maps_space, plain_space;
	struct mappings maps, plain;
	struct fed_process process;
	struct scene w;

	(void)state;
	set_up(&w, 0);
	w.jvm = true;
	maps = maps_of(&w, "14", &maps_space);
	plain = maps_of(&w, "24", &plain_space);
	process = process_with(&w, 10, maps);
	assert_int_equal(unwind_feed__publish(w.feed, &process), 0);
	assert_int_equal(published(&w, 10, MADE_CODE), UNWIND_JAVA);
	process.runtimes.keeps_frame_pointers = true;
	assert_int_equal(unwind_feed__publish(w.feed, &process), 0);
	assert_int_equal(published(&w, 10, MADE_CODE), UNWIND_NO_TABLE);
	unwind_feed__withdraw(w.feed, 10);
	process = process_with(&w, 11, plain);
	assert_int_equal(unwind_feed__publish(w.feed, &process), 0);
	assert_int_equal(published(&w, 11, MADE_CODE), UNWIND_BY_CODE);
	/* an engine that keeps frame pointers; then another one beside it */
	process.runtimes.some_keep = runtime_of_file("node")->keeps_frame_pointers;
	assert_int_equal(unwind_feed__publish(w.feed, &process), 0);
	assert_int_equal(published(&w, 11, MADE_CODE), UNWIND_NO_TABLE);
	process.runtimes.others_may_not = !runtime_of_file("libcoreclr.so")->keeps_frame_pointers;
	assert_int_equal(unwind_feed__publish(w.feed, &process), 0);
	assert_int_equal(published(&w, 11, MADE_CODE), UNWIND_BY_CODE);
	assert_int_equal(w.requested, 0);
	tear_down(&w);
}

/* PyPy's code is not read until a stack ended in it; other code never. */
static void pypy_code_is_unread_until_a_stack_ends_there(void **state)
{
	const struct stack_copy copy = {.general = {[14] = 14}};
	struct scene_maps maps_space, plain_space;
	struct mappings maps, plain;
	struct fed_process process;
	struct scene w;

	(void)state;
	set_up(&w, 0);
	w.pypy = true;
	maps = maps_of(&w, "14", &maps_space);
	plain = maps_of(&w, "24", &plain_space);
	process = process_with(&w, 10, maps);
	assert_int_equal(unwind_feed__publish(w.feed, &process), 0);
	assert_int_equal(published(&w, 10, MADE_CODE), UNWIND_LATER);
	assert_int_equal(w.requested, 0);
	assert_int_equal(unwind_feed__refresh(w.feed, &process), 0);
	assert_int_equal(unwind_feed__missed(w.feed, &process, 0x10100, &copy), 1);
	assert_int_equal(w.requested, 1);
	assert_int_equal(unwind_feed__publish(w.feed, &process), 0);
	assert_true(is_there(&w, published(&w, 10, MADE_CODE)));
	assert_int_equal(unwind_feed__missed(w.feed, &process, 0x10100, &copy), 0);
	unwind_feed__withdraw(w.feed, 10);
	assert_int_equal(unwind_feed__publish(w.feed, &process), 0);
	assert_int_equal(published(&w, 10, MADE_CODE), UNWIND_LATER);
	process.tgid = 11;
	process.maps = plain;
	process.runtimes = runtimes_of(&w, plain);
	assert_int_equal(unwind_feed__publish(w.feed, &process), 0);
	assert_int_equal(published(&w, 11, MADE_CODE), UNWIND_BY_CODE);
	assert_int_equal(unwind_feed__missed(w.feed, &process, 0x10100, &copy), 0);
	assert_int_equal(w.requested, 1);
	tear_down(&w);
}

/* Descriptors of requests for tables of JIT code: one while they wait, two in the pool. */
static size_t count_requests(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t count = 0;

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));) {
		char target[64] = "";

		if (readlinkat(dirfd(d), e->d_name, target, sizeof(target) - 1) > 0)
			count += !strncmp(target, "/memfd:pieces", 13);
	}
	closedir(d);
	return count;
}

/* What a jitdump says becomes a table elsewhere; what is said of a process that has ended meanwhile does not count. */
static void jitdumps_become_tables_unless_their_process_ended(void **state)
{
	static uint8_t section[] = "\x10\0\0\0\0\0\0\0\1\0\1\x78\x10\x0c\7\x08\x90\1\0\0"
				   "\x18\0\0\0\x18\0\0\0\0\1\1\0\0\0\0\0\x40\0\0\0\0\0\0\0\0\0\0\0";
	const struct unwind_piece pieces[] = {
		{0x10000,
		 0x10040,
		 {.data = (const uint8_t *)"\xff\xff", .size = 2, .is_eh_frame = true}},
		{0x10100,
		 0x10140,
		 {.data = section, .size = sizeof(section) - 1, .is_eh_frame = true}},
		{0x90000,
		 0x90040,
		 {.data = section, .size = sizeof(section) - 1, .is_eh_frame = true}},
	};
	struct scene_maps space;
	struct fed_process process;
	struct scene w;

	(void)state;
	set_up(&w, 0);
	process = process_with(&w, 10, maps_of(&w, "4", &space));
	assert_int_equal(unwind_feed__publish(w.feed, &process), 0);
	assert_int_equal(published(&w, 10, MADE_CODE), UNWIND_BY_CODE);
	/* nothing of it is in JIT memory, or is anything */
	assert_int_equal(unwind_feed__describe(w.feed, &process, pieces + 2, 1), 0);
	assert_int_equal(unwind_feed__describe(w.feed, &process, pieces, 1), 0);
	take_all(&w);
	assert_int_equal(w.described, 0);
	/* the first answer is outdated by the time it comes; of the others one waits */
	assert_int_equal(unwind_feed__describe(w.feed, &process, pieces, 3), 0);
	assert_int_equal(unwind_feed__take(w.feed), 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(unwind_feed__describe(w.feed, &process, pieces, 3), 0);
	assert_in_range(count_requests(), 1, 3);
	take_all(&w);
	assert_int_equal(count_requests(), 0);
	assert_int_equal(w.described, 10);
	assert_int_equal(unwind_feed__publish(w.feed, &process), 0);
	assert_true(is_there(&w, published(&w, 10, MADE_CODE)));
	assert_int_equal(unwind_feed__describe(w.feed, &process, pieces, 3), 0);
	assert_int_equal(count_requests(), 1);
	unwind_feed__withdraw(w.feed, 10);
	assert_int_equal(count_requests(), 0);
	assert_false(unwind_feed__is_building(w.feed));
	w.described = 0;
	take_all(&w);
	assert_int_equal(w.described, 0);
	assert_int_equal(unwind_feed__publish(w.feed, &process), 0);
	assert_int_equal(published(&w, 10, MADE_CODE), UNWIND_BY_CODE);
	tear_down(&w);
}

/* Tables of JIT code take from the user's credit, and wait without it. */
static void tables_of_jit_code_use_up_the_credit(void **state)
{
	const struct unwind_piece piece = {
		0x10000,
		0x10040,
		{.data = (const uint8_t *)"\xff\xff", .size = 2, .is_eh_frame = true}};
	struct unwind_feed_stats stats;
	struct scene_maps space;
	struct fed_process process;
	struct scene w;

	(void)state;
	set_up(&w, 1);
	process = process_with(&w, 10, maps_of(&w, "4", &space));
	assert_true(unwind_feed__may_describe(w.feed, 10));
	assert_int_equal(unwind_feed__describe(w.feed, &process, &piece, 1), 0);
	take_all(&w);
	assert_false(unwind_feed__may_describe(w.feed, 10));
	unwind_feed__stats(w.feed, &stats);
	assert_int_equal(stats.put_off, 1);
	tear_down(&w);
}

/* Without descriptors for a while a file is not one that describes no code. */
static void a_build_without_descriptors_leaves_no_table(void **state)
{
	struct rlimit limit, few;
	struct scene_maps space;
	struct fed_process process;
	struct scene w;
	uint32_t number;

	(void)state;
	set_up(&w, 0);
	process = process_with(&w, 10, maps_of(&w, "1", &space));
	assert_int_equal(unwind_feed__publish(w.feed, &process), 0);
	number = published(&w, 10, 1);
	assert_true(number < UNWIND_TABLES);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few = (struct rlimit){.rlim_cur = 3, .rlim_max = limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(unwind_feed__take(w.feed), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_false(unwind_feed__is_building(w.feed));
	assert_int_equal(unwind_feed__publish(w.feed, &process), 0);
	assert_int_equal(published(&w, 10, 1), number); /* not UNWIND_BY_CODE */
	assert_false(is_there(&w, number));
	tear_down(&w);
}

/* A file that comes later: until then stacks end there, and the next one that misses it asks for the table. */
static void late_files_get_tables_at_the_next_miss(void **state)
{
	struct scene_maps maps_space;
	struct mappings maps;
	struct fed_process process;
	struct scene w;

	(void)state;
	set_up(&w, 0);
	w.late = true;
	maps = maps_of(&w, "1", &maps_space);
	process = process_with(&w, 10, maps);
	unwind_feed__end(w.feed);
	assert_int_equal(unwind_feed__publish(w.feed, &process), 0);
	assert_int_equal(w.requests, 1);
	assert_int_equal(published(&w, 10, 1), UNWIND_LATER);
	assert_false(unwind_feed__has_tables(w.feed, maps));
	assert_false(unwind_feed__forget(w.feed, w.pending));
	assert_int_equal(await(&w, &process, 1), 0);
	assert_int_equal(unwind_feed__missed(w.feed, &process, w.mappings[1].start, NULL), 0);
	w.late = false;
	assert_int_equal(unwind_feed__answer_file(w.feed, w.pending, w.fds[1], 0), 0);
	assert_int_equal(unwind_feed__missed(w.feed, &process, w.mappings[1].start, NULL), 1);
	assert_int_equal(unwind_feed__publish(w.feed, &process), 0);
	assert_int_equal(await(&w, &process, 1), 1);
	assert_true(is_there(&w, published(&w, 10, 1)));
	assert_int_equal(w.requests, 1);
	/* it is mapped no more, and its number is another file's */
	assert_true(unwind_feed__forget(w.feed, w.pending));
	w.mappings[2].image = w.pending;
	process.maps = maps_of(&w, "2", &maps_space);
	process.tgid = 11;
	w.fds[0] = w.fds[1], w.fds[1] = w.fds[2];
	assert_int_equal(unwind_feed__publish(w.feed, &process), 0);
	assert_int_equal(w.requests, 2);
	assert_int_equal(await(&w, &process, 2), 1);
	w.fds[1] = w.fds[0];
	tear_down(&w);
}

/* It is not to be had at all. */
static void files_that_cannot_be_opened_are_unwound_by_code(void **state)
{
	struct scene_maps maps_space;
	struct fed_process process;
	struct scene w;

	(void)state;
	set_up(&w, 0);
	w.late = true;
	process = process_with(&w, 10, maps_of(&w, "1", &maps_space));
	assert_int_equal(unwind_feed__publish(w.feed, &process), 0);
	assert_int_equal(unwind_feed__answer_file(w.feed, w.pending, -1, 0), 0);
	assert_int_equal(unwind_feed__publish(w.feed, &process), 0);
	assert_int_equal(published(&w, 10, 1), UNWIND_BY_CODE);
	assert_true(unwind_feed__forget(w.feed, w.pending));
	tear_down(&w);
}

/* Of more files than are known at a time the one that was not used for longest is read again. */
static void the_least_recently_used_file_is_read_again(void **state)
{
	struct unwind_feed_stats stats;
	struct scene_maps one_space, two_space;
	struct mappings one, two;
	struct fed_process process;
	struct scene w;

	(void)state;
	set_up_files(&w, 1);
	unwind_feed__end(w.feed);
	one = maps_of(&w, "1", &one_space);
	two = maps_of(&w, "2", &two_space);
	for (unsigned int round = 1; round <= 3; round++) {
		process = process_with(&w, 10, one);
		assert_int_equal(unwind_feed__publish(w.feed, &process), 0);
		assert_int_equal(await(&w, &process, 1), 1);
		assert_true(is_there(&w, published(&w, 10, 1)));
		process = process_with(&w, 11, two);
		assert_int_equal(unwind_feed__publish(w.feed, &process), 0);
		assert_int_equal(await(&w, &process, 2), 1);
		assert_true(is_there(&w, published(&w, 11, 2)));
		assert_int_equal(w.requests, 2 * round);
		unwind_feed__stats(w.feed, &stats);
		assert_int_equal(stats.forgotten, 2 * round - 1);
	}
	tear_down(&w);
}

/* More mappings than are published: the stacks of such a process are copied, and walked all the same. */
static void a_process_with_too_many_places_is_not_published(void **state)
{
	enum { MANY = 20000 };
	static struct mapping data[MANY];
	struct mapping_run run = {data, MANY, 0x100000 + 0x2000ull * MANY};
	struct mappings maps = {.runs = &run, .run_count = 1, .count = MANY};
	struct fed_process process;
	struct unwind_feed_stats stats;
	struct scene w;

	(void)state;
	set_up(&w, 0);
	for (uint64_t i = 0; i < MANY; i++)
		data[i] = (struct mapping){.start = 0x100000 + 0x2000 * i,
					   .end = 0x101000 + 0x2000 * i,
					   .image = {MADE_CODE}};
	process = process_with(&w, 10, maps);
	assert_int_equal(unwind_feed__publish(w.feed, &process), -E2BIG);
	unwind_feed__stats(w.feed, &stats);
	assert_int_equal(stats.store.places.too_many, 1);
	assert_int_equal(stats.store.places.processes, 0);
	/* neighbours of one kind are one place */
	for (uint64_t i = 0; i < MANY; i++)
		data[i].end = data[i].start + 0x2000;
	process.maps.count = run.count = 10000;
	assert_int_equal(unwind_feed__publish(w.feed, &process), 0);
	unwind_feed__stats(w.feed, &stats);
	assert_int_equal(stats.store.places.processes, 1);
	place_store__withdraw(table_store__places(w.store), 10);
	unwind_feed__stats(w.feed, &stats);
	assert_int_equal(stats.store.places.processes, 0);
	tear_down(&w);
}

/* Answers that come later: until then the code brings copies. */
static void late_answers_are_taken_once_and_by_ticket(void **state)
{
	const struct stack_copy copy = {.general = {[14] = 14}};
	struct made_frame frame = {.start = 0x10000, .end = 0x20000, .size = 192, .ra_offset = -8};
	struct made_answer answer = {.frames = &frame, .count = 1};
	struct scene_maps maps_space;
	struct fed_process process;
	struct scene w;

	(void)state;
	set_up(&w, 0);
	w.pypy = true;
	process = process_with(&w, 10, maps_of(&w, "14", &maps_space));
	assert_int_equal(unwind_feed__publish(w.feed, &process), 0);
	w.late = true;
	assert_int_equal(unwind_feed__missed(w.feed, &process, 0x10100, &copy), 0);
	assert_int_equal(w.requested, 1);
	/* no further request so soon */
	assert_int_equal(unwind_feed__missed(w.feed, &process, 0x10100, &copy), 0);
	assert_int_equal(w.requested, 1);
	answer.ticket = w.ticket + 1;
	answer.runtime = &w.runtime;
	assert_int_equal(unwind_feed__answer_frames(w.feed, &answer), 0);
	answer.ticket = w.ticket;
	assert_int_equal(unwind_feed__answer_frames(w.feed, &answer), 1);
	assert_int_equal(unwind_feed__answer_frames(w.feed, &answer), 0);
	assert_int_equal(unwind_feed__publish(w.feed, &process), 0);
	assert_true(is_there(&w, published(&w, 10, MADE_CODE)));
	tear_down(&w);
}

/* Nothing is built until it may be again, whatever the credit is and however old the process; then what is missed is. */
static void nothing_is_built_while_only_cached_tables_are_used(void **state)
{
	struct scene_maps space;
	struct mappings maps;
	struct fed_process process;
	struct unwind_feed_stats stats;
	struct scene w;

	(void)state;
	set_up(&w, 0);
	maps = maps_of(&w, "1", &space);
	unwind_feed__end(w.feed);
	process = process_with(&w, 10, maps);
	process.born = process.time - 100 * SECOND;
	unwind_feed__set_cached_only(w.feed, true);
	assert_int_equal(unwind_feed__publish(w.feed, &process), 0);
	assert_int_equal(published(&w, 10, 1), UNWIND_LATER);
	assert_int_equal(await(&w, &process, 1), 0);
	assert_int_equal(unwind_feed__missed(w.feed, &process, w.mappings[1].start, NULL), 0);
	unwind_feed__stats(w.feed, &stats);
	assert_int_equal(stats.put_off, 2);
	assert_int_equal(stats.built, 0);
	unwind_feed__set_cached_only(w.feed, false);
	assert_int_equal(unwind_feed__missed(w.feed, &process, w.mappings[1].start, NULL), 1);
	assert_int_equal(unwind_feed__publish(w.feed, &process), 0);
	assert_int_equal(await(&w, &process, 1), 1);
	assert_true(is_there(&w, published(&w, 10, 1)));
	tear_down(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stack_waits_for_tables_that_are_being_built),
		cmocka_unit_test(an_evicted_table_comes_back_when_it_is_missed),
		cmocka_unit_test(without_credit_tables_are_built_only_for_older_processes),
		cmocka_unit_test(cached_tables_are_published_even_without_credit),
		cmocka_unit_test(frame_pointers_are_used_if_all_runtimes_keep_them),
		cmocka_unit_test(pypy_code_is_unread_until_a_stack_ends_there),
		cmocka_unit_test(late_files_get_tables_at_the_next_miss),
		cmocka_unit_test(files_that_cannot_be_opened_are_unwound_by_code),
		cmocka_unit_test(late_answers_are_taken_once_and_by_ticket),
		cmocka_unit_test(the_least_recently_used_file_is_read_again),
		cmocka_unit_test(a_process_with_too_many_places_is_not_published),
		cmocka_unit_test(jitdumps_become_tables_unless_their_process_ended),
		cmocka_unit_test(nothing_is_built_while_only_cached_tables_are_used),
		cmocka_unit_test(tables_of_jit_code_use_up_the_credit),
		cmocka_unit_test(a_build_without_descriptors_leaves_no_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
