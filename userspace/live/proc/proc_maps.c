/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * maps may have 65,530 lines and more, and is read in pieces. A reader's answer has the mappings in
 * a file in memory: records, each followed by its path.
 */
#include "live/proc/proc_maps.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/io.h"
#include "base/minmax.h"
#include "base/vec.h"
#include "live/proc/exec_name.h"
#include "tenants/owner.h"

#define MAPS_LINE_MAX (1u << 20)
#define THREADS_TRIED 4096
#define ANSWER_MAX    (64u << 20) /* bytes of all records */

/* ---- the text -------------------------------------------------------------------------------- */

struct maps_text {
	int dir;
	char link[PATH_MAX + 1];
	maps_line_fn take;
	void *context;
	struct proc_maps_result *result;
};

/* Make the path exact. Only "\012" is ambiguous in the text of maps. */
static void make_exact(struct maps_text *t, struct proc_mapping *mapping)
{
	char name[96];
	ssize_t got;

	if (!mapping->newline)
		return;
	snprintf(name, sizeof(name), "map_files/%llx-%llx", (unsigned long long)mapping->start,
		 (unsigned long long)mapping->end);
	got = readlinkat(t->dir, name, t->link, sizeof(t->link));
	if (got <= 0 || (size_t)got == sizeof(t->link))
		return;
	t->link[got] = '\0';
	mapping->path = t->link;
	mapping->path_size = got;
}

/* A line_fn. */
static int take_line(void *context, char *line, size_t size)
{
	struct maps_text *t = context;
	struct proc_mapping mapping;
	int err;

	t->result->lines++;
	if (proc_parse_mapping(line, size, &mapping) || !(mapping.protection & PROT_EXEC))
		return 0;
	make_exact(t, &mapping);
	err = t->take(t->context, &mapping);
	t->result->sink_failed = err != 0;
	return err;
}

static int read_text(struct maps_text *t, const char *path)
{
	_cleanup_close_ int fd = openat(t->dir, path, O_RDONLY | O_CLOEXEC);
	int err;

	if (fd < 0)
		return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -errno : 0;
	err = read_lines(fd, MAPS_LINE_MAX, take_line, t);
	return t->result->sink_failed || err == -ENOMEM ? err : 0;
}

/* Read the maps of the first thread that has any. */
static int read_threads(struct maps_text *t, pid_t *tid)
{
	_cleanup_closedir_ DIR *tasks = open_names(t->dir, "task");
	struct dirent *entry;
	int err = 0;

	for (int i = 0; tasks && i < THREADS_TRIED && !err && !t->result->lines; i++) {
		char path[64];

		entry = readdir(tasks);
		if (!entry)
			break;
		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		*tid = (pid_t)strtol(entry->d_name, NULL, 10);
		snprintf(path, sizeof(path), "task/%d/maps", *tid);
		err = read_text(t, path);
	}
	return err;
}

int proc_maps__read(int dir, pid_t pid, pid_t *tid, maps_line_fn take, void *context,
		    struct proc_maps_result *result)
{
	struct maps_text text = {.dir = dir, .take = take, .context = context, .result = result};
	int err;

	*result = (struct proc_maps_result){};
	*tid = pid;
	result->began = monotonic_ns();
	exec_name__read(dir, result->name);
	err = read_text(&text, "maps");
	if (!err && !result->lines)
		err = read_threads(&text, tid);
	result->ended = monotonic_ns();
	return err;
}

/* ---- between processes ----------------------------------------------------------------------- */

struct maps_question {
	int32_t pid;
};

struct maps_answer {
	int32_t err, tid;
	uint64_t lines, size; /* bytes of the records */
	uint64_t began, ended;
	char name[PROC_COMM_SIZE];
};

/* Followed by its path. */
struct maps_record {
	struct proc_mapping mapping;
	size_t size; /* with the path, a multiple of 8 */
};

typedef VEC(char) byte_vec;

