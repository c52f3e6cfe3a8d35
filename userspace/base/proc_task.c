/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines of /proc, whatever names processes chose: the comm in stat ends at the last ')', and a path
 * in maps may have any byte but NUL; the kernel escapes only the newline, as "\012".
 */
#include "base/proc_task.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/io.h"
#include "base/parse.h"

#define SMALL_FILE 4096u

/* /proc has start times in ticks of 10 ms, converted from another clock. */
#define BIRTH_SLACK_NS 100000000ull

/* ---- texts ----------------------------------------------------------------------------------- */

/* A decimal number, perhaps with a sign, and the spaces after it. */
static bool take_number(const char **at, const char *end, int64_t *value)
{
	bool negative = *at < end && **at == '-';
	uint64_t number = 0;
	const char *p = *at + negative;
	const char *first = p;

	for (; p < end && *p >= '0' && *p <= '9'; p++) {
		if (__builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, (uint64_t)(*p - '0'), &number))
			return false;
	}
	if (p == first)
		return false;
	while (p < end && (*p == ' ' || *p == '\n'))
		p++;
	*at = p;
	*value = negative ? (int64_t)(0 - number) : (int64_t)number;
	return true;
}

/* pid (comm) state ppid … flags … utime stime … threads … start: proc(5) has the numbers */
int proc_parse_stat(const char *text, size_t size, struct proc_stat *stat)
{
	const char *open = memchr(text, '(', size);
	const char *close = memrchr(text, ')', size);
	const char *at, *end = text + size;
	int64_t fields[23] = {};
	size_t length;

	if (!open || !close || close < open || end - close < 4 || close[1] != ' ' ||
	    close[3] != ' ')
		return -EBADMSG;
	at = close + 4;
	for (unsigned int field = 4; field <= 22; field++) {
		if (!take_number(&at, end, &fields[field]))
			return -EBADMSG;
	}
	if (fields[4] < 0 || fields[4] > INT_MAX)
		return -EBADMSG;
	length = close - open - 1;
	if (length >= sizeof(stat->comm))
		length = sizeof(stat->comm) - 1;
	memcpy(stat->comm, open + 1, length);
	stat->comm[length] = '\0';
	stat->state = close[2];
	stat->ppid = fields[4];
	stat->flags = fields[9];
	stat->cpu_ticks = fields[14] + fields[15];
	stat->waited_ticks = fields[16] + fields[17];
	stat->threads = fields[20];
	stat->start_ticks = fields[22];
	return 0;
}

int proc_parse_number(const char *text, size_t size, uint64_t *number)
{
	int64_t value;

	if (!take_number(&text, text + size, &value) || value < 0)
		return -EBADMSG;
	*number = value;
	return 0;
}

static bool take_hex(const char **at, uint64_t *value, char then)
{
	return !parse_hex(at, value) && *(*at)++ == then;
}

/* "rwxp": false for anything else */
static bool take_permissions(const char **at, struct proc_mapping *mapping)
{
	const char *p = *at;

	if (strnlen(p, 5) < 5 || p[4] != ' ')
		return false;
	mapping->protection = (p[0] == 'r' ? PROT_READ : 0) | (p[1] == 'w' ? PROT_WRITE : 0) |
			      (p[2] == 'x' ? PROT_EXEC : 0);
	mapping->map_flags = p[3] == 's' ? MAP_SHARED : MAP_PRIVATE;
	*at += 5;
	return true;
}

/* In place; the new length. */
static size_t decode_newlines(char *path, bool *found)
{
	static const char escape[] = "\\012";
	char *to = path;

	*found = false;
	for (const char *from = path; *from; to++) {
		if (strncmp(from, escape, sizeof(escape) - 1)) {
			*to = *from++;
			continue;
		}
		*to = '\n';
		from += sizeof(escape) - 1;
		*found = true;
	}
	*to = '\0';
	return to - path;
}

int proc_parse_mapping(char *line, size_t size, struct proc_mapping *mapping)
{
	struct proc_mapping m = {};
	const char *at = line;
	uint64_t major, minor;
	int64_t inode;

	line[size] = '\0';
	if (!take_hex(&at, &m.start, '-') || !take_hex(&at, &m.end, ' ') || m.end <= m.start ||
	    !take_permissions(&at, &m) || !take_hex(&at, &m.offset, ' ') ||
	    !take_hex(&at, &major, ':') || !take_hex(&at, &minor, ' ') || major > UINT32_MAX ||
	    minor > UINT32_MAX || !take_number(&at, line + size, &inode))
		return -EBADMSG;
	m.major = major;
	m.minor = minor;
	m.inode = inode;
	m.path = at;
	m.path_size = decode_newlines(line + (at - line), &m.newline);
	*mapping = m;
	return 0;
}

/* Is `word` among the words of a list that commas divide? */
static bool has_word(const char *list, size_t size, const char *word)
{
	size_t length = strlen(word);

	while (size) {
		const char *comma = memchr(list, ',', size);
		size_t here = comma ? (size_t)(comma - list) : size;

		if (here == length && !memcmp(list, word, length))
			return true;
		size -= comma ? here + 1 : here;
		list += comma ? here + 1 : here;
	}
	return false;
}

