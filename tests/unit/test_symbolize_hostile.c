/* SPDX-License-Identifier: BSD-2-Clause */
/* From addresses to names: files that are damaged, or change while they are read. */
#include <elf.h>
#include <pthread.h>
#include <stdatomic.h>

#include <sysprof/symbolizer.h>

#include "unit.h"
#include "base/cleanup.h"

#include "unit/symbolize_support.h"

/* ---- hostile files --------------------------------------------------------------------------- */

static void mutate(struct image *image, uint64_t *seed)
{
	static const uint64_t nasty[] = {0,	     1,		 0x7f,	    0xff,      0xffff,
					 0x7fffffff, 0xffffffff, INT64_MAX, UINT64_MAX};

	for (uint64_t n = 1 + next_random(seed) % 6; n; n--) {
		/* Headers and tables, not the text. */
		size_t at = next_random(seed) % 2 ? next_random(seed) % 0x400
						  : TABLES_OFFSET + next_random(seed) % 0x200;
		size_t width = (size_t)1 << next_random(seed) % 4;
		uint64_t value = next_random(seed) % 3 ? nasty[next_random(seed) % COUNT(nasty)]
						       : next_random(seed);

		memcpy(image->bytes + (at & ~(width - 1)), &value, width);
	}
}

TEST(mutated_files_are_resolved_or_refused)
{
	static const struct test_symbol symbols[] = {
		{"first", 0x401000, 0x10, STB_GLOBAL, STT_FUNC},
		{"second", 0x401010, 0x10, STB_LOCAL, STT_FUNC},
		{"_ZN3foo3barEi", 0x401020, 0x10, STB_WEAK, STT_FUNC},
		{"open", 0x401100, 0, STB_GLOBAL, STT_NOTYPE},
	};
	uint64_t offsets[64], seed = 0x9e3779b97f4a7c15;
	struct symbolizer *s = symbolizer__new();
	struct answer answers[COUNT(offsets)];
	size_t resolved = 0;

	for (size_t i = 0; i < COUNT(offsets); i++)
		offsets[i] = i * 0x88;
	for (int round = 0; round < 3000; round++) {
		static struct image image;
		_cleanup_close_ int fd = -1;

		write_image(&image, symbols, COUNT(symbols));
		mutate(&image, &seed);
		fd = memory_file(&image, sizeof(image));
		resolved += resolve(s, DSO_FILE, fd, offsets, COUNT(offsets), answers) ==
			    SYMBOL_STATE_RESOLVED;
	}
	assert_true(resolved > 0 && resolved < 3000);
	symbolizer__free(s);
}

struct shrinking {
	int fd;
	atomic_bool stop;
	const struct image *image;
};

static void *shrink_and_grow(void *context)
{
	struct shrinking *sh = context;
	uint64_t seed = 0x5555;

	while (!atomic_load(&sh->stop)) {
		if (ftruncate(sh->fd, (off_t)(next_random(&seed) % IMAGE_SIZE)))
			break;
		if (pwrite(sh->fd, sh->image, sizeof(*sh->image), 0) < 0)
			break;
	}
	return NULL;
}

TEST(a_name_is_at_most_cut_in_shrinking_files)
{
	static const struct test_symbol symbols[] = {
		{"first", 0x401000, 0x10, STB_GLOBAL, STT_FUNC},
	};
	static const uint64_t offsets[] = {0x1000, 0x1008};
	struct symbolizer *s = symbolizer__new();
	struct answer answers[COUNT(offsets)];
	static struct image image;
	struct shrinking sh = {.image = &image};
	pthread_t thread;

	write_image(&image, symbols, COUNT(symbols));
	sh.fd = memory_file(&image, sizeof(image));
	assert_int_equal(pthread_create(&thread, NULL, shrink_and_grow, &sh), 0);
	for (int round = 0; round < 2000; round++) {
		resolve(s, DSO_FILE, sh.fd, offsets, COUNT(offsets), answers);
		/* What is beyond the end reads as zeros, so a name may be cut. */
		assert_memory_equal(answers[0].name, "first", strlen(answers[0].name));
	}
	atomic_store(&sh.stop, true);
	pthread_join(thread, NULL);
	close(sh.fd);
	symbolizer__free(s);
}

#define MANY 1000000u /* symbols */

/* Each symbol is a better answer than the one before. */
static int make_many(void)
{
	size_t symbol_bytes = (MANY + 1) * sizeof(Elf64_Sym);
	_cleanup_free_ Elf64_Sym *symbols = calloc(1, symbol_bytes);
	static struct image image;
	int fd;

	assert_non_null(symbols);
	memset(&image, 0, sizeof(image));
	write_headers(&image, symbol_bytes, 7);
	fd = memory_file(&image, sizeof(image));
	for (uint32_t i = 1; i <= MANY; i++)
		symbols[i] = (Elf64_Sym){.st_name = 1,
					 .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
					 .st_shndx = SECTION_TEXT,
					 .st_value = TEXT_ADDRESS,
					 .st_size = UINT32_MAX - i};
	assert_int_equal(pwrite(fd, symbols, symbol_bytes, TABLES_OFFSET), (ssize_t)symbol_bytes);
	assert_int_equal(pwrite(fd, "\0names", 7, (off_t)(TABLES_OFFSET + symbol_bytes)), 7);
	return fd;
}

/* The highest memory since the last call, in KB. */
static long highest_memory(void)
{
	FILE *status = fopen("/proc/self/status", "re"), *reset;
	char line[256];
	long highest = 0;

	assert_non_null(status);
	while (fgets(line, sizeof(line), status))
		sscanf(line, "VmHWM: %ld", &highest);
	fclose(status);
	reset = fopen("/proc/self/clear_refs", "we");
	assert_non_null(reset);
	assert_true(fputs("5", reset) >= 0);
	assert_int_equal(fclose(reset), 0);
	return highest;
}

TEST(memory_does_not_grow_with_the_symbols)
{
	static const uint64_t offsets[] = {0x1000, 0x1008, 0x1ff0};
	struct answer answers[COUNT(offsets)];
	_cleanup_close_ int fd = make_many();
	long before;

	highest_memory();
	before = highest_memory();
	assert_int_equal(resolve_symbols(fd, offsets, COUNT(offsets), answers),
			 SYMBOL_STATE_RESOLVED);
	assert_true(highest_memory() - before < 4096);
	for (size_t i = 0; i < COUNT(offsets); i++) {
		assert_string_equal(answers[i].name, "names");
		assert_int_equal(answers[i].size, UINT32_MAX - MANY);
	}
}
