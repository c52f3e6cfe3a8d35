/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines of /proc, whatever names their processes chose: the comm in stat is found by the last ')',
 * and a path in maps may hold anything but NUL, of which the kernel escapes the newline alone, as "\012".
 */
#include "base/proc_parse.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "base/parse.h"

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

/* How much the hierarchy of a line counts; 0: not at all. */
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

/* Lines "number:controllers:path"; a path has no newline, and any other byte. */
const char *proc_parse_cgroup(const char *text, size_t size, size_t *path_size)
{
	static const char deleted[] = " (deleted)";
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
	if (length > strlen(deleted) &&
	    !memcmp(best + length - strlen(deleted), deleted, strlen(deleted)))
		length -= strlen(deleted);
	*path_size = length;
	return best;
}

static bool starts_with(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

size_t mapping_path_length(const char *path)
{
	static const char DELETED[] = " (deleted)";
	size_t length = strlen(path), suffix = sizeof(DELETED) - 1;

	if (length > suffix && !strcmp(path + length - suffix, DELETED))
		return length - suffix;
	return length;
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
