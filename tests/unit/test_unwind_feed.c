/* SPDX-License-Identifier: BSD-2-Clause */
/* Which tables are built when, for processes that have this program's own files mapped. */
#include <dirent.h>
#include <sys/resource.h>

#include "unit.h"
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

static struct scene {
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
} w;

static int request_file(void *context, struct image_id image)
{
	int fd = image.v <= FILES ? w.fds[image.v] : -1;

	w.requests++;
	w.pending = image;
	return w.late ? 0 : unwind_feed__answer_file(w.feed, image, fd, 0);
}

static struct fed_image describe(void *context, struct image_id image)
{
	const char *name = image.v != 1 ? "" : w.pypy ? "pypy3" : w.jvm ? "libjvm.so" : "";

	return (struct fed_image){.is_made = image.v == MADE_CODE,
				  .runtime = runtime_of_file(name)};
}

static int request_frames(void *context, const struct made_request *request)
{
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
	w.requested++;
	frame.start = request->areas[0].start;
	frame.end = request->areas[0].end;
	if (!w.late)
		return unwind_feed__answer_frames(w.feed, &answer) < 0 ? -ENOMEM : 0;
	w.ticket = request->ticket;
	w.runtime = *request->runtime;
	return 0;
}

static int note_described(void *context, uint32_t tgid)
{
	w.described = tgid;
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

static void replace_file(uint32_t image, const struct mapping *mapping, const char *path)
{
	if (w.fds[image] > 0)
		close(w.fds[image]);
	w.mappings[image] = *mapping;
	w.mappings[image].image.v = image;
	w.fds[image] = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(w.fds[image] >= 0);
}

/* The executable mappings of two small files of this process, and of one with a table that is worth keeping. */
static void find_files(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4096], path[4096];
	struct mapping mapping;
	uint32_t found = 0;

	assert_non_null(maps);
	memset(w.fds, 0, sizeof(w.fds));
	memset(w.mappings, 0, sizeof(w.mappings));
	while (fgets(line, sizeof(line), maps)) {
		if (!is_file_mapping(line, &mapping, path))
			continue;
		if (size_of(&mapping) < 1 << 20) {
			if (found < FILES - 1)
				replace_file(++found, &mapping, path);
		} else if (!w.fds[FILES] || size_of(&mapping) < size_of(&w.mappings[FILES])) {
			replace_file(FILES, &mapping, path);
		}
	}
	assert_int_equal(found, FILES - 1);
	assert_true(w.fds[FILES] > 0);
	fclose(maps);
}

static void release(void)
{
	unwind_feed__free(w.feed);
	helper_pool__free(w.builders);
	table_store__free(w.store);
	for (int i = 1; i <= FILES; i++)
		close(w.fds[i]);
	table_memory__fini(&w.memory);
}

static void begin_with(struct unwind_feed_options options)
{
	w = (struct scene){};
	table_memory__init(&w.memory, SEGMENT_SIZE, 1);
	find_files();
	options.table_limit = SEGMENT_SIZE;
	options.request_file = request_file;
	options.describe = describe;
	options.request_frames = request_frames;
	options.described = note_described;
	options.store = w.store =
		table_store__new(&(struct table_store_options){.memory = &w.memory.shared});
	assert_int_equal(helper_pool__new(&builder_options, &w.builders), 0);
	options.builders = w.builders;
	assert_int_equal(unwind_feed__new(&options, &w.feed), 0);
}

/* Anew, with options. */
static void given(struct unwind_feed_options options)
{
	release();
	begin_with(options);
}

static void set_up(void)
{
	begin_with((struct unwind_feed_options){});
}

static void tear_down(void)
{
	release();
}

