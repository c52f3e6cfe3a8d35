/* SPDX-License-Identifier: BSD-2-Clause */
/* io and gzip: whole reads, result files that appear whole or not at all, deterministic gzip. */
#include "output_support.h"

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
	char *data = calloc(1, size);
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
	free(data);
}

TEST(clocks_run)
{
	uint64_t monotonic = monotonic_ns(), real = realtime_ns();

	assert_true(monotonic > 0 && real > UINT64_C(1500000000) * 1000000000);
	usleep(1000);
	assert_true(monotonic_ns() >= monotonic + 1000000);
}

/* ---- result files ---------------------------------------------------------------------------- */

TEST_WITH(output_appears_whole, enter_directory, leave_directory)
{
	struct output_file *f;
	struct stat st;
	mode_t mask = umask(0777);

	write_text("seen", "");
	unlink("seen");
	assert_int_equal(output_file__open("new", &f), 0);
	umask(mask);
	fputs("content", output_file__stream(f));
	fflush(output_file__stream(f));
	assert_int_equal(access("new", F_OK), -1);
	assert_int_equal(count_entries("."), 1); /* the temporary one */
	assert_int_equal(output_file__commit(f), 0);
	expect_text("new", "content");
	assert_int_equal(stat("new", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(count_entries("."), 1);
}

TEST_WITH(output_replaces, enter_directory, leave_directory)
{
	struct output_file *f;
	struct stat before, after;

	write_text("f", "old");
	chmod("f", 0644);
	stat("f", &before);
	assert_int_equal(output_file__open("f", &f), 0);
	fputs("new", output_file__stream(f));
	expect_text("f", "old");
	assert_int_equal(output_file__commit(f), 0);
	expect_text("f", "new");
	stat("f", &after);
	assert_true(before.st_ino != after.st_ino);
	assert_int_equal(after.st_mode & 07777, 0600);
	assert_int_equal(count_entries("."), 1);
}

TEST_WITH(output_abort_leaves_nothing, enter_directory, leave_directory)
{
	struct output_file *f;

	write_text("f", "old");
	assert_int_equal(output_file__open("f", &f), 0);
	fputs("new", output_file__stream(f));
	output_file__abort(f);
	expect_text("f", "old");
	assert_int_equal(count_entries("."), 1);
	output_file__abort(NULL);
}

TEST_WITH(output_follows_links, enter_directory, leave_directory)
{
	struct stat st;

	mkdir("d", 0700);
	write_text("d/target", "old");
	assert_int_equal(symlink("d/target", "link"), 0);
	assert_int_equal(symlink("link", "link2"), 0);
	put("link2", "new");
	expect_text("d/target", "new");
	assert_int_equal(lstat("link", &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(lstat("link2", &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(count_entries("d"), 1);
	assert_int_equal(count_entries("."), 3);
}

TEST_WITH(output_follows_dangling_links, enter_directory, leave_directory)
{
	struct output_file *f;
	struct stat st;

	mkdir("d", 0700);
	assert_int_equal(symlink("d/target", "link"), 0);
	assert_int_equal(output_file__open("link", &f), 0);
	assert_int_equal(access("d/target", F_OK), -1);
	output_file__abort(f);
	assert_int_equal(count_entries("d"), 0);
	put("link", "new");
	expect_text("d/target", "new");
	assert_int_equal(lstat("link", &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(count_entries("d"), 1);
	assert_int_equal(symlink("nowhere/target", "link2"), 0);
	assert_int_equal(output_file__open("link2", &f), -ENOENT);
	assert_int_equal(symlink("loop", "loop"), 0);
	assert_int_equal(output_file__open("loop", &f), -ELOOP);
}

static void *read_fifo(void *arg)
{
	static char text[64];
	FILE *f = fopen(arg, "re");
	size_t size = fread(text, 1, sizeof(text) - 1, f);

	text[size] = '\0';
	fclose(f);
	return text;
}

TEST_WITH(output_to_a_fifo, enter_directory, leave_directory)
{
	pthread_t thread;
	struct stat st;
	void *text;

	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(pthread_create(&thread, NULL, read_fifo, "fifo"), 0);
	put("fifo", "through");
	pthread_join(thread, &text);
	assert_string_equal(text, "through");
	assert_int_equal(lstat("fifo", &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
	assert_int_equal(count_entries("."), 1);
}

TEST_WITH(output_to_devices, enter_directory, leave_directory)
{
	struct output_file *f;
	struct stat st;

	put("/dev/null", "gone");
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(output_file__open("/dev/full", &f), 0);
	fputs("does not fit", output_file__stream(f));
	assert_int_equal(output_file__commit(f), -ENOSPC);
	/* an error of the middle, which a later flush would not see */
	assert_int_equal(output_file__open("/dev/full", &f), 0);
	for (int i = 0; i < 100000; i++)
		fputs("does not fit", output_file__stream(f));
	assert_true(ferror(output_file__stream(f)));
	assert_int_equal(output_file__commit(f), -ENOSPC);
}

TEST_WITH(output_to_stdout, enter_directory, leave_directory)
{
	int saved = dup(STDOUT_FILENO), fd = open("captured", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_true(saved >= 0 && fd >= 0);
	fflush(stdout);
	dup2(fd, STDOUT_FILENO);
	printf("before ");
	put("-", "text");
	printf(" after");
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	close(fd);
	expect_text("captured", "before text after");
	assert_int_equal(count_entries("."), 1);
}

TEST_WITH(output_refuses, enter_directory, leave_directory)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct output_file *f = NULL;
	char name[NAME_MAX + 2];

	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(output_file__open("socket", &f), -ENXIO);
	close(fd);
	unlink("socket");
	assert_int_equal(output_file__open("", &f), -ENOENT);
	assert_int_equal(output_file__open(".", &f), -EISDIR);
	assert_int_equal(output_file__open("new/", &f), -EISDIR);
	assert_int_equal(output_file__open("none/new", &f), -ENOENT);
	write_text("file", "");
	assert_int_equal(output_file__open("file/new", &f), -ENOTDIR);
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(output_file__open(name, &f), -ENAMETOOLONG);
	assert_null(f);
	assert_int_equal(count_entries("."), 1);
}

TEST_WITH(output_with_the_longest_name, enter_directory, leave_directory)
{
	char name[NAME_MAX + 1];

	memset(name, 'n', NAME_MAX);
	name[NAME_MAX] = '\0';
	put(name, "text");
	put(name, "again");
	expect_text(name, "again");
	assert_int_equal(count_entries("."), 1);
}

TEST_WITH(output_when_the_directory_vanishes, enter_directory, leave_directory)
{
	struct output_file *f;

	mkdir("d", 0700);
	assert_int_equal(output_file__open("d/f", &f), 0);
	fputs("text", output_file__stream(f));
	assert_int_equal(system("rm -rf d"), 0);
	assert_int_equal(output_file__commit(f), -ENOENT);
	assert_int_equal(count_entries("."), 0);

	mkdir("d", 0700);
	assert_int_equal(output_file__open("d/f", &f), 0);
	assert_int_equal(rename("d", "moved"), 0);
	assert_int_equal(output_file__commit(f), -ENOENT);
	assert_int_equal(count_entries("moved"), 0);

	assert_int_equal(rename("moved", "d"), 0); /* and another takes its place */
	assert_int_equal(output_file__open("d/f", &f), 0);
	assert_int_equal(rename("d", "moved"), 0);
	mkdir("d", 0700);
	assert_int_equal(output_file__commit(f), -ENOENT);
	assert_int_equal(count_entries("moved"), 0);
	assert_int_equal(count_entries("d"), 0);

	assert_int_equal(output_file__open("moved/f", &f), 0);
	assert_int_equal(system("rm -rf moved && mkdir moved"), 0);
	assert_int_equal(output_file__commit(f), -ENOENT);
	assert_int_equal(count_entries("moved"), 0);
}

/* A published file is watched as well: commit reports that it is gone, and puts it nowhere else. */
TEST_WITH(output_published_and_taken_away, enter_directory, leave_directory)
{
	static const char *const ways[] = {"rm f", "mv f moved", "rm f && touch f", "rm -rf ../d",
					   "mv ../d ../moved"};
	struct output_file *f;

	mkdir("d", 0700);
	assert_int_equal(output_file__open("d/f", &f), 0);
	assert_int_equal(output_file__publish(f), 0);
	assert_int_equal(output_file__commit(f), 0);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		char command[100];

		assert_int_equal(system("rm -rf d moved && mkdir d"), 0);
		assert_int_equal(output_file__open("d/f", &f), 0);
		fputs("text", output_file__stream(f));
		assert_int_equal(output_file__publish(f), 0);
		snprintf(command, sizeof(command), "cd d && %s", ways[i]);
		assert_int_equal(system(command), 0);
		assert_int_equal(output_file__commit(f), -ENOENT);
	}
}

TEST_WITH(output_beyond_the_file_size_limit, enter_directory, leave_directory)
{
	struct rlimit saved, limit;
	struct output_file *f;
	int err;

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &saved);
	limit = saved;
	limit.rlim_cur = 1000;
	assert_int_equal(output_file__open("f", &f), 0);
	for (int i = 0; i < 1000; i++)
		fputs("0123456789", output_file__stream(f));
	setrlimit(RLIMIT_FSIZE, &limit);
	err = output_file__commit(f);
	setrlimit(RLIMIT_FSIZE, &saved);
	assert_int_equal(err, -EFBIG);
	assert_int_equal(count_entries("."), 0);
}

TEST_WITH(output_on_a_full_disk, enter_directory, leave_directory)
{
	struct output_file *f;

	mkdir("disk", 0700);
	if (mount("none", "disk", "tmpfs", 0, "size=64k")) {
		print_message("mount: %s (needs CAP_SYS_ADMIN)\n", strerror(errno));
		skip();
	}
	put("disk/old", "kept");
	assert_int_equal(output_file__open("disk/old", &f), 0);
	for (int i = 0; i < 20000; i++)
		fputs("0123456789", output_file__stream(f));
	assert_int_equal(output_file__error(f), -ENOSPC);
	assert_int_equal(output_file__commit(f), -ENOSPC);
	expect_text("disk/old", "kept");
	assert_int_equal(count_entries("disk"), 1);
	assert_int_equal(umount("disk"), 0);
}

TEST_WITH(output_belongs_to_the_sudo_user, enter_directory, leave_directory)
{
	static const char *const bad[] = {"", "-1", "4294967295", "12x", " 12"};
	struct stat st;
	int fd;

	if (geteuid()) {
		print_message("only root can give files away\n");
		skip();
	}
	setenv("SUDO_UID", "12345", 1);
	put("half", "");
	assert_int_equal(stat("half", &st), 0);
	assert_int_equal(st.st_uid, 0);
	setenv("SUDO_GID", "23456", 1);
	put("f", "");
	assert_int_equal(stat("f", &st), 0);
	assert_int_equal(st.st_uid, 12345);
	assert_int_equal(st.st_gid, 23456);
	assert_int_equal(st.st_mode & 07777, 0600);
	fd = open("half", O_RDONLY | O_CLOEXEC);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		setenv("SUDO_UID", bad[i], 1);
		assert_true(give_to_sudo_user(fd) < 0);
	}
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_uid, 0);
	close(fd);
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
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
	char *back = malloc(size + 1);
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
	free(back);
}

TEST(gzip_round_trip)
{
	static const size_t sizes[] = {0, 1, 100, 65536, 3000000};
	static const size_t pieces[] = {100003, 4096, 7};
	char *data = malloc(3000000);
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
	free(data);
}

TEST(gzip_of_bytes)
{
	static const size_t sizes[] = {0, 1, 100, 65536, 300000};
	uint8_t *data = malloc(300000);

	assert_non_null(data);
	for (size_t i = 0; i < 300000; i++)
		data[i] = (uint8_t)(i * i >> 7);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		uint8_t *gz, *again;
		size_t size, again_size;

		assert_int_equal(gzip_bytes(data, sizes[i], NULL, 0, &gz, &size), 0);
		assert_int_equal(gzip_bytes(data, sizes[i], NULL, 0, &again, &again_size), 0);
		assert_int_equal(size, again_size);
		assert_memory_equal(gz, again, size);
		assert_memory_equal(gz, "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff", 10);
		expect_inflated((char *)gz, size, (char *)data, sizes[i]);
		free(gz);
		free(again);
	}
	free(data);
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
	char *data;
	size_t size;
	FILE *gz;

	assert_int_equal(output_file__open("f.gz", &f), 0);
	gz = gzip_writer(output_file__stream(f), NULL);
	fputs("content", gz);
	assert_int_equal(fclose(gz), 0);
	assert_int_equal(output_file__commit(f), 0);
	assert_int_equal(read_file_at(AT_FDCWD, "f.gz", 1000, &data, &size), 0);
	expect_inflated(data, size, "content", 7);
	free(data);
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

int main(void)
{
	unsetenv("SUDO_UID"); /* the tests themselves may run under sudo */
	unsetenv("SUDO_GID");
	return run_unit_tests();
}
