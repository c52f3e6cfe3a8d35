/* SPDX-License-Identifier: BSD-2-Clause */
/* io and gzip: whole reads, deterministic gzip. Result files: test_output_place.c. */
#include "output_support.h"

#include "base/cleanup.h"
#include "tenants/file_system.h"

/* ---- reading --------------------------------------------------------------------------------- */

TEST_WITH(reads_whole_files, enter_directory, leave_directory)
{
	char *data = NULL;
	size_t size = 4711;

	write_text("f", "0123456789");
	assert_int_equal(read_file_at(AT_FDCWD, "f", 10, &data, &size), 0);
	assert_int_equal(size, 10);
	assert_string_equal(data, "0123456789");
	free(data);
	data = NULL;
	size = 4711;
	assert_int_equal(read_file_at(AT_FDCWD, "f", 9, &data, &size), -EFBIG);
	assert_int_equal(read_file_at(AT_FDCWD, "none", 9, &data, &size), -ENOENT);
	assert_int_equal(read_file_at(AT_FDCWD, ".", 9, &data, &size), -EISDIR);
	assert_null(data);
	assert_int_equal(size, 4711);
	write_text("empty", "");
	assert_int_equal(read_file_at(AT_FDCWD, "empty", 0, &data, &size), 0);
	assert_int_equal(size, 0);
	assert_string_equal(data, "");
	free(data);
	assert_int_equal(read_file_at(AT_FDCWD, "/proc/self/maps", SIZE_MAX, &data, &size), 0);
	assert_true(size > 100);
	free(data);
}

TEST_WITH(reads_large_files, enter_directory, leave_directory)
{
	size_t size = 0, sizes[] = {4095, 4096, 4097, 8191, 100000};
	char *data, *content = malloc(100001);

	assert_non_null(content);
	for (int i = 0; i < 5; i++) {
		memset(content, 'a' + i, sizes[i]);
		content[sizes[i]] = '\0';
		write_text("f", content);
		assert_int_equal(read_file_at(AT_FDCWD, "f", sizes[i], &data, &size), 0);
		assert_int_equal(size, sizes[i]);
		assert_string_equal(data, content);
		free(data);
		assert_int_equal(read_file_at(AT_FDCWD, "f", sizes[i] - 1, &data, &size), -EFBIG);
	}
	free(content);
}

TEST_WITH(reads_lines, enter_directory, leave_directory)
{
	char buffer[6] = "-----";

	write_text("f", "12345\nmore");
	assert_int_equal(read_line("f", buffer, 5), -EFBIG);
	assert_int_equal(read_line("f", buffer, 6), 0);
	assert_string_equal(buffer, "12345");
	write_text("f", "abc");
	assert_int_equal(read_line("f", buffer, 6), 0);
	assert_string_equal(buffer, "abc");
	write_text("f", "");
	assert_int_equal(read_line("f", buffer, 6), 0);
	assert_string_equal(buffer, "");
	assert_int_equal(read_line("none", buffer, 6), -ENOENT);
}

TEST_WITH(preads_up_to_the_end, enter_directory, leave_directory)
{
	char buffer[16];
	int fd;

	write_text("f", "0123456789");
	fd = open("f", O_RDONLY | O_CLOEXEC);
	assert_int_equal(pread_full(fd, buffer, 4, 2), 4);
	assert_memory_equal(buffer, "2345", 4);
	assert_int_equal(pread_full(fd, buffer, 16, 7), 3);
	assert_int_equal(pread_full(fd, buffer, 16, 10), 0);
	assert_int_equal(pread_full(fd, buffer, 16, 1 << 20), 0);
	assert_int_equal(pread_full(fd, buffer, 16, UINT64_MAX), -EOVERFLOW);
	assert_int_equal(pread_full(fd, buffer, 16, INT64_MAX - 8), -EOVERFLOW);
	close(fd);
	assert_int_equal(pread_full(-1, buffer, 16, 0), -EBADF);
}

static void *drain_slowly(void *arg)
{
	int fd = *(int *)arg;
	size_t total = 0;
	char buffer[5000];
	ssize_t got;

	usleep(20000);
	while ((got = read(fd, buffer, sizeof(buffer))) > 0)
		total += got;
	return (void *)total;
}

