/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers that hold for more than one address: as far as the symbol tables of real files say, and what memory makes of them. */
#include "unit.h"
#include "base/cleanup.h"
#include "symbolize/module.h"
#include "symbolize/symbol_cache.h"

#define STEP	  997 /* bytes between two addresses that are requested */
#define ADDRESSES 3000
#define PROBES	  3 /* addresses in between, for each */

static struct symbol_cache *memory(size_t bytes)
{
	struct symbol_cache *c = symbol_cache__new();

	assert_non_null(c);
	symbol_cache__keep(c, bytes);
	return c;
}

/* One answer in a line. */
struct reported {
	char text[400];
	uint64_t elf_address, same_until;
};

static int take(void *context, size_t index, const struct symbol_result *result)
{
	struct reported *reported = (struct reported *)context + index;
	const struct symbol_frame *frame = result->frames;

	reported->elf_address = result->elf_address;
	reported->same_until = result->same_until;
	assert_true(result->frame_count <= 1);
	if (!result->frame_count)
		snprintf(reported->text, sizeof(reported->text), "%llx: nothing",
			 (unsigned long long)result->elf_address);
	else
		snprintf(reported->text, sizeof(reported->text), "%llx: %s %llx %llx",
			 (unsigned long long)result->elf_address, frame->function,
			 (unsigned long long)frame->function_address,
			 (unsigned long long)frame->function_size);
	return 0;
}

static void resolve(int fd, const uint64_t *addresses, size_t count, struct reported *reported)
{
	const struct module_files files = {
		.kind = DSO_FILE,
		.elf_fd = fd,
		.debug_fd = -1,
		.alt_fd = -1,
		.symbols_only = true,
	};
	struct module_report report;

	assert_int_equal(module_resolve(&files, addresses, count, take, reported, &report), 0);
}

static int open_libc(void)
{
	static const char *const paths[] = {"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6",
					    "/usr/lib/libc.so.6", "/proc/self/exe"};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		int fd = open(paths[i], O_RDONLY | O_CLOEXEC);

		if (fd >= 0)
			return fd;
	}
	fail_msg("no file with symbols");
	return -1;
}

/* Ascending, `count` of them spread over the file. */
static size_t spread(int fd, uint64_t *addresses, size_t count)
{
	struct stat st;
	size_t made = 0;

	assert_int_equal(fstat(fd, &st), 0);
	for (uint64_t at = 0; at < (uint64_t)st.st_size && made < count; at += STEP)
		addresses[made++] = at;
	return made;
}

TEST(memory_says_what_the_file_says)
{
	const struct symbol_key key = {.identity = 1};
	struct symbol_cache *m = memory(16 << 20);
	_cleanup_free_ uint64_t *addresses = calloc(ADDRESSES, sizeof(*addresses));
	_cleanup_free_ uint64_t *probes = calloc(ADDRESSES * PROBES, sizeof(*probes));
	_cleanup_free_ unsigned char *known = calloc(ADDRESSES * PROBES, 1);
	struct reported *reported = calloc(ADDRESSES, sizeof(*reported));
	_cleanup_free_ struct reported *here = calloc(ADDRESSES * PROBES, sizeof(*here));
	_cleanup_free_ struct reported *there = calloc(ADDRESSES * PROBES, sizeof(*there));
	size_t count, probe_count = 0, hits = 0, named = 0;
	enum symbol_state found = SYMBOL_STATE_PENDING;
	bool without_lines = true;
	int fd = open_libc();

	assert_true(m && addresses && probes && known && reported && here && there);
	count = spread(fd, addresses, ADDRESSES);
	resolve(fd, addresses, count, reported);
	/* backwards: spans grow at both ends */
	for (size_t i = count; i-- > 0;) {
		char name[400] = "";
		unsigned long long elf, start, size;
		struct symbol_frame frame = {.function = name};
		struct symbol_result result = {
			.elf_address = reported[i].elf_address,
			.same_until = reported[i].same_until,
			.frames = &frame,
		};

		if (sscanf(reported[i].text, "%llx: %399s %llx %llx", &elf, name, &start, &size) ==
		    4) {
			result.frame_count = 1;
			frame.function_address = start;
			frame.function_size = size;
		}
		assert_int_equal(
			symbol_cache__add(m, &key, addresses[i], &result, SYMBOL_STATE_RESOLVED),
			0);
	}
	for (size_t i = 0; i + 1 < count; i++)
		for (unsigned int k = 0; k < PROBES; k++)
			probes[probe_count++] = addresses[i] + 1 + k * (STEP - 2) / (PROBES - 1);
	resolve(fd, probes, probe_count, there);
	assert_int_equal(symbol_cache__read(m, &key, probes, probe_count, known, take, here, &found,
					    &without_lines),
			 0);
	for (size_t i = 0; i < probe_count; i++) {
		if (!known[i])
			continue;
		hits++;
		named += !strstr(here[i].text, "nothing");
		assert_string_equal(here[i].text, there[i].text);
	}
	assert_int_equal(found, SYMBOL_STATE_RESOLVED);
	assert_false(without_lines);
	print_message("%zu of %zu addresses were known, %zu by name\n", hits, probe_count, named);
	assert_true(hits > probe_count / 10 && named > 100);
	close(fd);
	symbol_cache__free(m);
	free(reported);
}

