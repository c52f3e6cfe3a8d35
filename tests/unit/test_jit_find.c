/* SPDX-License-Identifier: BSD-2-Clause */
/* Which files count as a process's perf map or jitdump, and which do not. */
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "unit.h"
#include "base/clocks.h"
#include "base/io.h"
#include "jit/follow/jit_find.h"
#include "jit/follow/jit_owner.h"

#define NOBODY 65534
#define SECOND 1000000000ll

static char map_path[64], dump_path[64], target_path[64];
static struct jit_owner me;

static void remove_files(void)
{
	rmdir(map_path);
	unlink(map_path);
	unlink(dump_path);
	unlink(target_path);
}

static void begin(void)
{
	snprintf(map_path, sizeof(map_path), "/tmp/perf-%d.map", getpid());
	snprintf(dump_path, sizeof(dump_path), "/tmp/jit-%d.dump", getpid());
	snprintf(target_path, sizeof(target_path), "/tmp/sysprof-test-jit-find-%d", getpid());
	remove_files();
	assert_int_equal(jit_owner__read(getpid(), &me), 0);
}

/* A former process of the number in its name may have left one. */
static void write_text(const char *path, const char *text)
{
	int fd;

	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write_full(fd, text, strlen(text)), 0);
	close(fd);
}

/* It was found, and is not to be read. */
static void expect_refusal(const struct jit_owner *owner, enum jit_file_state why)
{
	struct jit_found found = {.fd = 4711};

	alarm(60); /* an open that blocks ends the test */
	assert_int_equal(jit_find_map(owner, &found), 0);
	alarm(0);
	assert_int_equal(found.state, why);
	assert_int_equal(found.fd, -1);
	assert_string_equal(found.path, map_path);
}

static void expect_none(const struct jit_owner *owner)
{
	struct jit_found found = {.fd = 4711};

	assert_int_equal(jit_find_map(owner, &found), -ENOENT);
	assert_int_equal(found.fd, -1);
}

static void expect_content(int fd, const char *text)
{
	char buffer[64];
	ssize_t got;

	assert_true(fd >= 0);
	got = read(fd, buffer, sizeof(buffer));
	assert_int_equal(got, strlen(text));
	assert_memory_equal(buffer, text, got);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
}

static void expect_map(const struct jit_owner *owner, enum jit_file_state state, const char *text)
{
	struct jit_found found = {};

	assert_int_equal(jit_find_map(owner, &found), 0);
	assert_int_equal(found.state, state);
	assert_int_equal(found.st.st_size, strlen(text));
	expect_content(found.fd, text);
}

/* ---- processes ------------------------------------------------------------------------------- */