/* The rank of a line's hierarchy; 0: ignored. */
static int rank_of_hierarchy(const char *controllers, size_t size, bool is_root)
{
	if (is_root)
		return 1;
	if (!size)
		return 4;
	if (has_word(controllers, size, "cpu"))
		return 3;
	return has_word(controllers, size, "name=systemd") ? 2 : 0;
}

static size_t size_without_deleted(const char *path, size_t size)
{
	static const char DELETED[] = " (deleted)";
	size_t suffix = sizeof(DELETED) - 1;

	return size > suffix && !memcmp(path + size - suffix, DELETED, suffix) ? size - suffix
									       : size;
}

/* Lines "number:controllers:path"; a path has no newline, and any other byte. */
const char *proc_parse_cgroup(const char *text, size_t size, size_t *path_size)
{
	const char *best = NULL, *newline;
	size_t length = 0;
	int best_rank = 0;

	for (; (newline = memchr(text, '\n', size));
	     size -= newline + 1 - text, text = newline + 1) {
		const char *first = memchr(text, ':', newline - text);
		const char *second = first ? memchr(first + 1, ':', newline - first - 1) : NULL;
		const char *path = second ? second + 1 : newline;
		int rank;

		if (path == newline || *path != '/')
			continue;
		rank = rank_of_hierarchy(first + 1, second - first - 1, newline - path == 1);
		if (rank <= best_rank)
			continue;
		best_rank = rank;
		best = path;
		length = newline - path;
	}
	*path_size = size_without_deleted(best, length);
	return best;
}

static bool starts_with(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

size_t mapping_path_length(const char *path)
{
	return size_without_deleted(path, strlen(path));
}

bool mapping_is_deleted(const char *path)
{
	return path[mapping_path_length(path)];
}

bool mapping_is_run_time_code(const char *path, bool has_build_id, bool has_file)
{
	static const char *const prefixes[] = {
		MAPPING_ANONYMOUS, "[heap]",	  "[stack", "[anon",
		"/dev/zero",	   "anon_inode:", "/SYSV",  "/anon_hugepage",
	};

	if (!*path)
		return true;
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
		if (starts_with(path, prefixes[i]))
			return true;
	if (has_build_id)
		return false;
	return starts_with(path, "/memfd:") || (mapping_is_deleted(path) && !has_file);
}

/* ---- a process or thread --------------------------------------------------------------------- */

uint64_t proc_suspended_ns(void)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 3; i++) { /* being interrupted between the clocks makes it larger */
		uint64_t monotonic = monotonic_ns();
		uint64_t suspended = boottime_ns() - monotonic;

		if (suspended < best)
			best = suspended;
	}
	return best;
}

struct proc_path proc_path(pid_t pid, const char *name)
{
	struct proc_path path;

	snprintf(path.text, sizeof(path.text), "/proc/%d/%s", pid, name);
	return path;
}

ssize_t proc_read_small(int dir, const char *path, char *buffer, size_t size)
{
	_cleanup_close_ int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : read_full(fd, buffer, size);
}

int proc_read_stat(int dir, const char *path, struct proc_stat *stat)
{
	char text[SMALL_FILE];
	ssize_t size = proc_read_small(dir, path, text, sizeof(text));

	return size < 0 ? size : proc_parse_stat(text, size, stat);
}

int proc_stat_of(pid_t pid, struct proc_stat *stat)
{
	int err = proc_read_stat(AT_FDCWD, proc_path(pid, "stat").text, stat);

	return err == -ENOENT ? -ESRCH : err;
}