/* A maps_line_fn. */
static int add_record(void *context, const struct proc_mapping *mapping)
{
	byte_vec *bytes = context;
	struct maps_record record = {
		.mapping = *mapping,
		.size = (sizeof(record) + mapping->path_size + 1 + 7) & ~7ul,
	};

	if (bytes->count + record.size > ANSWER_MAX)
		return -EFBIG;
	if (vec_reserve(bytes, bytes->count + record.size))
		return -ENOMEM;
	memset(bytes->data + bytes->count, 0, record.size);
	memcpy(bytes->data + bytes->count, &record, sizeof(record));
	memcpy(bytes->data + bytes->count + sizeof(record), mapping->path, mapping->path_size);
	bytes->count += record.size;
	return 0;
}

void proc_maps__serve(struct helper_job *job)
{
	const struct maps_question *question = job->request;
	struct maps_answer *answer = job->answer;
	struct proc_maps_result result = {};
	byte_vec bytes = {};
	pid_t tid = 0;
	int fd;

	job->answer_size = sizeof(*answer);
	if (job->request_size != sizeof(*question) || job->fd_count != 1) {
		answer->err = -EPROTO;
		return;
	}
	answer->err = proc_maps__read(job->fds[0], question->pid, &tid, add_record, &bytes,
				      &result);
	if (answer->err == -EFBIG) { /* what there was room for: not all lines were read */
		answer->err = 0;
		result.lines = 0;
	}
	answer->tid = tid;
	answer->began = result.began;
	answer->ended = result.ended;
	memcpy(answer->name, result.name, sizeof(answer->name));
	fd = bytes.count ? memory_with("sysprof-maps", bytes.data, bytes.count) : -1;
	if (fd >= 0) {
		answer->size = bytes.count;
		job->answer_fds[job->answer_fd_count++] = fd;
	}
	answer->lines = bytes.count && fd < 0 ? 0 : result.lines;
	vec_free(&bytes);
}

int proc_maps__request(struct helper_pool *pool, unsigned int service, pid_t pid, int dir,
		       helper_answer_fn answer, void *context)
{
	const struct maps_question question = {.pid = pid};
	const struct helper_request request = {
		.service = service,
		.owner = helper_owner(pid),
		.holds = true,
		.data = &question,
		.size = sizeof(question),
		.fds = &dir,
		.fd_count = 1,
		.answer = answer,
		.context = context,
	};

	return helper_pool__request(pool, &request);
}

/* The record there, if it is valid. */
static bool get_record(const char *bytes, size_t left, struct maps_record *record)
{
	if (left < sizeof(*record))
		return false;
	memcpy(record, bytes, sizeof(*record));
	return record->size <= left && record->size > sizeof(*record) && record->size % 8 == 0 &&
	       record->mapping.path_size < record->size - sizeof(*record) &&
	       bytes[sizeof(*record) + record->mapping.path_size] == '\0';
}

static int take_records(const char *bytes, size_t size, maps_line_fn take, void *context,
			struct proc_maps_result *result)
{
	struct maps_record record;
	int err = 0;

	for (size_t at = 0; !err && get_record(bytes + at, size - at, &record); at += record.size) {
		record.mapping.path = bytes + at + sizeof(record);
		if (record.mapping.end <= record.mapping.start)
			continue;
		err = take(context, &record.mapping);
		result->sink_failed = err != 0;
	}
	return err;
}

int proc_maps__take(const struct helper_answer *from, uint64_t requested, pid_t *tid,
		    maps_line_fn take, void *context, struct proc_maps_result *result)
{
	_cleanup_free_ char *bytes = NULL;
	struct maps_answer answer;

	*result = (struct proc_maps_result){};
	if (from->refusal || from->size != sizeof(answer))
		return 0;
	memcpy(&answer, from->data, sizeof(answer));
	snprintf(result->name, sizeof(result->name), "%.*s", PROC_COMM_SIZE - 1, answer.name);
	/* whatever a reader says */
	result->ended = max_u64(min_u64(answer.ended, monotonic_ns()), requested);
	result->began = max_u64(min_u64(answer.began, result->ended), requested);
	if (!answer.err && !answer.size)
		result->lines = answer.lines;
	if (answer.err || !answer.size || answer.size > ANSWER_MAX || !from->fd_count)
		return answer.err;
	bytes = malloc(answer.size);
	if (!bytes)
		return -ENOMEM;
	if (pread_full(from->fds[0], bytes, answer.size, 0) != (ssize_t)answer.size)
		return 0;
	*tid = answer.tid;
	result->lines = answer.lines;
	return take_records(bytes, answer.size, take, context, result);
}
