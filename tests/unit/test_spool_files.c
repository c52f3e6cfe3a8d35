/* SPDX-License-Identifier: BSD-2-Clause */
/* Files in a spool that are no windows: torn, changed, forged, others'. Nothing of them comes out, and they stay. */
#include "agent/spool_file.h"
#include "base/hashmap.h"

#include "unit/spool_support.h"

/* ---- files that are no windows --------------------------------------------------------------- */

static size_t read_bytes(const char *path, void *data, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	assert_true(fd >= 0);
	got = read(fd, data, size);
	close(fd);
	assert_true(got > 0 && (size_t)got < size);
	return got;
}

/* One window, as it is on disk. */
static size_t make_file(char path[512], char *bytes, size_t size)
{
	struct spool *s = open_spool(MEGABYTE, 3000 * NS_PER_SECOND);
	char name[256];

	assert_int_equal(put(s, 3, 2, 150), 0);
	spool__free(s);
	assert_int_equal(count_files(name), 1);
	path_in(name, path);
	return read_bytes(path, bytes, size);
}

/* Whatever is there: nothing of it comes out, and a new window does (looked at now and then: it waits for the disk). */
static void expect_skipped(const char *path, size_t strange)
{
	static unsigned int calls;
	struct spool *s = open_spool(MEGABYTE, 3000 * NS_PER_SECOND);
	struct spool_window *w;

	if (!spool__take(s, &w)) {
		struct sink_request r;
		int err = 0;

		for (size_t i = 0; i < spool_file__head(w->file)->count && !err; i++) {
			err = spool_file__read(w->file, i, &r);
			if (!err) {
				char body[150];

				/* what was damaged lies in the other */
				fill_body(body, sizeof(body), 3, i);
				assert_memory_equal(r.body, body, sizeof(body));
				sink_request__fini(&r);
			}
		}
		assert_int_equal(err, -EBADMSG);
		spool__set_aside(s, w);
	}
	assert_int_equal(stats_of(s).strange, strange);
	assert_int_equal(access(path, F_OK), 0);
	if (calls++ % 16 == 0) {
		assert_int_equal(put(s, 4, 1, 10), 0);
		expect_next(s, 4, 1, 10);
	}
	expect_empty(s);
	spool__free(s);
	assert_int_equal(access(path, F_OK), 0); /* left for who wants to look at it */
}

TEST(truncated_files_are_skipped_and_stay)
{
	char path[512], bytes[2048];
	size_t size = make_file(path, bytes, sizeof(bytes));

	for (size_t cut = 0; cut < size; cut++) {
		write_bytes(path, bytes, cut);
		expect_skipped(path, 1);
	}
	bytes[size] = 'x'; /* or grown */
	write_bytes(path, bytes, size + 1);
	expect_skipped(path, 1);
}

TEST(every_changed_byte_but_progress_is_detected)
{
	char path[512], bytes[2048];
	size_t size = make_file(path, bytes, sizeof(bytes));
	struct spool *s;
	struct spool_window *w;
	size_t states = 0;

	for (size_t at = 0; at < size; at++) {
		bytes[at] ^= 0x81;
		write_bytes(path, bytes, size);
		s = open_spool(MEGABYTE, 3000 * NS_PER_SECOND);
		if (!spool__take(s, &w)) {
			uint8_t changed = 0;

			for (size_t i = 0; i < spool_file__head(w->file)->count; i++)
				changed |= spool_file__state(w->file, i);
			spool__give_back(s, w, false);
			if (changed == 0x81) { /* no word of progress that there is: sent again */
				spool__free(s);
				bytes[at] ^= 0x81;
				states++;
				continue;
			}
		}
		spool__free(s);
		expect_skipped(path, 1);
		bytes[at] ^= 0x81;
	}
	assert_int_equal(states, 2); /* a byte for each request */
	write_bytes(path, bytes, size);
	s = open_spool(MEGABYTE, 3000 * NS_PER_SECOND);
	expect_next(s, 3, 2, 150);
	spool__free(s);
}

/* ---- forged: all that it says is wrong but the hash ------------------------------------------ */

/* As in spool_file.c. */
struct forged_head {
	char magic[8];
	uint64_t hash, file_size, number, start, end;
	uint32_t count, strings_size;
};

struct forged_row {
	uint64_t size, hash, samples, cpu_ns;
	uint32_t series, path_size, type_size, encoding_size;
};

static void make_hash(char *bytes, size_t size)
{
	struct forged_head *head = (struct forged_head *)bytes;
	size_t rows = sizeof(*head) + head->count;
	size_t strings = rows + head->count * sizeof(struct forged_row);
	uint64_t parts[3];

	head->hash = 0;
	if (strings + head->strings_size > size)
		return; /* the hash is not reached */
	parts[0] = hash_stable(head, sizeof(*head));
	parts[1] = hash_stable(bytes + rows, strings - rows);
	parts[2] = hash_stable(bytes + strings, head->strings_size);
	head->hash = hash_stable(parts, sizeof(parts));
}