/* A child that waits, once become() has returned true in it; 0: it has not. */
static pid_t start_child_as(bool (*become)(void))
{
	int ready[2];
	char byte;
	pid_t pid;
	bool is_ready;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (!become() || prctl(PR_SET_PDEATHSIG, SIGKILL) || write(ready[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(ready[1]);
	is_ready = read(ready[0], &byte, 1) == 1;
	close(ready[0]);
	if (is_ready)
		return pid;
	waitpid(pid, NULL, 0);
	return 0;
}

static bool become_nothing(void)
{
	return true;
}

static pid_t start_child(void)
{
	return start_child_as(become_nothing);
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

TEST(a_process_has_an_owner_record_until_it_ends)
{
	struct jit_owner owner = {};
	uint64_t began, ended;
	siginfo_t info;
	pid_t pid;

	assert_int_equal(jit_owner__read(getpid(), &owner), 0);
	assert_int_equal(owner.pid, getpid());
	assert_int_equal(owner.own_pid, getpid());
	assert_int_equal(owner.uid, getuid());
	assert_int_equal(owner.euid, geteuid());
	assert_true(owner.start > 0 && owner.start <= monotonic_ns());
	/* 10 ms grain */
	began = monotonic_ns();
	pid = start_child();
	ended = monotonic_ns();
	assert_int_equal(jit_owner__read(pid, &owner), 0);
	assert_int_equal(owner.pid, pid);
	assert_in_range(owner.start, began - SECOND / 50, ended + SECOND / 50);
	/* ended, and still there */
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, pid, &info, WEXITED | WNOWAIT), 0);
	assert_true(jit_owner__read(pid, &owner) < 0);
	waitpid(pid, NULL, 0);
	assert_true(jit_owner__read(pid, &owner) < 0);
	assert_true(jit_owner__read(0x7fffffff, &owner) < 0);
	assert_true(jit_owner__read(-1, &owner) < 0);
}

static bool become_two_users(void)
{
	return !setresuid(NOBODY, NOBODY - 1, 0);
}

TEST(real_and_effective_users_are_distinguished)
{
	struct jit_owner owner;
	pid_t pid;

	if (geteuid()) {
		print_message("another user needs root\n");
		skip();
	}
	pid = start_child_as(become_two_users);
	assert_int_equal(jit_owner__read(pid, &owner), 0);
	assert_int_equal(owner.uid, NOBODY);
	assert_int_equal(owner.euid, NOBODY - 1);
	end_child(pid);
}

TEST(the_clock_offset_turns_monotonic_into_real_time)
{
	int64_t offset;
	bool known = false;

	for (int i = 0; i < 10 && !known; i++)
		known = jit_clock_offset(&offset);
	assert_true(known);
	assert_in_range(monotonic_ns() + offset, realtime_ns() - SECOND, realtime_ns() + SECOND);
}

/* ---- maps ------------------------------------------------------------------------------------ */

TEST(a_regular_map_of_the_process_is_followed)
{
	uint64_t began = monotonic_ns(), ended;
	struct jit_found found;

	write_text(map_path, "1000 10 f\n");
	ended = monotonic_ns();
	assert_int_equal(jit_find_map(&me, &found), 0);
	assert_int_equal(found.state, JIT_FILE_STATE_FOLLOWED);
	assert_string_equal(found.path, map_path);
	assert_int_equal(found.st.st_size, 10);
	assert_int_equal(found.st.st_uid, geteuid());
	/* files have the time of the last tick, which is late where an interrupt or a hypervisor keeps the CPU */
	assert_in_range(found.modified, began - SECOND / 2, ended + SECOND / 50);
	expect_content(found.fd, "1000 10 f\n");
}

TEST(a_missing_map_is_an_error)
{
	struct jit_owner owner = me;

	expect_none(&me);
	owner.own_pid = 0x7ffffffe;
	expect_none(&owner);
	owner.pid = 0x7fffffff;
	assert_true(jit_find_map(&owner, &(struct jit_found){}) < 0);
}

TEST(symbolic_links_are_refused)
{
	write_text(target_path, "secret");
	assert_int_equal(symlink(target_path, map_path), 0);
	expect_refusal(&me, JIT_FILE_STATE_LINK);
	unlink(map_path);
	assert_int_equal(symlink("/nowhere/at/all", map_path), 0);
	expect_refusal(&me, JIT_FILE_STATE_LINK);
	unlink(map_path);
	assert_int_equal(symlink(map_path, map_path), 0);
	expect_refusal(&me, JIT_FILE_STATE_LINK);
}

TEST(fifos_directories_and_devices_are_refused)
{
	assert_int_equal(mkfifo(map_path, 0666), 0);
	expect_refusal(&me, JIT_FILE_STATE_NOT_REGULAR);
	unlink(map_path);
	assert_int_equal(mkdir(map_path, 0700), 0);
	expect_refusal(&me, JIT_FILE_STATE_NOT_REGULAR);
	rmdir(map_path);
	if (geteuid())
		return;
	assert_int_equal(mknod(map_path, S_IFCHR | 0666, 0x0105), 0); /* /dev/zero */
	expect_refusal(&me, JIT_FILE_STATE_NOT_REGULAR);
}

/* As jit_owner__read() has it of a process of these users. */
static struct jit_owner as_user(uid_t uid, uid_t euid)
{
	struct jit_owner owner = me;

	owner.uid = owner.user = uid;
	owner.euid = euid;
	owner.rights = (struct jit_rights){.uid = uid, .gid = uid};
	return owner;
}

/* Of the process's user, real or effective. Root's files are root's. */
TEST(foreign_or_world_writable_maps_are_refused)
{
	struct jit_owner owner = as_user(NOBODY - 1, NOBODY - 1);

	write_text(map_path, "text");
	expect_refusal(&owner, JIT_FILE_STATE_FOREIGN);
	assert_int_equal(chmod(map_path, 0666), 0);
	expect_refusal(&me, JIT_FILE_STATE_WRITABLE);
	assert_int_equal(chmod(map_path, 0664), 0);
	expect_map(&me, JIT_FILE_STATE_FOLLOWED, "text");
	if (geteuid())
		return;
	assert_int_equal(chown(map_path, NOBODY, 0), 0);
	expect_refusal(&me, JIT_FILE_STATE_FOREIGN);
	expect_refusal(&owner, JIT_FILE_STATE_FOREIGN);
	owner = as_user(NOBODY, NOBODY - 1);
	expect_map(&owner, JIT_FILE_STATE_FOLLOWED, "text");
	owner = as_user(NOBODY, NOBODY);
	expect_map(&owner, JIT_FILE_STATE_FOLLOWED, "text");
	/* root of another user namespace, that has our root's uid */
	assert_int_equal(chown(map_path, 0, 0), 0);
	owner = me;
	owner.apart = true;
	expect_refusal(&owner, JIT_FILE_STATE_FOREIGN);
}

TEST(maps_that_their_process_may_not_read_are_refused)
{
	struct jit_owner owner = me;

	write_text(map_path, "text");
	if (geteuid()) {
		assert_int_equal(chmod(map_path, 0), 0);
		expect_refusal(&me, JIT_FILE_STATE_UNREADABLE);
		return;
	}
	expect_map(&me, JIT_FILE_STATE_FOLLOWED, "text");
	/* a setuid program: root's file, for a user without access; a hard link is enough */
	owner = as_user(NOBODY, 0);
	expect_refusal(&owner, JIT_FILE_STATE_UNREADABLE);
	assert_int_equal(chmod(map_path, 0644), 0);
	expect_map(&owner, JIT_FILE_STATE_FOLLOWED, "text");
	/* root without capabilities, as in a container, is an owner like any other */
	assert_int_equal(chmod(map_path, 0), 0);
	expect_map(&me, JIT_FILE_STATE_FOLLOWED, "text");
	owner = me;
	owner.rights.capabilities = 0;
	expect_refusal(&owner, JIT_FILE_STATE_UNREADABLE);
	/* and we have lost nothing by it */
	expect_map(&me, JIT_FILE_STATE_FOLLOWED, "text");
	/* by its group */
	assert_int_equal(chmod(map_path, 0640), 0);
	assert_int_equal(chown(map_path, 0, 4711), 0);
	owner = as_user(NOBODY, 0);
	expect_refusal(&owner, JIT_FILE_STATE_UNREADABLE);
	owner.rights.groups[owner.rights.group_count++] = 4711;
	expect_map(&owner, JIT_FILE_STATE_FOLLOWED, "text");
}

/* In a mount namespace of its own, a process can have any file under any name. */
TEST(a_file_mounted_over_a_map_is_refused)
{
	pid_t pid;
	int status;

	if (geteuid()) {
		print_message("mounting needs root\n");
		skip();
	}
	write_text(map_path, "");
	write_text(target_path, "secret");
	pid = fork();
	if (!pid) {
		struct jit_found found = {};

		if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount(target_path, map_path, NULL, MS_BIND, NULL))
			_exit(1);
		me.pid = getpid(); /* whose root it is; the name is still the parent's */
		if (jit_find_map(&me, &found) || found.fd >= 0)
			_exit(2);
		_exit(found.state == JIT_FILE_STATE_MOUNTED ? 0 : 3);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	unlink(target_path);
}

/* Regular files, to look at. */
TEST(files_of_procfs_are_refused)
{
	struct jit_found found = {};

	assert_int_equal(jit_open_dump(&me, "/proc/version", 0, 1, &found), 0);
	assert_int_equal(found.state, JIT_FILE_STATE_NO_DATA);
	assert_int_equal(found.fd, -1);
}

static bool write_own(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool good = fd >= 0 && !write_full(fd, text, strlen(text));

	close(fd);
	return good;
}

/* A user namespace in which we are root. */
static bool enter_namespace(uid_t uid, gid_t gid)
{
	char uids[32], gids[32];

	snprintf(uids, sizeof(uids), "0 %u 1", uid);
	snprintf(gids, sizeof(gids), "0 %u 1", gid);
	return !unshare(CLONE_NEWUSER) && write_own("/proc/self/setgroups", "deny") &&
	       write_own("/proc/self/uid_map", uids) && write_own("/proc/self/gid_map", gids);
}

static bool enter_two_namespaces(void)
{
	return (geteuid() || !setresuid(NOBODY, NOBODY, NOBODY)) && !prctl(PR_SET_DUMPABLE, 1) &&
	       enter_namespace(geteuid(), getegid()) && enter_namespace(0, 0);
}

TEST(the_creator_of_a_user_namespace_owns_its_processes)
{
	struct jit_owner owner;
	pid_t pid;

	assert_int_equal(jit_owner__read(getpid(), &owner), 0);
	assert_false(owner.apart);
	assert_int_equal(owner.user, getuid());
	pid = start_child_as(enter_two_namespaces);
	if (!pid) {
		print_message("no user namespaces here\n");
		skip();
	}
	assert_int_equal(jit_owner__read(pid, &owner), 0);
	assert_true(owner.apart);
	assert_int_equal(owner.user, geteuid() ? geteuid() : NOBODY);
	assert_int_equal(owner.rights.capabilities, 0);
	assert_int_equal(jit_owner__refresh(&owner), 0);
	assert_true(jit_owner__is_same(&owner, &owner));
	assert_false(jit_owner__is_same(&owner, &me));
	end_child(pid);
	assert_int_equal(jit_owner__refresh(&owner), -ESRCH);
}

static void set_modified(uint64_t monotonic)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}};
	int64_t real, offset = (int64_t)(realtime_ns() - monotonic_ns());

	real = (int64_t)monotonic + offset;
	times[1] = (struct timespec){.tv_sec = real / SECOND, .tv_nsec = real % SECOND};
	assert_int_equal(utimensat(AT_FDCWD, map_path, times, 0), 0);
}