int proc_open_process(int proc_fd, pid_t pid)
{
	char name[16];
	int fd;

	snprintf(name, sizeof(name), "%d", pid);
	fd = openat(proc_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

uint64_t proc_start_time(uint64_t ticks, uint64_t tick_ns, uint64_t suspended)
{
	uint64_t since_boot;

	if (__builtin_mul_overflow(ticks, tick_ns, &since_boot))
		return 0;
	return since_boot > suspended ? since_boot - suspended : 0;
}

bool proc_stat__is_dead(const struct proc_stat *stat)
{
	return stat->state == 'Z' || stat->state == 'X' || stat->state == 'x';
}

/*
 * The 15 bytes that perf calls a thread. For a kernel worker stat appends its current work
 * ("kworker/0:1-events"), which changes and is no part of the name.
 */
void proc_stat__comm(const struct proc_stat *stat, char comm[PROC_COMM_SIZE])
{
	size_t length = strnlen(stat->comm, sizeof(stat->comm));

	if ((stat->flags & PROC_FLAG_KTHREAD) && !strncmp(stat->comm, "kworker/", 8) &&
	    strncmp(stat->comm, "kworker/R-", 10))
		length = strcspn(stat->comm, "+-");
	if (length > PROC_COMM_SIZE - 1)
		length = PROC_COMM_SIZE - 1;
	memset(comm, 0, PROC_COMM_SIZE);
	memcpy(comm, stat->comm, length);
}

int proc_status_number(int dir, const char *path, const char *field, uint64_t *number)
{
	_cleanup_close_ int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	char text[SMALL_FILE + 1];
	ssize_t size = fd < 0 ? -1 : read(fd, text, SMALL_FILE); /* once: the first 4 KB */
	const char *at;

	if (size < 0)
		return -errno;
	text[size] = '\0';
	at = strstr(text, field);
	if (!at)
		return -ESRCH;
	at += strlen(field);
	at += strspn(at, " \t");
	return proc_parse_number(at, text + size - at, number);
}

int proc_status_of(pid_t pid, const char *field, uint64_t *number)
{
	int err = proc_status_number(AT_FDCWD, proc_path(pid, "status").text, field, number);

	return err == -ENOENT ? -ESRCH : err;
}

uint64_t proc_run_delay(pid_t tid)
{
	struct proc_path path = proc_path(tid, "schedstat");
	unsigned long long delay;
	char line[128];

	if (read_line(path.text, line, sizeof(line)) || sscanf(line, "%*u %llu", &delay) != 1)
		return 0;
	return delay;
}

int proc_real_uid(pid_t pid, uid_t *uid)
{
	uint64_t number;
	int err = proc_status_of(pid, "\nUid:", &number);

	if (!err)
		*uid = (uid_t)number;
	return err;
}

bool proc_same_birth(uint64_t a, uint64_t b)
{
	return a && b && (a > b ? a - b : b - a) < BIRTH_SLACK_NS;
}

/* A process that /proc does not show may exist all the same. */
static enum proc_state hidden_or_none(pid_t pid)
{
	_cleanup_close_ int fd = syscall(SYS_pidfd_open, pid, 0);

	/* of a thread that leads no process: EINVAL, in later kernels ENOENT */
	return fd >= 0 || errno == EINVAL || errno == ENOENT ? PROC_HIDDEN : PROC_NONE;
}

enum proc_state proc_process_state(pid_t pid, struct proc_identity *identity)
{
	_cleanup_close_ int proc = -1, dir = -1;
	struct proc_stat stat;
	uint64_t tgid;

	if (pid <= 0)
		return PROC_NONE;
	proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0)
		return hidden_or_none(pid);
	dir = proc_open_process(proc, pid);
	if (dir < 0 || proc_read_stat(dir, "stat", &stat))
		return hidden_or_none(pid);
	if (identity) {
		identity->tgid = pid;
		if (!proc_status_number(dir, "status", "\nTgid:", &tgid) && tgid && tgid <= INT_MAX)
			identity->tgid = tgid;
		identity->ppid = stat.ppid;
		identity->start_time = proc_start_time(stat.start_ticks,
						       NS_PER_SECOND / sysconf(_SC_CLK_TCK),
						       proc_suspended_ns());
		proc_stat__comm(&stat, identity->comm);
	}
	if (stat.flags & PROC_FLAG_KTHREAD)
		return PROC_KERNEL;
	return proc_stat__is_dead(&stat) && stat.threads <= 1 ? PROC_ZOMBIE : PROC_ALIVE;
}

/* ---- time namespaces ------------------------------------------------------------------------- */

#define FIRST_TIME_NAMESPACE "time:[4026531834]" /* on every kernel */
#define LINK_SIZE	     64

/* False: it cannot be read. */
static bool read_time_namespace(int dir, const char *name, char link[LINK_SIZE])
{
	ssize_t size = readlinkat(dir, name, link, LINK_SIZE - 1);

	link[size < 0 ? 0 : size] = '\0';
	return size > 0;
}

static bool parse_offsets(const char *text, int64_t *ahead)
{
	long long seconds, nanoseconds;

	if (sscanf(text, "monotonic %lld %lld", &seconds, &nanoseconds) != 2)
		return false;
	return !__builtin_mul_overflow(seconds, NS_PER_SECOND, ahead) &&
	       !__builtin_add_overflow(*ahead, nanoseconds, ahead);
}

/*
 * timens_offsets has the offsets of the namespace of the process's children. That is not its own
 * one between unshare() and exec.
 */
int proc_clock_ahead(pid_t pid, int64_t *ahead)
{
	_cleanup_close_ int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int dir = proc < 0 ? -1 : proc_open_process(proc, pid);
	char own[LINK_SIZE], childrens[LINK_SIZE], text[SMALL_FILE];
	ssize_t size;

	*ahead = 0;
	if (dir < 0)
		return -ESRCH;
	size = proc_read_small(dir, "timens_offsets", text, sizeof(text) - 1);
	if (size == -ENOENT) /* the kernel has no time namespaces */
		return 0;
	if (size <= 0 || !read_time_namespace(dir, "ns/time", own))
		return -ENODATA;
	if (!strcmp(own, FIRST_TIME_NAMESPACE))
		return 0;
	text[size] = '\0';
	if (!read_time_namespace(dir, "ns/time_for_children", childrens) ||
	    strcmp(own, childrens) || !parse_offsets(text, ahead)) {
		*ahead = 0;
		return -ENODATA;
	}
	return 0;
}