static int compare_mappings(const void *a, const void *b)
{
	const struct mapping *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* With the images that are named by their digits; what it refers to is there for some later calls. */
static struct mappings maps_of(const char *images)
{
	static struct {
		struct mapping data[FILES + 1];
		struct mapping_run run;
	} rooms[4], *maps;
	static unsigned int next;
	size_t count = 0;

	for (maps = &rooms[next++ % 4]; *images; images++) {
		unsigned int image = *images - '0';
		struct mapping made = {.start = 0x10000, .end = 0x20000, .image = {MADE_CODE}};

		maps->data[count++] = image == MADE_CODE ? made : w.mappings[image];
	}
	qsort(maps->data, count, sizeof(maps->data[0]), compare_mappings);
	maps->run = (struct mapping_run){maps->data, count, maps->data[count - 1].end};
	return (struct mappings){.runs = &maps->run, .run_count = 1, .count = count};
}

static struct fed_runtimes runtimes_of(struct mappings maps)
{
	struct fed_runtimes runtimes = {};
	struct mapping_cursor at = {};

	for (const struct mapping *m; (m = mappings__next(maps, &at));)
		unwind_feed__note_runtime(w.feed, m, &runtimes);
	return runtimes;
}

static struct fed_process process_with(uint32_t tgid, struct mappings maps)
{
	return (struct fed_process){
		.tgid = tgid, .time = monotonic_ns(), .maps = maps, .runtimes = runtimes_of(maps)};
}

/* What is published for the place of a dso: a table's number, or what there is instead. */
static uint32_t published(uint32_t tgid, unsigned int dso)
{
	uint64_t start = dso == MADE_CODE ? 0x10000 : w.mappings[dso].start;

	for (size_t i = 0; i < UNWIND_PROCESSES; i++) {
		uint64_t word = w.memory.shared.processes[i];
		const uint64_t *starts;
		const struct unwind_place *places;

		if (!word || unwind_word_tgid(word) != tgid)
			continue;
		starts = (const void *)(w.memory.shared.places + unwind_word_offset(word) + 8);
		places = (const void *)(starts + unwind_word_count(word));
		for (uint32_t p = 0; p < unwind_word_count(word); p++)
			if (starts[p] == start)
				return places[p].table;
	}
	fail_msg("nothing is published for dso %u of process %u", dso, tgid);
	return 0;
}

static bool is_there(uint32_t number)
{
	return number < UNWIND_TABLES && w.memory.shared.tables[number].number_size;
}

/* That of the file of this number, at the process's place for it. */
static bool is_built(uint32_t tgid, unsigned int dso)
{
	return is_there(published(tgid, dso));
}

static void publish(const struct fed_process *process)
{
	assert_int_equal(unwind_feed__publish(w.feed, process), 0);
}

static struct fed_process given_process(uint32_t tgid, const char *images)
{
	return process_with(tgid, maps_of(images));
}

static struct fed_process given_published(uint32_t tgid, const char *images)
{
	struct fed_process process = given_process(tgid, images);

	publish(&process);
	return process;
}

static struct unwind_feed_stats stats(void)
{
	struct unwind_feed_stats stats;

	unwind_feed__stats(w.feed, &stats);
	return stats;
}

/* The feed's answer to a stack that ended in the file of this dso. */
static int await(const struct fed_process *process, unsigned int dso)
{
	return unwind_feed__await(w.feed, process, w.mappings[dso].start);
}

/* … to one that found no table there. */
static int miss(const struct fed_process *process, unsigned int dso)
{
	return unwind_feed__missed(w.feed, process, w.mappings[dso].start, NULL);
}

static int miss_made_code(const struct fed_process *process)
{
	static const struct stack_copy copy = {.general = {[14] = 14}};

	return unwind_feed__missed(w.feed, process, 0x10100, &copy);
}

static void take_all(void)
{
	while (unwind_feed__is_building(w.feed)) {
		assert_int_equal(unwind_feed__take(w.feed), 0);
		usleep(1000);
	}
}

/* Places first, tables later; a stack waits for them a while, and at the end for as long as it takes. */
TEST(a_stack_waits_for_tables_that_are_being_built)
{
	struct fed_process process = given_published(10, "12");
	uint32_t number = published(10, 1);

	assert_true(number < UNWIND_TABLES);
	/* they are not taken yet, built or not */
	assert_false(is_there(number));
	assert_true(unwind_feed__is_building(w.feed));
	assert_int_equal(await(&process, 1), -EAGAIN);
	assert_int_equal(await(&process, 2), -EAGAIN);
	assert_int_equal(unwind_feed__await(w.feed, &process, 0x1000), 0);
	process.time -= SECOND;
	assert_int_equal(await(&process, 1), 0);
	unwind_feed__end(w.feed);
	assert_int_equal(await(&process, 1), 1);
	assert_true(is_there(number));
	assert_int_equal(await(&process, 1), 0);
	assert_int_equal(await(&process, 2), 1);
	assert_true(is_built(10, 2));
	assert_false(unwind_feed__is_building(w.feed));
	assert_true(unwind_feed__has_tables(w.feed, process.maps));
	/* the next process has them at once */
	process.tgid = 11;
	publish(&process);
	assert_int_equal(published(11, 1), number);
}

TEST(an_evicted_table_comes_back_when_it_is_missed)
{
	struct fed_process process = given_process(10, "1");
	uint32_t number;

	unwind_feed__end(w.feed);
	publish(&process);
	assert_int_equal(await(&process, 1), 1);
	number = published(10, 1);
	assert_int_equal(miss(&process, 1), 0);
	assert_true(is_there(number));
	w.memory.shared.tables[number].number_size = 0;
	assert_int_equal(unwind_feed__missed(w.feed, &process, 0x1000, NULL), 0);
	assert_int_equal(miss(&process, 1), 0);
	assert_int_equal(miss(&process, 1), 0); /* once is enough */
	assert_int_equal(await(&process, 1), 1);
	assert_true(is_there(number));
	assert_int_equal(stats().put_off, 0);
}

TEST(without_credit_tables_are_built_only_for_older_processes)
{
	struct fed_process old, young;

	given((struct unwind_feed_options){.credit = 1});
	unwind_feed__end(w.feed);
	old = given_process(10, "1");
	old.born = old.time - 10 * SECOND;
	publish(&old);
	assert_int_equal(await(&old, 1), 1);
	young = (struct fed_process){.tgid = 11, .time = old.time, .maps = maps_of("2")};
	young.born = young.time - SECOND / 10;
	publish(&young);
	assert_int_equal(published(11, 2), UNWIND_LATER);
	assert_false(unwind_feed__has_tables(w.feed, young.maps));
	assert_int_equal(await(&young, 2), 0);
	assert_int_equal(miss(&young, 2), 0);
	assert_int_equal(stats().put_off, 2);
	/* it has lived long enough, and is published again */
	young.time += SECOND;
	assert_int_equal(miss(&young, 2), 1);
	publish(&young);
	assert_int_equal(await(&young, 2), 1);
	assert_true(is_built(11, 2));
}

/* The file with the most code; its table is in the cache. */
static unsigned int cache_one(const char *directory)
{
	struct table_cache *cache = table_cache__open(directory, TABLE_CACHE_LIMIT, true);
	unsigned int largest = 1;
	struct unwind_table_image image;
	struct file_stamp stamp;
	struct elf_file *file;

	for (unsigned int i = 2; i <= FILES; i++)
		if (w.mappings[i].end - w.mappings[i].start >
		    w.mappings[largest].end - w.mappings[largest].start)
			largest = i;
	assert_non_null(cache);
	assert_int_equal(file_stamp__read(w.fds[largest], &stamp), 0);
	assert_int_equal(elf_file__open(w.fds[largest], &file), 0);
	assert_int_equal(unwind_table__build(file, SEGMENT_SIZE, &image), 0);
	table_cache__keep(cache, w.fds[largest], &stamp, &image);
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
TEST(cached_tables_are_published_even_without_credit)
{
	char directory[] = "/tmp/unwind-feed-XXXXXX";
	struct fed_process old, young;
	unsigned int cached, others[2];

	assert_non_null(mkdtemp(directory));
	cached = cache_one(directory);
	others[0] = cached == 1 ? 2 : 1;
	others[1] = 6 - cached - others[0];
	given((struct unwind_feed_options){
		.credit = 1, .cache = table_cache__open(directory, TABLE_CACHE_LIMIT, true)});
	unwind_feed__end(w.feed);
	old = given_process(10, (char[]){'0' + others[0], 0});
	old.born = old.time - 10 * SECOND;
	publish(&old);
	assert_int_equal(await(&old, others[0]), 1);
	young = (struct fed_process){.tgid = 11,
				     .time = old.time,
				     .maps = maps_of((char[]){'0' + cached, '0' + others[1], 0})};
	young.born = young.time - SECOND / 10;
	publish(&young);
	assert_int_equal(await(&young, cached), 1);
	assert_int_equal(await(&young, others[1]), 0);
	assert_true(is_built(11, cached));
	assert_false(is_built(11, others[1]));
	assert_int_equal(stats().built, 1);
	assert_int_equal(stats().cached, 1);
	assert_int_equal(stats().put_off, 1);
	/* the cache is not read again */
	assert_int_equal(miss(&young, others[1]), 0);
	assert_int_equal(stats().put_off, 2);
	young.time += SECOND;
	assert_int_equal(miss(&young, others[1]), 1);
	assert_int_equal(await(&young, others[1]), 1);
	assert_true(is_built(11, others[1]));
	delete_directory(directory);
}

/* HotSpot's code is followed only if its memory says that it keeps frame pointers. */
TEST(frame_pointers_are_used_if_all_runtimes_keep_them)
{
	struct fed_process process;

	w.jvm = true;
	process = given_published(10, "14");
	assert_int_equal(published(10, MADE_CODE), UNWIND_JAVA);
	process.runtimes.keeps_frame_pointers = true;
	publish(&process);
	assert_int_equal(published(10, MADE_CODE), UNWIND_NO_TABLE);
	unwind_feed__withdraw(w.feed, 10);
	process = given_published(11, "24");
	assert_int_equal(published(11, MADE_CODE), UNWIND_BY_CODE);
	/* an engine that keeps frame pointers; then another one beside it */
	process.runtimes.some_keep = runtime_of_file("node")->keeps_frame_pointers;
	publish(&process);
	assert_int_equal(published(11, MADE_CODE), UNWIND_NO_TABLE);
	process.runtimes.others_may_not = !runtime_of_file("libcoreclr.so")->keeps_frame_pointers;
	publish(&process);
	assert_int_equal(published(11, MADE_CODE), UNWIND_BY_CODE);
	assert_int_equal(w.requested, 0);
}

TEST(pypy_code_is_unread_until_a_stack_ends_there)
{
	struct fed_process process;

	w.pypy = true;
	process = given_published(10, "14");
	assert_int_equal(published(10, MADE_CODE), UNWIND_LATER);
	assert_int_equal(w.requested, 0);
	assert_int_equal(unwind_feed__refresh(w.feed, &process), 0);
	assert_int_equal(miss_made_code(&process), 1);
	assert_int_equal(w.requested, 1);
	publish(&process);
	assert_true(is_built(10, MADE_CODE));
	assert_int_equal(miss_made_code(&process), 0);
	unwind_feed__withdraw(w.feed, 10);
	publish(&process);
	assert_int_equal(published(10, MADE_CODE), UNWIND_LATER);
	/* other code is never read */
	process = given_published(11, "24");
	assert_int_equal(published(11, MADE_CODE), UNWIND_BY_CODE);
	assert_int_equal(miss_made_code(&process), 0);
	assert_int_equal(w.requested, 1);
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
TEST(jitdumps_become_tables_unless_their_process_ended)
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
	struct fed_process process = given_published(10, "4");

	assert_int_equal(published(10, MADE_CODE), UNWIND_BY_CODE);
	/* nothing of it is in JIT memory, or is anything */
	assert_int_equal(unwind_feed__describe(w.feed, &process, pieces + 2, 1), 0);
	assert_int_equal(unwind_feed__describe(w.feed, &process, pieces, 1), 0);
	take_all();
	assert_int_equal(w.described, 0);
	/* the first answer is outdated by the time it comes; of the others one waits */
	assert_int_equal(unwind_feed__describe(w.feed, &process, pieces, 3), 0);
	assert_int_equal(unwind_feed__take(w.feed), 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(unwind_feed__describe(w.feed, &process, pieces, 3), 0);
	assert_in_range(count_requests(), 1, 3);
	take_all();
	assert_int_equal(count_requests(), 0);
	assert_int_equal(w.described, 10);
	publish(&process);
	assert_true(is_built(10, MADE_CODE));
	assert_int_equal(unwind_feed__describe(w.feed, &process, pieces, 3), 0);
	assert_int_equal(count_requests(), 1);
	unwind_feed__withdraw(w.feed, 10);
	assert_int_equal(count_requests(), 0);
	assert_false(unwind_feed__is_building(w.feed));
	w.described = 0;
	take_all();
	assert_int_equal(w.described, 0);
	publish(&process);
	assert_int_equal(published(10, MADE_CODE), UNWIND_BY_CODE);
}

TEST(tables_of_jit_code_use_up_the_credit)
{
	const struct unwind_piece piece = {
		0x10000,
		0x10040,
		{.data = (const uint8_t *)"\xff\xff", .size = 2, .is_eh_frame = true}};
	struct fed_process process;

	given((struct unwind_feed_options){.credit = 1});
	process = given_process(10, "4");
	assert_true(unwind_feed__may_describe(w.feed, 10));
	assert_int_equal(unwind_feed__describe(w.feed, &process, &piece, 1), 0);
	take_all();
	assert_false(unwind_feed__may_describe(w.feed, 10));
	assert_int_equal(stats().put_off, 1);
}

/* Without descriptors for a while a file is not one that describes no code. */
TEST(a_build_without_descriptors_leaves_no_table)
{
	struct fed_process process = given_published(10, "1");
	uint32_t number = published(10, 1);
	struct rlimit limit, few;

	assert_true(number < UNWIND_TABLES);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few = (struct rlimit){.rlim_cur = 3, .rlim_max = limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(unwind_feed__take(w.feed), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_false(unwind_feed__is_building(w.feed));
	publish(&process);
	assert_int_equal(published(10, 1), number); /* not UNWIND_BY_CODE */
	assert_false(is_there(number));
}

TEST(late_files_get_tables_at_the_next_miss)
{
	struct fed_process process = given_process(10, "1");

	w.late = true;
	unwind_feed__end(w.feed);
	publish(&process);
	assert_int_equal(w.requests, 1);
	assert_int_equal(published(10, 1), UNWIND_LATER);
	assert_false(unwind_feed__has_tables(w.feed, process.maps));
	assert_false(unwind_feed__forget(w.feed, w.pending));
	assert_int_equal(await(&process, 1), 0);
	assert_int_equal(miss(&process, 1), 0);
	w.late = false;
	assert_int_equal(unwind_feed__answer_file(w.feed, w.pending, w.fds[1], 0), 0);
	assert_int_equal(miss(&process, 1), 1);
	publish(&process);
	assert_int_equal(await(&process, 1), 1);
	assert_true(is_built(10, 1));
	assert_int_equal(w.requests, 1);
	/* it is mapped no more, and its number is another file's */
	assert_true(unwind_feed__forget(w.feed, w.pending));
	w.mappings[2].image = w.pending;
	process.maps = maps_of("2");
	process.tgid = 11;
	w.fds[0] = w.fds[1], w.fds[1] = w.fds[2];
	publish(&process);
	assert_int_equal(w.requests, 2);
	assert_int_equal(await(&process, 2), 1);
	w.fds[1] = w.fds[0];
}

TEST(files_that_cannot_be_opened_are_unwound_by_code)
{
	struct fed_process process;

	w.late = true;
	process = given_published(10, "1");
	assert_int_equal(unwind_feed__answer_file(w.feed, w.pending, -1, 0), 0);
	publish(&process);
	assert_int_equal(published(10, 1), UNWIND_BY_CODE);
	assert_true(unwind_feed__forget(w.feed, w.pending));
}

/* Of more files than are known at a time. */
TEST(the_least_recently_used_file_is_read_again)
{
	given((struct unwind_feed_options){.files_max = 1});
	unwind_feed__end(w.feed);
	for (unsigned int i = 0; i < 6; i++) {
		const unsigned int file = 1 + i % 2, tgid = 9 + file;
		struct fed_process process = given_published(tgid, file == 1 ? "1" : "2");

		assert_int_equal(await(&process, file), 1);
		assert_true(is_built(tgid, file));
		assert_int_equal(w.requests, i + 1);
		assert_int_equal(stats().forgotten, i);
	}
}

/* The stacks of such a process are copied, and walked all the same. */
TEST(a_process_with_too_many_places_is_not_published)
{
	enum { MANY = 20000 };
	static struct mapping data[MANY];
	struct mapping_run run = {data, MANY, 0x100000 + 0x2000ull * MANY};
	struct mappings maps = {.runs = &run, .run_count = 1, .count = MANY};
	struct fed_process process;

	for (uint64_t i = 0; i < MANY; i++)
		data[i] = (struct mapping){.start = 0x100000 + 0x2000 * i,
					   .end = 0x101000 + 0x2000 * i,
					   .image = {MADE_CODE}};
	process = process_with(10, maps);
	assert_int_equal(unwind_feed__publish(w.feed, &process), -E2BIG);
	assert_int_equal(stats().store.places.too_many, 1);
	assert_int_equal(stats().store.places.processes, 0);
	/* neighbours of one kind are one place */
	for (uint64_t i = 0; i < MANY; i++)
		data[i].end = data[i].start + 0x2000;
	process.maps.count = run.count = 10000;
	publish(&process);
	assert_int_equal(stats().store.places.processes, 1);
	place_store__withdraw(table_store__places(w.store), 10);
	assert_int_equal(stats().store.places.processes, 0);
}

/* Until they come the code brings copies. */
TEST(late_answers_are_taken_once_and_by_ticket)
{
	struct made_frame frame = {.start = 0x10000, .end = 0x20000, .size = 192, .ra_offset = -8};
	struct made_answer answer = {.frames = &frame, .count = 1};
	struct fed_process process;

	w.pypy = true;
	process = given_published(10, "14");
	w.late = true;
	for (int i = 0; i < 2; i++) { /* no further request so soon */
		assert_int_equal(miss_made_code(&process), 0);
		assert_int_equal(w.requested, 1);
	}
	answer.ticket = w.ticket + 1;
	answer.runtime = &w.runtime;
	assert_int_equal(unwind_feed__answer_frames(w.feed, &answer), 0);
	answer.ticket = w.ticket;
	assert_int_equal(unwind_feed__answer_frames(w.feed, &answer), 1);
	assert_int_equal(unwind_feed__answer_frames(w.feed, &answer), 0);
	publish(&process);
	assert_true(is_built(10, MADE_CODE));
}

/* Whatever the credit is and however old the process; later what is missed is built. */
TEST(nothing_is_built_while_only_cached_tables_are_used)
{
	struct fed_process process = given_process(10, "1");

	unwind_feed__end(w.feed);
	process.born = process.time - 100 * SECOND;
	unwind_feed__set_cached_only(w.feed, true);
	publish(&process);
	assert_int_equal(published(10, 1), UNWIND_LATER);
	assert_int_equal(await(&process, 1), 0);
	assert_int_equal(miss(&process, 1), 0);
	assert_int_equal(stats().put_off, 2);
	assert_int_equal(stats().built, 0);
	unwind_feed__set_cached_only(w.feed, false);
	assert_int_equal(miss(&process, 1), 1);
	publish(&process);
	assert_int_equal(await(&process, 1), 1);
	assert_true(is_built(10, 1));
}

EACH_TEST_WITH(set_up, tear_down);