/* It was some earlier process's; the clocks may differ a little. */
TEST(a_map_older_than_its_process_is_outdated)
{
	static const struct timespec EPOCH[2];
	struct jit_owner owner = me;
	struct jit_found found;

	write_text(map_path, "text");
	set_modified(me.start - SECOND / 2);
	expect_map(&me, JIT_FILE_STATE_FOLLOWED, "text");
	set_modified(me.start - 3 * SECOND / 2);
	expect_map(&me, JIT_FILE_STATE_OUTDATED, "text");
	assert_int_equal(utimensat(AT_FDCWD, map_path, EPOCH, 0), 0);
	assert_int_equal(jit_find_map(&me, &found), 0);
	assert_int_equal(found.state, JIT_FILE_STATE_OUTDATED);
	assert_int_equal(found.modified, 0);
	close(found.fd);
	owner.start = 0; /* unknown */
	expect_map(&owner, JIT_FILE_STATE_FOLLOWED, "text");
}

TEST(a_map_of_the_inner_pid_comes_first)
{
	struct jit_owner owner = me;
	struct jit_found found;
	char path[64];
	pid_t pid;

	pid = start_child();
	end_child(pid); /* of no process now */
	owner.own_pid = pid;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
	unlink(path);
	write_text(map_path, "by our number");
	expect_map(&owner, JIT_FILE_STATE_FOLLOWED, "by our number");
	write_text(path, "by its own");
	assert_int_equal(jit_find_map(&owner, &found), 0);
	unlink(path);
	assert_int_equal(found.state, JIT_FILE_STATE_FOLLOWED);
	assert_string_equal(found.path, path);
	expect_content(found.fd, "by its own");
}