static int add(struct symbol_cache *m, uint64_t identity, uint64_t address, uint64_t until,
	       const char *name)
{
	const struct symbol_key key = {.identity = identity};
	struct symbol_frame frame = {.function = name, .function_address = 0x1000};
	const struct symbol_result result = {
		.elf_address = address + 0x400000,
		.same_until = until ? until + 0x400000 : 0,
		.frames = &frame,
		.frame_count = 1,
	};

	return symbol_cache__add(m, &key, address, &result, SYMBOL_STATE_NO_SYMBOLS);
}

static bool knows(struct symbol_cache *m, uint64_t identity, uint64_t address)
{
	const struct symbol_key key = {.identity = identity};
	enum symbol_state state = SYMBOL_STATE_PENDING;
	bool without_lines;
	unsigned char known = 0;
	struct reported reported;

	assert_int_equal(symbol_cache__read(m, &key, &address, 1, &known, take, &reported, &state,
					    &without_lines),
			 0);
	if (known) {
		assert_true(reported.elf_address == address + 0x400000);
		assert_int_equal(state, SYMBOL_STATE_NO_SYMBOLS);
	}
	return known;
}

TEST(spans_end_where_they_end)
{
	struct symbol_cache *m = memory(1 << 20);
	struct symbol_frame line = {.function = "f", .file = "f.c", .line = 3};
	struct symbol_result result = {
		.elf_address = 0x500000, .same_until = 0x500100, .frames = &line, .frame_count = 1};
	const struct symbol_key key = {.identity = 7};

	assert_int_equal(add(m, 7, 100, 200, "f"), 0);
	assert_false(knows(m, 7, 99));
	assert_true(knows(m, 7, 100));
	assert_true(knows(m, 7, 199));
	assert_false(knows(m, 7, 200));
	assert_false(knows(m, 8, 100));
	/* from an earlier address of the same function, up to where that ended */
	assert_int_equal(add(m, 7, 50, 200, "f"), 0);
	assert_true(knows(m, 7, 50));
	assert_true(knows(m, 7, 150));
	assert_false(knows(m, 7, 49));
	/* not known how far, lines, and a size without end */
	assert_int_equal(add(m, 7, 300, 0, "g"), 0);
	assert_true(knows(m, 7, 300));
	assert_false(knows(m, 7, 301));
	assert_int_equal(symbol_cache__add(m, &key, 0x100000, &result, SYMBOL_STATE_NO_SYMBOLS), 0);
	assert_true(knows(m, 7, 0x100000));
	assert_false(knows(m, 7, 0x100001));
	assert_int_equal(add(m, 7, 400, UINT64_MAX - 0x400000, "h"), 0);
	assert_true(knows(m, 7, 500));
	assert_false(knows(m, 7, 400 + (2 << 20)));
	symbol_cache__free(m);
}

/* Many files and many functions: it stays within its limit, and still answers for what came last. */
TEST(it_forgets)
{
	const size_t limit = 256 << 10;
	struct symbol_cache *m = memory(limit);
	char name[64];

	for (uint64_t module = 1; module <= 400; module++) {
		for (uint64_t i = 0; i < 50; i++) {
			snprintf(name, sizeof(name), "function_%llu_%llu",
				 (unsigned long long)module, (unsigned long long)i);
			assert_int_equal(add(m, module, i * 100, i * 100 + 50, name), 0);
		}
		symbol_cache__commit(m);
		assert_true(symbol_cache__bytes(m) <= limit);
	}
	assert_true(knows(m, 400, 10));
	assert_false(knows(m, 1, 10));
	/* one that wants all of it has nothing, and the others keep theirs */
	for (uint64_t i = 0; i < 100000; i++) {
		snprintf(name, sizeof(name), "one_of_many_%llu", (unsigned long long)i);
		assert_int_equal(add(m, 1000, i * 100, i * 100 + 50, name), 0);
	}
	symbol_cache__commit(m);
	assert_true(symbol_cache__bytes(m) <= limit);
	assert_false(knows(m, 1000, 10));
	assert_true(knows(m, 400, 10));
	symbol_cache__free(m);
}