/* A field of four bytes becomes something that is nearly right, or far from it. */
static void forge_field(char *bytes, size_t size, uint64_t *seed)
{
	static const uint32_t VALUES[] = {0,	1,    2,     3,		4095,
					  4096, 4097, 65536, INT32_MAX, UINT32_MAX};
	size_t at = 8 + next_random(seed) % ((size - 12) / 4) * 4;
	uint32_t value;

	memcpy(&value, bytes + at, 4);
	switch (next_random(seed) % 4) {
	case 0:
		value = VALUES[next_random(seed) % 10];
		break;
	case 1:
		value++;
		break;
	case 2:
		value--;
		break;
	default:
		value ^= 1u << next_random(seed) % 32;
	}
	memcpy(bytes + at, &value, 4);
}

/* Whatever is believed has strings that end, and bodies with their hash. */
static bool read_forged(int fd, const char *name, const char *bytes)
{
	const struct forged_head *head = (const struct forged_head *)bytes;
	struct forged_row row;
	struct spool_file *f;
	int err = spool_file__open(fd, name, &f);

	if (err) {
		assert_int_equal(err, -EBADMSG);
		return false;
	}
	for (size_t i = 0; i < spool_file__head(f)->count; i++) {
		struct sink_request r;

		err = spool_file__read(f, i, &r);
		if (err) {
			assert_int_equal(err, -EBADMSG);
			continue;
		}
		memcpy(&row, bytes + sizeof(*head) + head->count + i * sizeof(row), sizeof(row));
		assert_int_equal(strlen(r.path) + 1, row.path_size);
		assert_int_equal(strlen(r.content_type) + 1, row.type_size);
		assert_int_equal(strlen(r.content_encoding) + 1, row.encoding_size);
		sink_request__fini(&r);
	}
	spool_file__free(f);
	return true;
}

TEST(forged_files_have_valid_strings_or_are_refused)
{
	_Alignas(8) char bytes[2048], forged[2048];
	char path[512];
	size_t size = make_file(path, bytes, sizeof(bytes));
	size_t head = size - 2 * 150; /* without the bodies */
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint64_t seed = 1, believed = 0;

	assert_true(fd >= 0);
	memcpy(forged, bytes, size);
	make_hash(forged, size);
	assert_memory_equal(forged, bytes, size); /* it is made as the real one is */
	for (int i = 0; i < 20000; i++) {
		memcpy(forged, bytes, size);
		for (uint32_t n = 1 + next_random(&seed) % 3; n; n--)
			forge_field(forged, head, &seed);
		make_hash(forged, size);
		write_bytes(path, forged, size);
		believed += read_forged(fd, strrchr(path, '/') + 1, forged);
	}
	close(fd);
	/* of numbers that mean nothing to the reader (samples, times) there are some */
	assert_in_range(believed, 1000, 18000);
}

TEST(foreign_files_are_counted_and_stay)
{
	char path[512], bytes[2048], other[512];
	size_t size = make_file(path, bytes, sizeof(bytes));
	struct spool *s;

	snprintf(other, sizeof(other), "%s/window", scratch);
	write_bytes(other, bytes, size);
	/* a link to a good window, a directory and a pipe by names of windows */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(other, path), 0);
	path_in("00000000000000000005-00000000000000000001.win", path);
	assert_int_equal(mkdir(path, 0700), 0);
	path_in("00000000000000000006-00000000000000000001.win", path);
	assert_int_equal(mkfifo(path, 0600), 0);
	/* one that others may write to */
	path_in("00000000000000000007-00000000000000000001.win", path);
	write_bytes(path, bytes, size);
	assert_int_equal(chmod(path, 0666), 0);
	/* names that are almost right, one of a number with nothing behind it, and others' */
	path_in("7-1.win", path);
	write_bytes(path, bytes, size);
	path_in("18446744073709551615-00000000000000000001.win", path);
	write_bytes(path, bytes, size);
	path_in("0000000000000000000a-00000000000000000001.win", path);
	write_bytes(path, bytes, size);
	path_in("notes.txt", path);
	write_bytes(path, "x", 1);
	/* what a killed process leaves is removed */
	path_in(".writing", path);
	write_bytes(path, bytes, size / 2);
	s = open_spool(MEGABYTE, 3000 * NS_PER_SECOND);
	assert_int_equal(stats_of(s).strange, 8);
	assert_int_equal(stats_of(s).windows, 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(put(s, 1, 1, 10), 0);
	expect_next(s, 1, 1, 10);
	spool__free(s);
	assert_int_equal(count_files(NULL), 8);
}

TEST(a_directory_open_to_others_is_refused)
{
	struct spool_options options = {.directory = directory, .bytes = 1000, .age = 1};
	struct failure failure = {};
	struct spool *s;
	char link[256];

	assert_int_equal(mkdir(directory, 0700), 0);
	assert_int_equal(chmod(directory, 0770), 0);
	assert_int_equal(spool__new(&options, &s, &failure), -EPERM);
	assert_non_null(strstr(failure.what, directory));
	assert_int_equal(chmod(directory, 0700), 0);
	snprintf(link, sizeof(link), "%s.link", directory);
	assert_int_equal(symlink(directory, link), 0);
	options.directory = link;
	assert_int_not_equal(spool__new(&options, &s, &failure), 0);
	options.directory = "/proc/self/status";
	assert_int_equal(spool__new(&options, &s, &failure), -ENOTDIR);
}

EACH_TEST_WITH(fresh_directory, NULL);
ALL_TESTS_WITH(make_scratch, remove_scratch);