/* A process that has another's number for its own. */
static struct jit_owner read_as(pid_t pid, pid_t number)
{
	struct jit_owner owner;

	assert_int_equal(jit_owner__read(pid, &owner), 0);
	owner.own_pid = number;
	return owner;
}

/* But not where another process has that number in the same /tmp, unless it has the file open. */
TEST(a_map_named_after_another_process_must_be_open)
{
	pid_t number = start_child(), without = start_child(), with;
	struct jit_owner owner;
	struct jit_found found = {}, none = {};
	char path[64];
	int fd, err, no_err;

	/* a former process of that number may have left one */
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", without);
	unlink(path);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", number);
	write_text(path, "whose?");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	with = start_child();
	close(fd);
	owner = read_as(without, number);
	no_err = jit_find_map(&owner, &none);
	owner = read_as(with, number);
	err = jit_find_map(&owner, &found);
	unlink(path);
	end_child(number);
	end_child(without);
	end_child(with);
	assert_int_equal(no_err, -ENOENT);
	assert_int_equal(none.fd, -1);
	assert_int_equal(err, 0);
	assert_int_equal(found.state, JIT_FILE_STATE_FOLLOWED);
	expect_content(found.fd, "whose?");
}

/* … which has more open files than are searched. */
TEST(too_many_open_files_leave_a_map_unopened)
{
	enum { MANY = 4200 };
	const struct rlimit files = {MANY + 100, MANY + 100};
	pid_t number = start_child(), with;
	struct jit_found found = {};
	struct jit_owner owner;
	struct rlimit before;
	char path[64];
	int err, any, first, last;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	if (setrlimit(RLIMIT_NOFILE, &files)) {
		print_message("more open files need root\n");
		end_child(number);
		skip();
	}
	any = open("/dev/null", O_RDONLY | O_CLOEXEC);
	first = fcntl(any, F_DUPFD_CLOEXEC, 50);
	for (last = first; last < MANY;)
		last = fcntl(any, F_DUPFD_CLOEXEC, last);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", number);
	write_text(path, "whose?");
	with = start_child();
	close_range(first, last, 0);
	close(any);
	setrlimit(RLIMIT_NOFILE, &before);
	owner = read_as(with, number);
	err = jit_find_map(&owner, &found);
	unlink(path);
	end_child(number);
	end_child(with);
	assert_int_equal(err, 0);
	assert_int_equal(found.state, JIT_FILE_STATE_TOO_MANY_OPEN);
	assert_int_equal(found.fd, -1);
}

