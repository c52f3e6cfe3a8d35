/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers in the symbol cache: what was put in comes out, across instances and merges; files that are damaged,
 * forged or another user's are thrown away; the limit; several writers at once.
 */
#include "symbol_cache_support.h"

#include <time.h>

#include "base/gzip.h"

/* ---- what comes out -------------------------------------------------------------------------- */

TEST(committed_answers_are_read_by_later_instances)
{
	uint64_t addresses[ADDRESSES], others[ADDRESSES];
	struct symbol_cache *c = open_cache();
	char path[512];
	struct stat st;

	fill_addresses(addresses, ADDRESSES, 1000);
	fill_addresses(others, ADDRESSES, 1001);
	assert_int_equal(read_cache(c, &KEY, addresses, ADDRESSES, 1), 0);
	/* in no order, and some twice: the last one counts */
	add_answers(c, &KEY, addresses + 100, 200, 2);
	add_answers(c, &KEY, addresses + 100, 200, 1);
	add_answers(c, &KEY, addresses, 100, 1);
	assert_int_equal(list_directory(NULL, 0), 0); /* not yet */
	symbol_cache__commit(c);
	symbol_cache__commit(c); /* nothing to do */
	assert_int_equal(read_cache(c, &KEY, addresses, ADDRESSES, 1), ADDRESSES);
	symbol_cache__free(c);
	assert_int_equal(read_fresh(&KEY, addresses, ADDRESSES, 1), ADDRESSES);
	assert_int_equal(read_fresh(&KEY, others, ADDRESSES, 1), 0);
	only_file(path, sizeof(path));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

TEST(an_error_of_the_sink_ends_reading)
{
	uint64_t addresses[10];
	unsigned char known[10];
	struct reading r = {.addresses = addresses, .last = -1, .salt = 1, .stop_at = 3};
	struct symbol_cache *c;

	fill_addresses(addresses, 10, 50);
	write_cache(&KEY, addresses, 10, 1);
	c = open_cache();
	assert_int_equal(symbol_cache__read(c, &KEY, addresses, 10, known, check_answer, &r, &found,
					    &without_lines),
			 -EINTR);
	assert_int_equal(r.reported, 3);
	symbol_cache__free(c);
}

TEST(new_answers_are_merged_with_stored_ones)
{
	uint64_t first[ADDRESSES], second[ADDRESSES];

	fill_addresses(first, ADDRESSES, 1000);
	fill_addresses(second, ADDRESSES, 1000 + 200 * 13); /* a third in common */
	write_cache(&KEY, first, ADDRESSES, 1);
	write_cache(&KEY, second, ADDRESSES, 2);
	assert_int_equal(read_fresh(&KEY, first, 200, 1), 200);
	assert_int_equal(read_fresh(&KEY, second, ADDRESSES, 2), ADDRESSES);
}

/* Put off, read all the same, and written in the end: the new before the old. */
TEST(deferred_answers_are_readable_before_they_are_written)
{
	uint64_t first[ADDRESSES], second[ADDRESSES];
	struct symbol_cache *c;
	char path[512];

	fill_addresses(first, ADDRESSES, 1000);
	fill_addresses(second, ADDRESSES, 1000 + 200 * 13);
	write_cache(&KEY, first, ADDRESSES, 1);
	only_file(path, sizeof(path));
	c = open_cache();
	symbol_cache__keep(c, 1 << 20);
	assert_int_equal(read_cache(c, &KEY, first, ADDRESSES, 1), ADDRESSES);
	add_answers(c, &KEY, second, ADDRESSES, 2);
	symbol_cache__commit(c);
	assert_int_equal(read_cache(c, &KEY, first, 200, 1), 200);
	assert_int_equal(read_cache(c, &KEY, second, ADDRESSES, 2), ADDRESSES);
	assert_int_equal(read_fresh(&KEY, first, ADDRESSES, 1), ADDRESSES); /* nothing is written */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(read_cache(c, &KEY, first, 200, 1), 200); /* nor read again */
	symbol_cache__free(c);
	assert_int_equal(read_fresh(&KEY, second, ADDRESSES, 2), ADDRESSES);
}

TEST(at_the_memory_limit_the_largest_module_is_written)
{
	const struct symbol_key other = {.identity = 7, .build_id_size = 20, .build_id = {9}};
	uint64_t addresses[ADDRESSES];
	struct symbol_cache *c = open_cache();

	fill_addresses(addresses, ADDRESSES, 1000);
	symbol_cache__keep(c, 80000);
	for (size_t i = 0; i < ADDRESSES; i++) {
		add_answers(c, &KEY, addresses + i, 1, 1);
		symbol_cache__commit(c);
		if (i % 10)
			continue;
		add_answers(c, &other, addresses + i, 1, 1);
		symbol_cache__commit(c);
	}
	/* that of which there is most was written, perhaps more than once; the other one waits */
	assert_in_range(read_fresh(&KEY, addresses, ADDRESSES, 1), ADDRESSES / 4, ADDRESSES - 1);
	assert_int_equal(read_fresh(&other, addresses, ADDRESSES, 1), 0);
	assert_int_equal(read_cache(c, &KEY, addresses, ADDRESSES, 1), ADDRESSES);
	assert_int_equal(read_cache(c, &other, addresses, ADDRESSES, 1), ADDRESSES / 10);
	symbol_cache__free(c);
	assert_int_equal(read_fresh(&KEY, addresses, ADDRESSES, 1), ADDRESSES);
	assert_int_equal(read_fresh(&other, addresses, ADDRESSES, 1), ADDRESSES / 10);
}

TEST(answers_are_stored_by_identity_and_build_id)
{
	struct symbol_key other = KEY, shorter = KEY, none = KEY, symbols = KEY;
	const struct symbol_key longest = {.build_id_size = 64, .build_id = {1, 2, 3}};
	uint64_t addresses[10];
	struct symbol_cache *c = open_cache();

	fill_addresses(addresses, 10, 50);
	other.identity = 8;
	shorter.build_id_size--;
	none.build_id_size = 0;
	symbols.symbols_only = 1;
	add_answers(c, &KEY, addresses, 10, 1);
	add_answers(c, &longest, addresses, 10, 2);
	add_answers(c, &none, addresses, 10, 1);
	add_answers(c, &symbols, addresses, 10, 3);
	symbol_cache__commit(c);
	add_answers(c, &other, addresses, 5, 3);
	symbol_cache__free(c); /* writes what was not committed */
	assert_int_equal(read_fresh(&KEY, addresses, 10, 1), 10);
	assert_int_equal(read_fresh(&longest, addresses, 10, 2), 10);
	assert_int_equal(read_fresh(&other, addresses, 10, 3), 5);
	assert_int_equal(read_fresh(&shorter, addresses, 10, 3), 0);
	assert_int_equal(read_fresh(&none, addresses, 10, 3), 0);
	assert_int_equal(list_directory(NULL, 0), 3);
	/* lines that are there are better than names alone */
	assert_int_equal(read_fresh(&symbols, addresses, 10, 1), 10);
	assert_false(without_lines);
}

/* Answers that no file can have stay in memory. */
TEST(answers_that_fit_no_file_stay_in_memory)
{
	struct symbol_key none = KEY, symbols = KEY, no_symbols = KEY;
	uint64_t addresses[10];
	struct symbol_cache *c = open_cache();

	fill_addresses(addresses, 10, 50);
	none.build_id_size = 0;
	symbols.symbols_only = 1;
	no_symbols.identity = 9;
	symbol_cache__keep(c, 1 << 20);
	add_answers(c, &none, addresses, 10, 1);
	add_answers(c, &symbols, addresses, 10, 2);
	assert_int_equal(symbol_cache__add(c, &no_symbols, 77,
					   &(struct symbol_result){.elf_address = 77},
					   SYMBOL_STATE_NO_SYMBOLS),
			 0);
	symbol_cache__commit(c);
	assert_int_equal(read_cache(c, &none, addresses, 10, 1), 10);
	assert_int_equal(found, SYMBOL_STATE_RESOLVED);
	assert_int_equal(read_cache(c, &symbols, addresses, 10, 2), 10);
	assert_true(without_lines);
	assert_int_equal(read_cache(c, &no_symbols, &(uint64_t){77}, 1, -1), 1);
	assert_int_equal(found, SYMBOL_STATE_NO_SYMBOLS);
	symbol_cache__free(c);
	assert_int_equal(list_directory(NULL, 0), 0);
}

/* Modules whose addresses wait are forgotten before answers that are used. */
TEST(modules_with_waiting_addresses_are_evicted_first)
{
	struct symbol_key waits = KEY, none = KEY;
	uint64_t addresses[10];
	struct symbol_cache *c = open_cache();

	fill_addresses(addresses, 10, 50);
	none.build_id_size = 0;
	symbol_cache__keep(c, 100000);
	add_answers(c, &none, addresses, 10, 1);
	for (size_t i = 0; i < 1000; i++) {
		waits.identity = 100 + i;
		assert_int_equal(symbol_cache__put_off(c, &waits, 3), 3);
		assert_int_equal(symbol_cache__put_off(c, &waits, 4), 7);
		assert_int_equal(read_cache(c, &none, addresses, 10, 1), 10);
		assert_true(symbol_cache__bytes(c) <= 100000);
	}
	symbol_cache__free(c);
}

/* More than a file may hold is left out, and what is there can be read. */
TEST(answers_beyond_the_file_limit_are_left_out)
{
	enum { COUNT = 1200, CHAIN = 20 };
	static char names[CHAIN][3000];
	struct symbol_frame frames[CHAIN];
	struct symbol_result result = {1, frames, CHAIN, 0};
	struct symbol_cache *c = open_cache();
	uint64_t addresses[COUNT];
	struct reading r = {.addresses = addresses, .last = -1, .forged = true};
	unsigned char known[COUNT];

	for (size_t i = 0; i < CHAIN; i++) {
		memset(names[i], 'n', sizeof(names[i]) - 1);
		frames[i] = (struct symbol_frame){.function = names[i]};
	}
	for (size_t i = 0; i < COUNT; i++) {
		addresses[i] = i;
		for (size_t n = 0; n < CHAIN; n++) {
			snprintf(names[n], 10, "%04zu.%04zu", i, n);
			names[n][9] = 'n';
		}
		assert_int_equal(symbol_cache__add(c, &KEY, i, &result, SYMBOL_STATE_RESOLVED), 0);
	}
	symbol_cache__commit(c);
	assert_int_equal(symbol_cache__read(c, &KEY, addresses, COUNT, known, check_answer, &r,
					    &found, &without_lines),
			 0);
	assert_in_range(r.reported, 1080, 1118); /* 64 MB / 60 KB */
	/* and more of it does not replace what is there */
	assert_int_equal(symbol_cache__add(c, &KEY, COUNT - 1, &result, SYMBOL_STATE_RESOLVED), 0);
	symbol_cache__commit(c);
	r = (struct reading){.addresses = addresses, .last = -1, .forged = true};
	assert_int_equal(symbol_cache__read(c, &KEY, addresses, COUNT, known, check_answer, &r,
					    &found, &without_lines),
			 0);
	assert_in_range(r.reported, 1080, 1118);
	assert_true(known[COUNT - 1]);
	symbol_cache__free(c);
}

/* ---- bad files ------------------------------------------------------------------------------- */

TEST(damaged_files_are_deleted_and_replaced)
{
	uint64_t addresses[20];
	_cleanup_free_ char *good = NULL, *bad = NULL;
	char path[512];
	size_t size;

	fill_addresses(addresses, 20, 50);
	write_cache(&KEY, addresses, 20, 1);
	only_file(path, sizeof(path));
	good = read_path(path, &size);
	bad = malloc(size + 1);
	for (size_t i = 0; i < size; i++) {
		memcpy(bad, good, size);
		bad[i] ^= 1 << i % 8;
		replace_path(path, bad, size);
		assert_int_equal(read_fresh(&KEY, addresses, 20, 1), 0);
		assert_int_equal(access(path, F_OK), -1); /* thrown away */
		replace_path(path, good, i);
		assert_int_equal(read_fresh(&KEY, addresses, 20, 1), 0);
	}
	memcpy(bad, good, size);
	bad[size] = 0;
	replace_path(path, bad, size + 1);
	assert_int_equal(read_fresh(&KEY, addresses, 20, 1), 0);
	/* committing over a damaged one mends it */
	replace_path(path, bad, size / 2);
	write_cache(&KEY, addresses, 20, 1);
	assert_int_equal(read_fresh(&KEY, addresses, 20, 1), 20);
	replace_path(path, good, size);
	assert_int_equal(read_fresh(&KEY, addresses, 20, 1), 20);
}

/* A file of an earlier version is deleted, and replaced. */
TEST(files_of_another_version_are_not_read)
{
	uint64_t addresses[20];
	_cleanup_free_ char *file = NULL;
	char path[512];
	uint32_t crc;
	size_t size;

	fill_addresses(addresses, 20, 50);
	write_cache(&KEY, addresses, 20, 1);
	only_file(path, sizeof(path));
	file = read_path(path, &size);
	file[16] ^= 1;
	crc = crc32_update(0, file + 16, size - 16);
	memcpy(file + 12, &crc, sizeof(crc));
	replace_path(path, file, size);
	assert_int_equal(read_fresh(&KEY, addresses, 20, 1), 0);
	assert_int_equal(access(path, F_OK), -1);
	replace_path(path, file, size);
	write_cache(&KEY, addresses, 20, 2);
	assert_int_equal(read_fresh(&KEY, addresses, 20, 2), 20);
}

/* An attacker gets the checksum right. */
TEST(forged_files_are_refused_or_read_safely)
{
	uint64_t addresses[20], seed = 0x9e3779b97f4a7c15;
	_cleanup_free_ char *good = NULL, *bad = NULL;
	size_t size, taken = 0, refused = 0;
	char path[512];

	fill_addresses(addresses, 20, 50);
	write_cache(&KEY, addresses, 20, 1);
	only_file(path, sizeof(path));
	good = read_path(path, &size);
	bad = malloc(size);
	for (int round = 0; round < 2000; round++) {
		struct reading r = {.addresses = addresses, .last = -1, .forged = true};
		struct symbol_cache *c = open_cache();
		unsigned char known[20];
		uint32_t crc;

		memcpy(bad, good, size);
		for (uint64_t n = 1 + next_random(&seed) % 3; n; n--)
			bad[16 + next_random(&seed) % (size - 16)] =
				next_random(&seed) % 3 ? (char)next_random(&seed) : (char)0xff;
		crc = crc32_update(0, bad + 16, size - 16);
		memcpy(bad + 12, &crc, sizeof(crc));
		replace_path(path, bad, size);
		assert_int_equal(symbol_cache__read(c, &KEY, addresses, 20, known, check_answer, &r,
						    &found, &without_lines),
				 0);
		r.reported ? taken++ : refused++;
		/* what was taken can be merged with as well */
		add_answers(c, &KEY, addresses, 3, 1);
		symbol_cache__commit(c);
		symbol_cache__free(c);
	}
	assert_true(taken > 100 && refused > 100);
}

static void assert_thrown_away(const char *path, const uint64_t *addresses, const char *good,
			       size_t size)
{
	struct stat st;

	assert_int_equal(read_fresh(&KEY, addresses, 20, 1), 0);
	assert_int_equal(lstat(path, &st), -1);
	replace_path(path, good, size);
	assert_int_equal(read_fresh(&KEY, addresses, 20, 1), 20);
}

/* The content is right, the file is not. */
TEST(unsafe_files_are_deleted_unread)
{
	uint64_t addresses[20];
	_cleanup_free_ char *good = NULL;
	char path[512], elsewhere[512];
	size_t size;

	fill_addresses(addresses, 20, 50);
	write_cache(&KEY, addresses, 20, 1);
	only_file(path, sizeof(path));
	good = read_path(path, &size);
	assert_int_equal(chmod(path, 0620), 0);
	assert_thrown_away(path, addresses, good, size);
	assert_int_equal(chmod(path, 0602), 0);
	assert_thrown_away(path, addresses, good, size);
	snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", directory);
	assert_int_equal(rename(path, elsewhere), 0);
	assert_int_equal(symlink("elsewhere", path), 0);
	assert_thrown_away(path, addresses, good, size);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_thrown_away(path, addresses, good, size);
	assert_int_equal(truncate(path, SYMBOL_FILE_LIMIT + 1), 0);
	assert_thrown_away(path, addresses, good, size);
	assert_int_equal(truncate(path, 0), 0);
	assert_thrown_away(path, addresses, good, size);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 12345, 12345), 0);
		assert_thrown_away(path, addresses, good, size);
	}
	/* a directory cannot be thrown away, but does no harm */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(read_fresh(&KEY, addresses, 20, 1), 0);
}

