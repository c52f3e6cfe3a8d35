/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * /proc/kallsyms, filtered while it is read: about 8 MB, of which code symbols are two thirds.
 * The kernel returns a page at a time.
 */
#include "live/proc/kernel_snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hashmap.h"
#include "base/io.h"
#include "base/log.h"
#include "base/minmax.h"
#include "stream/kallsyms_pieces.h"

#define LINE_MAX_READ (64u * 1024) /* no line of ours is that long */

/* A line_fn. */
static int take_line(void *context, char *line, size_t length)
{
	return kallsyms_pieces__add(context, line, length + 1); /* with its newline */
}

int kernel_snapshot__kallsyms_fd(int fd, uint64_t time, event_push_fn push, void *context)
{
	struct kallsyms_pieces pieces;
	int err = kallsyms_pieces__init(&pieces, time, push, context)
			  ?: read_lines(fd, LINE_MAX_READ, take_line, &pieces);

	if (!err)
		err = kallsyms_pieces__end(&pieces);
	kallsyms_pieces__fini(&pieces);
	return err;
}

int kernel_snapshot__modules_fd(int fd, uint64_t time, event_push_fn push, void *context)
{
	struct kallsyms_pieces pieces;
	int err = kallsyms_pieces__init(&pieces, time, push, context);

	pieces.modules = true;
	if (!err)
		err = read_lines(fd, LINE_MAX_READ, take_line, &pieces);
	if (!err)
		err = pieces.seen_address ? kallsyms_pieces__end(&pieces) : 1;
	kallsyms_pieces__fini(&pieces);
	return err;
}

int kernel_snapshot__kallsyms(uint64_t time, event_push_fn push, void *context)
{
	_cleanup_close_ int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : kernel_snapshot__kallsyms_fd(fd, time, push, context);
}

#define LIST_MAX (4u << 20) /* bytes */

/* "NAME SIZE USERS USED_BY STATE ADDRESS" without USERS, USED_BY, STATE: they change alone. */
static uint64_t hash_line(uint64_t hash, const char *line)
{
	for (int field = 0; *line && *line != '\n'; field++) {
		size_t size = strcspn(line, " \n");

		if (field <= 1 || field == 5)
			hash = hash_combine(hash, hash_bytes(line, size));
		line += size;
		line += *line == ' ';
	}
	return hash;
}

/* 0: there is no list, as in a kernel without modules. */
static uint64_t hash_modules(const struct kernel_modules *m)
{
	_cleanup_free_ char *text = NULL;
	uint64_t hash = 1;
	size_t size;

	if (read_file_at(AT_FDCWD, m->list, LIST_MAX, &text, &size))
		return 0;
	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		hash = hash_line(hash, line);
	}
	return hash | 1;
}

void kernel_modules__init(struct kernel_modules *m, uint64_t now)
{
	*m = (struct kernel_modules){
		.list = "/proc/modules",
		.symbols = "/proc/kallsyms",
		.interval = KERNEL_MODULES_INTERVAL,
		.next = now + KERNEL_MODULES_INTERVAL,
		.looked = now,
	};
	m->loaded = hash_modules(m);
}

void kernel_modules__want(struct kernel_modules *m)
{
	m->wanted = true;
}

static int read_symbols(struct kernel_modules *m, uint64_t now, event_push_fn push, void *context)
{
	_cleanup_close_ int fd = open(m->symbols, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? 1 : kernel_snapshot__modules_fd(fd, now, push, context);
}

/* Have modules come or gone? */
static bool have_changed(struct kernel_modules *m, uint64_t now)
{
	uint64_t before = m->loaded;

	if (now < m->looked + KERNEL_MODULES_INTERVAL)
		return false;
	m->looked = now;
	m->loaded = hash_modules(m);
	return m->loaded != before;
}

int kernel_modules__look(struct kernel_modules *m, uint64_t now, event_push_fn push, void *context)
{
	bool changed = have_changed(m, now);
	int err;

	if (!changed && !(m->wanted && now >= m->next))
		return 0;
	m->interval = changed ? KERNEL_MODULES_INTERVAL
			      : min_u64(2 * m->interval, KERNEL_MODULES_INTERVAL_MAX);
	m->next = now + m->interval;
	m->wanted = false;
	m->readings++;
	err = read_symbols(m, now, push, context);
	log_debug(LOG_PROCFS, "symbols of the kernel's modules: read again, since %s%s",
		  changed ? "modules have come or gone" : "addresses have no names",
		  err > 0 ? ": they are hidden" : "");
	return err < 0 ? err : 0;
}
