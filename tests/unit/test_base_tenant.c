/* SPDX-License-Identifier: BSD-2-Clause */
/* tenant_open: names that try to lead elsewhere, and things that are no files. */
#include "unit.h"
#include "base/cleanup.h"
#include "tenants/tenant_open.h"

#define LIMIT 4096

static char directory[] = "/tmp/sysprof-test-tenant-XXXXXX";
static int root_fd;

static void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void make_tree(void)
{
	assert_true(mkdtemp(directory) && !chdir(directory));
	mkdir("root", 0700);
	mkdir("root/etc", 0700);
	mkdir("root/lib", 0700);
	write_text("root/etc/passwd", "inside");
	write_text("outside", "outside");
	root_fd = open("root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(root_fd >= 0 && !chdir("root"));
}

static void remove_tree(void)
{
	char command[128];

	close(root_fd);
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	assert_false(chdir("/") || system(command));
}

static int try_open(const char *path, int flags)
{
	struct stat st = {.st_size = 4711};
	int fd = tenant_open(root_fd, path, flags, LIMIT, &st);

	if (fd < 0)
		assert_int_equal(st.st_size, 4711);
	return fd;
}

static void expect_content(int fd, const char *text)
{
	char buffer[64];
	ssize_t got = read(fd, buffer, sizeof(buffer));

	assert_true(fd >= 0);
	assert_int_equal(got, strlen(text));
	assert_memory_equal(buffer, text, got);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	close(fd);
}

TEST(opens_below_the_root)
{
	struct stat st;
	int fd;

	expect_content(try_open("etc/passwd", 0), "inside");
	expect_content(try_open("/etc/passwd", 0), "inside");
	expect_content(try_open("//etc/./../etc/passwd", 0), "inside");
	fd = tenant_open(root_fd, "/etc/passwd", O_NOFOLLOW, LIMIT, &st);
	assert_int_equal(st.st_size, 6);
	expect_content(fd, "inside");
}

TEST(stays_inside)
{
	expect_content(try_open("../../../etc/passwd", 0), "inside");
	assert_int_equal(try_open("../outside", 0), -ENOENT);
	assert_int_equal(symlink("../../../etc/passwd", "lib/up"), 0);
	expect_content(try_open("lib/up", 0), "inside");
	assert_int_equal(symlink("/etc/passwd", "lib/absolute"), 0);
	expect_content(try_open("/lib/absolute", 0), "inside");
	assert_int_equal(symlink("/etc", "lib/directory"), 0);
	expect_content(try_open("/lib/directory/passwd", 0), "inside");
	assert_int_equal(symlink("../../outside", "lib/escape"), 0);
	assert_int_equal(try_open("lib/escape", 0), -ENOENT);
	assert_int_equal(symlink("self", "self"), 0);
	assert_int_equal(try_open("self", 0), -ELOOP);
}

TEST(refuses_links_on_request)
{
	assert_int_equal(symlink("etc/passwd", "link"), 0);
	expect_content(try_open("link", 0), "inside");
	assert_int_equal(try_open("link", O_NOFOLLOW), -ELOOP);
	assert_int_equal(try_open("etc/passwd/", 0), -ENOTDIR);
}

TEST(refuses_magic_links)
{
	_cleanup_close_ int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	assert_int_equal(tenant_open(proc, "self/exe", 0, UINT64_MAX, &st), -ELOOP);
	assert_int_equal(tenant_open(proc, "self/root/etc/passwd", 0, UINT64_MAX, &st), -ELOOP);
}

TEST(refuses_what_is_no_file)
{
	_cleanup_close_ int dev = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	assert_int_equal(mkfifo("fifo", 0600), 0);
	alarm(60); /* an open that blocks ends the test */
	assert_int_equal(try_open("fifo", 0), -ENOTSUP);
	alarm(0);
	assert_int_equal(try_open("etc", 0), -ENOTSUP);
	assert_int_equal(try_open("/", 0), -ENOTSUP);
	assert_int_equal(try_open("", 0), -ENOENT);
	assert_int_equal(try_open("none", 0), -ENOENT);
	assert_int_equal(tenant_open(dev, "null", 0, LIMIT, &st), -ENOTSUP);
	assert_int_equal(tenant_open(dev, "zero", 0, LIMIT, &st), -ENOTSUP);
	assert_int_equal(tenant_open(-1, "etc/passwd", 0, LIMIT, &st), -EBADF);
}

TEST(refuses_what_is_too_big)
{
	_cleanup_close_ int fd = -1;

	write_text("sized", "");
	assert_int_equal(truncate("sized", LIMIT + 1), 0);
	assert_int_equal(try_open("sized", 0), -EFBIG);
	assert_int_equal(truncate("sized", LIMIT), 0);
	fd = try_open("sized", 0);
	assert_true(fd >= 0);
}

TEST(does_not_wait_for_a_lease)
{
	_cleanup_close_ int fd = -1;

	write_text("leased", "x");
	fd = open("leased", O_RDWR | O_CLOEXEC);
	signal(SIGIO, SIG_IGN);
	assert_int_equal(fcntl(fd, F_SETLEASE, F_WRLCK), 0);
	alarm(60);
	assert_int_equal(try_open("leased", 0), -EAGAIN);
	alarm(0);
}

TEST(finds_the_root_of_a_process)
{
	struct stat mine, root;
	int fd = tenant_root(getpid());

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &root), 0);
	assert_int_equal(stat("/", &mine), 0);
	assert_int_equal(root.st_ino, mine.st_ino);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	assert_int_equal(tenant_root(0x7fffffff), -ENOENT);
}

/* A child in a root of its own: its paths mean what they mean there. */
TEST(resolves_inside_a_chroot)
{
	struct stat st;
	int ready[2], fd;
	char byte;
	pid_t pid;

	if (geteuid()) {
		print_message("chroot needs root\n");
		skip();
	}
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		if (chroot(".") || chdir("/") || write(ready[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	fd = tenant_root(pid);
	assert_true(fd >= 0);
	expect_content(tenant_open(fd, "/etc/passwd", 0, LIMIT, &st), "inside");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	expect_content(tenant_open(fd, "/etc/passwd", 0, LIMIT, &st), "inside"); /* still there */
	close(fd);
}

TEST(opens_a_deleted_mapping)
{
	size_t page = sysconf(_SC_PAGESIZE);
	uint64_t start;
	struct stat st;
	void *map;
	int fd;

	write_text("mapped", "mapped text");
	fd = open("mapped", O_RDONLY | O_CLOEXEC);
	map = mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(map != MAP_FAILED);
	close(fd);
	assert_int_equal(unlink("mapped"), 0);
	start = (uintptr_t)map;
	fd = tenant_open_mapped(getpid(), start, start + page, LIMIT, &st);
	if (fd == -EPERM) {
		print_message("map_files needs CAP_CHECKPOINT_RESTORE\n");
		munmap(map, page);
		skip();
	}
	assert_int_equal(st.st_nlink, 0);
	expect_content(fd, "mapped text");
	assert_int_equal(tenant_open_mapped(getpid(), start, start + page, 4, &st), -EFBIG);
	munmap(map, page);
	assert_int_equal(tenant_open_mapped(getpid(), start, start + page, LIMIT, &st), -ENOENT);
}

ALL_TESTS_WITH(make_tree, remove_tree);
