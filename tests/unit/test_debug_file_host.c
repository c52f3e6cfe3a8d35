/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Debug files that are on the host and not in the target's root, and the kernel's: tested in a child
 * that has a directory of ours as its "/".
 */
#include <sched.h>
#include <sys/mount.h>

#include "unit.h"
#include "symbolize/debug_file.h"

#include "unit/debug_file_support.h"

/* ---- the host -------------------------------------------------------------------------------- */

#define CHILD_ASSERT(condition)                                                                    \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			dprintf(2, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                 \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

/* Make the scratch directory "/", with "root" below it. */
static void enter_scratch(void)
{
	char proc[512];

	scratch_path("proc", proc, sizeof(proc));
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    (mkdir(proc, 0755) && errno != EEXIST) ||
	    mount("/proc", proc, NULL, MS_BIND | MS_REC, NULL) || chroot(scratch) || chdir("/"))
		_exit(77);
}

static bool finds(const char *module, int root_fd, const char *path, const char *where)
{
	struct debug_file_request request = {.root_fd = root_fd, .path = path};
	struct debug_file_counts counts = {};
	char link[64], found[512] = "";
	int debug = -1, alternate = -1;

	request.elf_fd = open(module, O_RDONLY);
	CHILD_ASSERT(request.elf_fd >= 0);
	CHILD_ASSERT(!debug_file_find(&request, &debug, &alternate, &counts));
	if (debug >= 0) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", debug);
		CHILD_ASSERT(readlink(link, found, sizeof(found) - 1) > 0);
		close(debug);
	}
	close(request.elf_fd);
	return !strcmp(found, where);
}

static bool finds_kernel(const uint8_t *id, size_t size, const char *release, const char *where)
{
	struct debug_file_request request = {.elf_fd = -1,
					     .root_fd = -1,
					     .build_id = id,
					     .build_id_size = size,
					     .release = release};
	struct debug_file_counts counts = {};
	char link[64], found[512] = "";
	int debug = -7, alternate = -7;

	CHILD_ASSERT(!debug_file_find(&request, &debug, &alternate, &counts));
	CHILD_ASSERT(alternate == -1);
	if (debug >= 0) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", debug);
		CHILD_ASSERT(readlink(link, found, sizeof(found) - 1) > 0);
		close(debug);
	}
	return !strcmp(found, where);
}

static void check_kernel(const uint8_t *id, size_t size)
{
	static const char place[] = "/usr/lib/debug/boot/vmlinux-6.1.0-test";

	CHILD_ASSERT(finds_kernel(id, size, "6.1.0-test", place));
	CHILD_ASSERT(finds_kernel(id, size, "6.1.0-other", "")); /* another build */
	CHILD_ASSERT(finds_kernel(id, size, "../boot/vmlinux-6.1.0-test", ""));
	CHILD_ASSERT(finds_kernel(id, 0, "6.1.0-test", ""));
	CHILD_ASSERT(!rename(place, "/boot/vmlinux-6.1.0-test"));
	CHILD_ASSERT(finds_kernel(id, size, "6.1.0-test", "/boot/vmlinux-6.1.0-test"));
}

static void check_host(const uint8_t *id, size_t size)
{
	int root, host;

	enter_scratch();
	root = open("/root", O_PATH | O_DIRECTORY);
	host = open("/", O_PATH | O_DIRECTORY);
	CHILD_ASSERT(root >= 0 && host >= 0);
	/* the root's own before the host's */
	CHILD_ASSERT(finds("/plain1.linked", root, "/opt/app/prog",
			   "/root/usr/lib/debug/opt/app/plain1.debug"));
	CHILD_ASSERT(!unlink("/root/usr/lib/debug/opt/app/plain1.debug"));
	CHILD_ASSERT(finds("/plain1.linked", root, "/opt/app/prog",
			   "/usr/lib/debug/opt/app/plain1.debug"));
	CHILD_ASSERT(finds("/plain1.linked", -1, "/opt/app/prog",
			   "/usr/lib/debug/opt/app/plain1.debug"));
	/* beside a path of another root is nothing to do with it */
	CHILD_ASSERT(finds("/plain2.linked", root, "/opt/app/prog", ""));
	CHILD_ASSERT(finds("/plain2.linked", -1, "/opt/app/prog", "/opt/app/plain2.debug"));
	CHILD_ASSERT(finds("/plain2.linked", host, "/opt/app/prog", "/opt/app/plain2.debug"));
	check_kernel(id, size);
	_exit(0);
}

TEST_WITH(files_absent_from_the_root_come_from_the_host, empty_root, NULL)
{
	uint8_t id[64];
	size_t size = build_id_of("id1", id);
	pid_t pid;
	int status;

	if (geteuid() != 0) {
		print_message("skipped: needs root\n");
		skip();
	}
	run("mkdir -p root/usr/lib/debug/opt/app usr/lib/debug/opt/app opt/app && "
	    "cp plain1.debug root/usr/lib/debug/opt/app/ && "
	    "cp plain1.debug usr/lib/debug/opt/app/ && cp plain2.debug opt/app/");
	run("mkdir -p boot usr/lib/debug/boot && cp id1 usr/lib/debug/boot/vmlinux-6.1.0-test && "
	    "cp id2 usr/lib/debug/boot/vmlinux-6.1.0-other");
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		check_host(id, size);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status == 77 << 8) {
		print_message("skipped: no mount namespace to be had\n");
		skip();
	}
	assert_int_equal(status, 0);
}

ALL_TESTS_WITH(setup, teardown);