TEST(writes_through_a_nonblocking_pipe)
{
	size_t size = 1 << 20;
	_cleanup_free_ char *data = calloc(1, size);
	pthread_t thread;
	void *total;
	int fds[2];

	assert_non_null(data);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(pthread_create(&thread, NULL, drain_slowly, &fds[0]), 0);
	assert_int_equal(write_full(fds[1], data, size), 0);
	close(fds[1]);
	pthread_join(thread, &total);
	assert_int_equal((size_t)total, size);
	close(fds[0]);
}

TEST(clocks_run)
{
	uint64_t monotonic = monotonic_ns(), real = realtime_ns();

	assert_true(monotonic > 0 && real > UINT64_C(1500000000) * 1000000000);
	usleep(1000);
	assert_true(monotonic_ns() >= monotonic + 1000000);
}

/* ---- gzip ------------------------------------------------------------------------------------ */

/* Compress `size` bytes, written in pieces of `piece`, into a fresh buffer. */
static char *compress_text(const char *data, size_t size, size_t piece, size_t *compressed)
{
	char *result = NULL;
	uint64_t written = 1;
	FILE *out = open_memstream(&result, compressed), *gz = gzip_writer(out, &written);

	assert_non_null(out);
	assert_non_null(gz);
	for (size_t done = 0; done < size; done += piece) {
		size_t part = size - done < piece ? size - done : piece;

		assert_int_equal(fwrite(data + done, 1, part, gz), part);
	}
	assert_int_equal(fclose(gz), 0);
	assert_int_equal(written, size);
	assert_int_equal(fputc('.', out), '.'); /* `out` is still open */
	assert_int_equal(fclose(out), 0);
	assert_int_equal(result[--*compressed], '.');
	return result;
}

static void expect_inflated(const char *compressed, size_t compressed_size, const char *data,
			    size_t size)
{
	_cleanup_free_ char *back = malloc(size + 1);
	z_stream z = {.next_in = (Bytef *)compressed, .avail_in = compressed_size};

	assert_non_null(back);
	z.next_out = (Bytef *)back;
	z.avail_out = size + 1;
	assert_int_equal(inflateInit2(&z, MAX_WBITS + 16), Z_OK);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.total_out, size);
	assert_int_equal(z.avail_in, 0);
	assert_memory_equal(back, data, size);
	inflateEnd(&z);
}

TEST(gzip_round_trip)
{
	static const size_t sizes[] = {0, 1, 100, 65536, 3000000};
	static const size_t pieces[] = {100003, 4096, 7};
	_cleanup_free_ char *data = malloc(3000000);
	uint32_t random = 1;

	assert_non_null(data);
	for (size_t i = 0; i < 3000000; i++) {
		random = random * 1103515245 + 12345;
		data[i] = i % 3 ? "sysprof"[i % 7]
				: (char)(random >> 24); /* half of it compresses */
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		char *first = NULL;
		size_t first_size = 0;

		for (size_t j = 0; j < sizeof(pieces) / sizeof(*pieces); j++) {
			size_t size;
			char *gz = compress_text(data, sizes[i], pieces[j], &size);

			if (!first) {
				expect_inflated(gz, size, data, sizes[i]);
				first = gz;
				first_size = size;
				continue;
			}
			assert_int_equal(size, first_size);
			assert_memory_equal(gz, first, size);
			free(gz);
		}
		/* magic, deflate, no flags, time 0, unknown system */
		assert_memory_equal(first, "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff", 10);
		free(first);
	}
}

TEST(gzip_of_bytes)
{
	static const size_t sizes[] = {0, 1, 100, 65536, 300000};
	_cleanup_free_ uint8_t *data = malloc(300000);

	assert_non_null(data);
	for (size_t i = 0; i < 300000; i++)
		data[i] = (uint8_t)(i * i >> 7);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		_cleanup_free_ uint8_t *gz = NULL, *again = NULL;
		size_t size, again_size;

		assert_int_equal(gzip_bytes(data, sizes[i], NULL, 0, &gz, &size), 0);
		assert_int_equal(gzip_bytes(data, sizes[i], NULL, 0, &again, &again_size), 0);
		assert_int_equal(size, again_size);
		assert_memory_equal(gz, again, size);
		assert_memory_equal(gz, "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff", 10);
		expect_inflated((char *)gz, size, (char *)data, sizes[i]);
	}
}

