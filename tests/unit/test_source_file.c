/* SPDX-License-Identifier: BSD-2-Clause */
/* Sources that debug information names: whose files are opened, and MD5. */
#include "symbolize/source_file.h"

#include "unit.h"
#include "symbolize/md5.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define OWNER 4711

static char place[] = "/tmp/sysprof-source-XXXXXX";
static int root;

static void make_directory(const char *name, mode_t mode, uid_t owner)
{
	assert_int_equal(mkdirat(root, name, 0700), 0);
	assert_int_equal(fchmodat(root, name, mode, 0), 0);
	if (!geteuid())
		assert_int_equal(fchownat(root, name, owner, 0, 0), 0);
}

static void make_file(const char *name, mode_t mode, uid_t owner, const char *text)
{
	int fd = openat(root, name, O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	if (!geteuid())
		assert_int_equal(fchown(fd, owner, 0), 0);
	close(fd);
}

static void set_up(void)
{
	strcpy(place + sizeof(place) - 7, "XXXXXX");
	assert_non_null(mkdtemp(place));
	root = open(place, O_PATH | O_DIRECTORY);
	make_directory("a", 0755, 0);
	make_file("a/open.c", 0644, 0, "int a;\n");
	make_file("a/closed.c", 0600, 0, "int b;\n");
	make_file("a/own.c", 0600, OWNER, "int c;\n");
	make_file("a/empty.c", 0644, 0, "");
	make_directory("b", 0700, 0);
	make_file("b/open.c", 0644, 0, "int d;\n");
	make_directory("c", 0700, OWNER);
	make_file("c/open.c", 0644, 0, "int e;\n");
	assert_int_equal(symlinkat("open.c", root, "a/link.c"), 0);
	assert_int_equal(symlinkat("a", root, "link"), 0);
	assert_int_equal(mkfifoat(root, "a/fifo.c", 0666), 0);
}

static void tear_down(void)
{
	static const char *const files[] = {"a/open.c",	 "a/closed.c", "a/own.c",
					    "a/empty.c", "b/open.c",   "c/open.c",
					    "a/link.c",	 "link",       "a/fifo.c"};

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		unlinkat(root, files[i], 0);
	for (const char *name = "abc"; *name; name++)
		unlinkat(root, (const char[]){*name, '\0'}, AT_REMOVEDIR);
	close(root);
	rmdir(place);
}

static int try(const char *path, uid_t owner)
{
	int fd = source_file__open(root, path, owner, 1024);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

TEST(what_everybody_may_read_is_opened)
{
	assert_int_equal(try("/a/open.c", OWNER), 0);
	assert_int_equal(try("/a/open.c", 0), 0);
	assert_int_equal(try("//a/./x/../open.c", OWNER), 0);
	assert_int_equal(try("/../../a/open.c", OWNER), 0); /* not above the root */
}

TEST(what_the_owner_may_not_read_is_refused)
{
	if (geteuid())
		skip();
	assert_int_equal(try("/a/closed.c", OWNER), -EACCES);
	assert_int_equal(try("/b/open.c", OWNER), -EACCES);
	/* any user may have mapped a file of root's */
	assert_int_equal(try("/a/closed.c", 0), -EACCES);
	assert_int_equal(try("/b/open.c", 0), -EACCES);
	assert_int_equal(try("/a/own.c", 0), -EACCES);
	assert_int_equal(try("/a/own.c", OWNER), 0);
	assert_int_equal(try("/c/open.c", OWNER), 0);
	assert_int_equal(try("/c/open.c", OWNER + 1), -EACCES);
}

TEST(links_and_other_things_are_refused)
{
	int host = open("/", O_PATH | O_DIRECTORY);

	assert_int_equal(try("/a/link.c", OWNER), -ELOOP);
	assert_int_equal(try("/link/open.c", OWNER), -ELOOP);
	assert_int_equal(try("/a/fifo.c", OWNER), -ENOTSUP);
	assert_int_equal(try("/a/empty.c", OWNER), -ENOTSUP);
	assert_int_equal(try("/a", OWNER), -ENOTSUP);
	assert_int_equal(try("/", OWNER), -ENOTSUP);
	assert_int_equal(try("a/open.c", OWNER), -EINVAL);
	assert_int_equal(try("/a/none.c", OWNER), -ENOENT);
	assert_int_equal(source_file__open(root, "/a/open.c", OWNER, 3), -EFBIG);
	assert_int_equal(source_file__open(host, "/proc/version", OWNER, 1024), -EACCES);
	assert_int_equal(source_file__open(host, "/proc/self/maps", OWNER, 1024), -ELOOP);
	close(host);
}

TEST(md5_is_that_of_rfc_1321)
{
	static const struct {
		const char *text, *digest;
	} cases[] = {
		{"", "d41d8cd98f00b204e9800998ecf8427e"},
		{"abc", "900150983cd24fb0d6963f7d28e17f72"},
		{"abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"},
		{"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
		 "d174ab98d277d9f5a5611c2c9f419d9f"},
		{"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
		 "57edf4a22be3c955ac49da2e2107b67a"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint8_t digest[MD5_SIZE];
		char text[2 * MD5_SIZE + 1];

		md5(cases[i].text, strlen(cases[i].text), digest);
		for (int k = 0; k < MD5_SIZE; k++)
			snprintf(text + 2 * k, 3, "%02x", digest[k]);
		assert_string_equal(text, cases[i].digest);
	}
}

EACH_TEST_WITH(set_up, tear_down);