TEST(linked_foreign_or_writable_directories_are_refused)
{
	char link[80];

	snprintf(link, sizeof(link), "%s.link", directory);
	assert_int_equal(symlink(directory, link), 0);
	assert_null(symbol_cache__open(link, 1 << 20));
	assert_int_equal(unlink(link), 0);
	assert_int_equal(chmod(directory, 0770), 0);
	assert_null(symbol_cache__open(directory, 1 << 20));
	assert_int_equal(chmod(directory, 01777), 0);
	assert_null(symbol_cache__open(directory, 1 << 20));
	assert_int_equal(chmod(directory, 0700), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(directory, 12345, 12345), 0);
		assert_null(symbol_cache__open(directory, 1 << 20));
		assert_int_equal(chown(directory, 0, 0), 0);
	}
	assert_null(symbol_cache__open("/nonexistent/directory", 1 << 20));
	symbol_cache__free(open_cache());
	symbol_cache__free(NULL);
}

/* Runs `test` in a child that is not root. */
static void as_user(void (*test)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		if (geteuid() == 0 && (setgid(12345) || setuid(12345)))
			_exit(90);
		test();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#define CHILD_ASSERT(condition)                                                                    \
	do {                                                                                       \
		if (!(condition))                                                                  \
			_exit(100);                                                                \
	} while (0)

static void check_home(const char *made)
{
	struct symbol_cache *c = symbol_cache__open(NULL, SYMBOL_CACHE_LIMIT);
	struct stat st;

	CHILD_ASSERT(c);
	CHILD_ASSERT(!stat(made, &st) && S_ISDIR(st.st_mode) && (st.st_mode & 07777) == 0700);
	symbol_cache__free(c);
}

static void check_homes(void)
{
	char home[80], cache[80], made[256];

	umask(0);
	snprintf(home, sizeof(home), "%s/home", directory);
	snprintf(cache, sizeof(cache), "%s/xdg", directory);
	CHILD_ASSERT(!mkdir(home, 0755));
	setenv("HOME", home, 1);
	setenv("XDG_CACHE_HOME", cache, 1);
	snprintf(made, sizeof(made), "%s/sysprof/symbols", cache);
	check_home(made);
	setenv("XDG_CACHE_HOME", "relative", 1);
	snprintf(made, sizeof(made), "%s/.cache/sysprof/symbols", home);
	check_home(made);
	unsetenv("XDG_CACHE_HOME");
	check_home(made);
	unsetenv("HOME");
	CHILD_ASSERT(!symbol_cache__open(NULL, SYMBOL_CACHE_LIMIT));
	setenv("HOME", "/nonexistent", 1);
	CHILD_ASSERT(!symbol_cache__open(NULL, SYMBOL_CACHE_LIMIT));
	snprintf(made, sizeof(made), "rm -r %s %s", home, cache);
	CHILD_ASSERT(!system(made));
}

TEST(the_cache_is_below_xdg_cache_home_or_home)
{
	if (geteuid() == 0)
		assert_int_equal(chown(directory, 12345, 12345), 0);
	as_user(check_homes);
	if (geteuid() == 0)
		assert_int_equal(chown(directory, 0, 0), 0);
}

/* ---- the limit ------------------------------------------------------------------------------- */

static struct symbol_key numbered_key(uint8_t number)
{
	struct symbol_key key = {.identity = number, .build_id_size = 4};

	memset(key.build_id, number, 4);
	return key;
}

static void set_age(const char *path, time_t seconds)
{
	struct timespec times[2] = {{.tv_sec = time(NULL) - seconds},
				    {.tv_sec = time(NULL) - seconds}};

	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void path_of_key(uint8_t number, char *path, size_t size)
{
	uint8_t n = number;

	snprintf(path, size, "%s/%02x%02x%02x%02x-%016x.symbols", directory, n, n, n, n, n);
}

TEST(the_limit_deletes_the_least_recently_used_files)
{
	uint64_t addresses[ADDRESSES];
	char path[512], leftover[512], young[512];
	struct symbol_cache *c;
	struct stat st;
	struct symbol_key key;

	fill_addresses(addresses, ADDRESSES, 1000);
	for (int i = 1; i <= 8; i++) {
		struct symbol_key key = numbered_key(i);

		write_cache(&key, addresses, ADDRESSES, 1);
		path_of_key(i, path, sizeof(path));
		set_age(path, 10000 - i * 1000); /* 1 is the oldest */
	}
	assert_int_equal(stat(path, &st), 0);
	snprintf(leftover, sizeof(leftover), "%s/.writing-0123456789abcdef", directory);
	snprintf(young, sizeof(young), "%s/.writing-0123456789abcde0", directory);
	replace_path(leftover, "x", 1);
	set_age(leftover, 10000);
	replace_path(young, "x", 1);
	/* The first is used again, so the second is the oldest. The ninth goes over the limit. */
	c = symbol_cache__open(directory, (uint64_t)st.st_blocks * 512 * 17 / 2);
	key = numbered_key(1);
	assert_int_equal(read_cache(c, &key, addresses, ADDRESSES, 1), ADDRESSES);
	key = numbered_key(9);
	add_answers(c, &key, addresses, ADDRESSES, 1);
	symbol_cache__commit(c);
	symbol_cache__free(c);
	for (int i = 1; i <= 9; i++) {
		bool expected = i == 1 || i >= 5; /* six are three quarters of the limit */

		path_of_key(i, path, sizeof(path));
		assert_int_equal(access(path, F_OK), expected ? 0 : -1);
	}
	assert_int_equal(access(leftover, F_OK), -1);
	assert_int_equal(access(young, F_OK), 0);
}

/* ---- several at once ------------------------------------------------------------------------- */

static void write_often(unsigned int salt)
{
	uint64_t addresses[ADDRESSES];

	fill_addresses(addresses, ADDRESSES, 1000);
	for (int i = 0; i < 40; i++) {
		struct symbol_cache *c = symbol_cache__open(directory, SYMBOL_CACHE_LIMIT);
		struct sample_answer s;

		CHILD_ASSERT(c);
		for (size_t k = 0; k < ADDRESSES; k++)
			CHILD_ASSERT(!symbol_cache__add(c, &KEY, addresses[k],
							make_answer(&s, addresses[k], salt),
							SYMBOL_STATE_RESOLVED));
		symbol_cache__commit(c);
		symbol_cache__free(c);
	}
	_exit(0);
}

/* Whoever wins, from the first file on there is always a whole one. */
TEST(concurrent_writers_always_leave_a_whole_file)
{
	uint64_t addresses[ADDRESSES];
	pid_t writers[3];

	fill_addresses(addresses, ADDRESSES, 1000);
	write_cache(&KEY, addresses, ADDRESSES, 1);
	for (int i = 0; i < 3; i++) {
		writers[i] = fork();
		assert_true(writers[i] >= 0);
		if (!writers[i])
			write_often(i);
	}
	for (int i = 0; i < 200; i++)
		assert_int_equal(read_fresh(&KEY, addresses, ADDRESSES, -1), ADDRESSES);
	for (int i = 0; i < 3; i++) {
		int status;

		assert_int_equal(waitpid(writers[i], &status, 0), writers[i]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(read_fresh(&KEY, addresses, ADDRESSES, -1), ADDRESSES);
	assert_int_equal(list_directory(NULL, 0), 1);
}