/* ---- dumps ----------------------------------------------------------------------------------- */

static void *map_dump(size_t size)
{
	int fd = open(dump_path, O_RDONLY | O_CLOEXEC);
	void *map = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	assert_true(fd >= 0 && map != MAP_FAILED);
	close(fd);
	return map;
}

TEST(a_dump_is_opened_whether_mapped_or_not)
{
	size_t page = sysconf(_SC_PAGESIZE);
	struct jit_found found;
	uint64_t start;
	void *map;

	write_text(dump_path, "dump");
	map = map_dump(page);
	start = (uintptr_t)map;
	assert_int_equal(jit_open_dump(&me, dump_path, start, start + page, &found), 0);
	assert_int_equal(found.state, JIT_FILE_STATE_FOLLOWED);
	assert_string_equal(found.path, dump_path);
	assert_int_equal(found.st.st_size, 4);
	expect_content(found.fd, "dump");
	/* another file has the name: what is mapped counts, if that may be opened; later, the name */
	write_text(dump_path, "other dump");
	if (!geteuid()) {
		assert_int_equal(jit_open_dump(&me, dump_path, start, start + page, &found), 0);
		expect_content(found.fd, "dump");
	}
	munmap(map, page);
	assert_int_equal(jit_open_dump(&me, dump_path, start, start + page, &found), 0);
	assert_int_equal(found.st.st_size, strlen("other dump"));
	expect_content(found.fd, "other dump");
	assert_int_equal(unlink(dump_path), 0);
	assert_int_equal(jit_open_dump(&me, dump_path, start, start + page, &found), -ENOENT);
	assert_int_equal(found.fd, -1);
	assert_int_equal(symlink("/etc/passwd", dump_path), 0);
	assert_int_equal(jit_open_dump(&me, dump_path, start, start + page, &found), 0);
	assert_int_equal(found.state, JIT_FILE_STATE_LINK);
	assert_int_equal(found.fd, -1);
}

TEST(a_deleted_dump_is_opened_by_its_mapping)
{
	size_t page = sysconf(_SC_PAGESIZE);
	struct jit_found found;
	uint64_t start;
	char path[80];
	void *map;

	if (geteuid()) {
		print_message("map_files needs root\n");
		skip();
	}
	write_text(dump_path, "dump");
	map = map_dump(page);
	start = (uintptr_t)map;
	assert_int_equal(unlink(dump_path), 0);
	snprintf(path, sizeof(path), "%s (deleted)", dump_path);
	assert_int_equal(jit_open_dump(&me, path, start, start + page, &found), 0);
	assert_int_equal(found.state, JIT_FILE_STATE_FOLLOWED);
	assert_string_equal(found.path, path);
	expect_content(found.fd, "dump");
	munmap(map, page);
}

EACH_TEST_WITH(begin, remove_files);