/* Blocks end at the given offsets; offsets that are none, or behind the end, are left out. */
TEST(gzip_of_pieces)
{
	static const size_t cuts[] = {0,      1,      1,      5000,   4000,
				      100000, 149999, 150000, 150001, SIZE_MAX};
	uint8_t *data = malloc(150000), *gz, *whole;
	size_t size, whole_size, many[15000];
	uint32_t random = 1;

	assert_non_null(data);
	for (size_t i = 0; i < 150000; i++) { /* two kinds of bytes, in turns */
		random = random * 1103515245 + 12345;
		data[i] = (uint8_t)(i / 5000 % 2 ? 'a' + (random >> 24) % 7 : random >> 24);
	}
	for (size_t i = 0; i < 15000; i++)
		many[i] = i * 10;
	assert_int_equal(gzip_bytes(data, 150000, cuts, 10, &gz, &size), 0);
	expect_inflated((char *)gz, size, (char *)data, 150000);
	free(gz);
	assert_int_equal(gzip_bytes(data, 150000, many, 15000, &gz, &size), 0);
	expect_inflated((char *)gz, size, (char *)data, 150000);
	free(gz);
	for (size_t i = 0; i < 30; i++)
		many[i] = i * 5000;
	assert_int_equal(gzip_bytes(data, 150000, many, 30, &gz, &size), 0);
	expect_inflated((char *)gz, size, (char *)data, 150000);
	assert_int_equal(gzip_bytes(data, 150000, NULL, 0, &whole, &whole_size), 0);
	assert_true(size < whole_size);
	free(gz);
	free(whole);
	free(data);
}

TEST(gzip_reports_errors)
{
	FILE *out = fopen("/dev/full", "we"), *gz = gzip_writer(out, NULL);

	assert_non_null(gz);
	fputs("little, so that only the last flush meets the error", gz);
	assert_int_equal(fclose(gz), EOF);
	assert_int_equal(errno, ENOSPC);
	fclose(out);
	out = fopen("/dev/full", "we");
	gz = gzip_writer(out, NULL);
	for (uint32_t i = 0; i < 1000000; i++)
		fprintf(gz, "%u", i * 2654435761U);
	assert_true(ferror(gz));
	assert_int_equal(fclose(gz), EOF);
	assert_int_equal(errno, ENOSPC);
	fclose(out);
}

TEST_WITH(gzip_into_an_output_file, enter_directory, leave_directory)
{
	struct output_file *f;
	_cleanup_free_ char *data = NULL;
	size_t size;
	FILE *gz;

	assert_int_equal(output_file__open("f.gz", &f), 0);
	gz = gzip_writer(output_file__stream(f), NULL);
	fputs("content", gz);
	assert_int_equal(fclose(gz), 0);
	assert_int_equal(output_file__commit(f), 0);
	assert_int_equal(read_file_at(AT_FDCWD, "f.gz", 1000, &data, &size), 0);
	expect_inflated(data, size, "content", 7);
}

/* Users choose the root, the mount point and, for FUSE, the source of their mounts. */
TEST(devices_of_mounts)
{
	static const char mounts[] =
		"22 1 259:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n"
		"30 22 0:51 / /home/u/m rw,nosuid shared:9 - fuse.x 0:52 rw,user_id=1000\n"
		"31 22 0:54 / /home/u/a\\0400:55\\040b rw - fuse.x \\0400:55\\040 rw\n"
		"32 22 0:53 / /home/u/ 0:56 rw shared:9 - fuse.x  0:57  rw 0:58\n"
		"33 22 10:60 /a\\01234\\04022\\0400:59 / rw - tmpfs 0:59 rw";

	assert_true(mountinfo__has_device(mounts, 259, 1));
	assert_true(mountinfo__has_device(mounts, 0, 51));
	assert_true(mountinfo__has_device(mounts, 0, 54));
	assert_true(mountinfo__has_device(mounts, 10, 60));
	for (unsigned int minor = 55; minor < 62; minor++)
		assert_false(mountinfo__has_device(mounts, 0, minor));
	assert_false(mountinfo__has_device(mounts, 0, 52));
	assert_false(mountinfo__has_device(mounts, 59, 1));
	assert_false(mountinfo__has_device("", 0, 0));
}

TEST(crc_is_the_usual_one)
{
	assert_int_equal(crc32_update(0, "123456789", 9), 0xcbf43926);
	assert_int_equal(crc32_update(crc32_update(0, "1234", 4), "56789", 5), 0xcbf43926);
	assert_int_equal(crc32_update(0, "", 0), 0);
}
