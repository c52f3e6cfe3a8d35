/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two lists under one lock: what is asked for and what is done. The eventfd is readable as long as
 * the latter is not empty. The cache is used by the thread alone.
 */
#include "unwind/table_builder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/file_stamp.h"
#include "base/log.h"
#include "unwind/table_cache.h"

#define WRITE_REST_NS 500000000ull

struct build {
	TAILQ_ENTRY(build) link;
	int fd;
	uint64_t base; /* where in the file the ELF file begins */
	enum table_effort effort;
	uint32_t owner;
	bool looked_up; /* in the cache */
	struct built_table result;
};

TAILQ_HEAD(build_list, build);

struct table_builder {
	size_t limit;
	struct build_service *service; /* for the thread alone */
	struct table_cache *cache;     /* the thread's */
	bool unwritten;		       /* it may have something to write: the thread's */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t asked_more, done_more;
	struct build_list asked, done; /* what is at hand is still in `asked` */
	struct table_refusals refusals;
	bool started, ending;
	int done_fd;
};

/* The cache knows whole files only. */
static bool may_cache(const struct table_builder *b, const struct build *build)
{
	return b->cache && !build->base && build->result.kind == BUILD_FILE;
}

/* A file that nobody but root can have written is not on the account of who maps it. */
static uint32_t owner_of(const struct build *build)
{
	struct stat st;
	bool roots = !fstat(build->fd, &st) && !st.st_uid && st.st_nlink &&
		     !(st.st_mode & (S_IWGRP | S_IWOTH));

	return roots ? 0 : build->owner;
}

static void build_table(struct table_builder *b, struct build *build)
{
	const struct build_request request = {
		.fd = build->fd,
		.base = build->base,
		.limit = b->limit,
		.kind = build->result.kind,
		.owner = owner_of(build),
	};
	struct file_stamp stamp = {};
	struct build_result result;

	if (may_cache(b, build))
		(void)file_stamp__read(build->fd, &stamp); /* else the zeros are not the file's */
	build_service__build(b->service, &request, &result);
	build->result.err = result.err;
	build->result.refusal = result.refusal;
	build->result.image = result.image;
	build->result.cpu_ns += result.cpu_ns;
	build->result.builder_ns = result.cpu_ns;
	if (may_cache(b, build) && !result.err) {
		table_cache__keep(b->cache, build->fd, &stamp, &build->result.image);
		b->unwritten = true;
	}
}

static void look_up(struct table_builder *b, struct build *build)
{
	build->looked_up = true;
	build->result.err = table_cache__read(b->cache, build->fd, b->limit, &build->result.image);
	build->result.cached = build->result.err != -ENOENT;
	if (build->result.err == -EFBIG)
		build->result.refusal = TABLE_REFUSAL_SIZE;
}

/* True: there is no more to do about it. */
static bool work_on(struct table_builder *b, struct build *next)
{
	uint64_t begin = thread_cpu_ns();
	bool look = may_cache(b, next) && !next->looked_up;

	next->result.err = -ENOENT;
	if (look)
		look_up(b, next);
	else if (next->effort == TABLE_BUILD)
		build_table(b, next);
	next->result.cpu_ns += thread_cpu_ns() - begin;
	return !look || next->result.cached || next->effort == TABLE_READ;
}

/* What may be in the cache comes before what has to be built. */
static struct build *choose_build(struct table_builder *b)
{
	struct build *build = TAILQ_FIRST(&b->asked);

	while (b->cache && build && (build->looked_up || !may_cache(b, build)))
		build = TAILQ_NEXT(build, link);
	if (build)
		return build;
	return TAILQ_FIRST(&b->asked);
}

/* By the name that the kernel has for the file. */
static const char *name_of(const struct build *build, char *name, size_t size)
{
	char link[32];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", build->fd);
	length = readlink(link, name, size - 1);
	name[length > 0 ? length : 0] = '\0';
	return name;
}

static void log_build(const struct build *build)
{
	const struct built_table *t = &build->result;
	char name[PATH_MAX];

	name_of(build, name, sizeof(name));
	if (t->err == -ENOENT)
		log_debug(LOG_UNWIND, "%s: no cached table", name);
	else if (t->err)
		log_debug(LOG_UNWIND, "%s: no unwind table: %s", name,
			  t->refusal ? table_refusal_text(t->refusal) : strerror(-t->err));
	else
		log_debug(LOG_UNWIND, "%s: unwind table %s: %.3f ms CPU, %llu rows, %zu bytes",
			  name, t->cached ? "read from the cache" : "built", t->cpu_ns / 1e6,
			  (unsigned long long)t->image.rows, t->image.size);
}

static void finish_build(struct table_builder *b, struct build *build)
{
	TAILQ_REMOVE(&b->asked, build, link);
	TAILQ_INSERT_TAIL(&b->done, build, link);
	b->refusals.count[build->result.refusal]++;
	eventfd_write(b->done_fd, 1);
	pthread_cond_signal(&b->done_more);
}

static void write_rest(struct table_builder *b)
{
	uint64_t begin = monotonic_ns();

	while (b->unwritten && monotonic_ns() - begin < WRITE_REST_NS)
		b->unwritten = table_cache__write(b->cache);
}

static void free_build(struct build *b)
{
	if (b->fd >= 0)
		close(b->fd);
	unwind_table_image__fini(&b->result.image);
	free(b);
}

static void *build_what_is_asked(void *context)
{
	struct table_builder *b = context;

	prctl(PR_SET_NAME, "sysprof-tables");
	pthread_mutex_lock(&b->lock);
	while (!b->ending) {
		struct build *next = choose_build(b);
		bool done = false;

		if (!next && !b->unwritten) {
			pthread_cond_wait(&b->asked_more, &b->lock);
			continue;
		}
		pthread_mutex_unlock(&b->lock);
		if (next)
			done = work_on(b, next);
		else
			b->unwritten = table_cache__write(b->cache);
		if (done && log_debug_wanted && next->result.kind == BUILD_FILE)
			log_build(next);
		pthread_mutex_lock(&b->lock);
		if (done)
			finish_build(b, next);
	}
	pthread_mutex_unlock(&b->lock);
	write_rest(b);
	return NULL;
}

/* Signals are for the thread that waits for them. */
static int start_thread(struct table_builder *b)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&b->thread, NULL, build_what_is_asked, b);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	b->started = !err;
	return -err;
}

int table_builder__new(size_t limit, struct build_service *service, struct table_cache *cache,
		       struct table_builder **builder)
{
	struct table_builder *b = calloc(1, sizeof(*b));
	int err;

	if (!b) {
		table_cache__free(cache);
		return -ENOMEM;
	}
	b->limit = limit;
	b->service = service;
	b->cache = cache;
	TAILQ_INIT(&b->asked);
	TAILQ_INIT(&b->done);
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->asked_more, NULL);
	pthread_cond_init(&b->done_more, NULL);
	b->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = b->done_fd < 0 ? -errno : start_thread(b);
	if (err) {
		table_builder__free(b);
		return err;
	}
	*builder = b;
	return 0;
}

static void free_list(struct build_list *list)
{
	struct build *build;

	while ((build = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, build, link);
		free_build(build);
	}
}

void table_builder__free(struct table_builder *b)
{
	if (!b)
		return;
	if (b->started) {
		pthread_mutex_lock(&b->lock);
		b->ending = true;
		pthread_cond_signal(&b->asked_more);
		pthread_mutex_unlock(&b->lock);
		pthread_join(b->thread, NULL);
	}
	free_list(&b->asked);
	free_list(&b->done);
	pthread_cond_destroy(&b->asked_more);
	pthread_cond_destroy(&b->done_more);
	pthread_mutex_destroy(&b->lock);
	if (b->done_fd >= 0)
		close(b->done_fd);
	table_cache__free(b->cache);
	free(b);
}

int table_builder__ask(struct table_builder *b, const struct table_request *request)
{
	struct build *build = calloc(1, sizeof(*build));

	if (!build)
		return -ENOMEM;
	build->result.id = request->id;
	build->result.kind = request->kind;
	build->base = request->base;
	build->effort = request->effort;
	build->owner = request->owner;
	build->fd = fcntl(request->fd, F_DUPFD_CLOEXEC, 0);
	if (build->fd < 0) {
		int err = -errno;

		free_build(build);
		return err;
	}
	pthread_mutex_lock(&b->lock);
	TAILQ_INSERT_TAIL(&b->asked, build, link);
	pthread_cond_signal(&b->asked_more);
	pthread_mutex_unlock(&b->lock);
	return 0;
}

void table_builder__hurry(struct table_builder *b, uint32_t id)
{
	struct build *build;

	pthread_mutex_lock(&b->lock);
	build = TAILQ_FIRST(&b->asked);
	while (build && (build->result.id != id || build->result.kind != BUILD_FILE))
		build = TAILQ_NEXT(build, link);
	if (build) {
		TAILQ_REMOVE(&b->asked, build, link);
		TAILQ_INSERT_HEAD(&b->asked, build, link);
	}
	pthread_mutex_unlock(&b->lock);
}

static struct build *take_done(struct table_builder *b, bool wait)
{
	struct build *build;
	eventfd_t count;

	pthread_mutex_lock(&b->lock);
	while (wait && !TAILQ_FIRST(&b->done) && TAILQ_FIRST(&b->asked))
		pthread_cond_wait(&b->done_more, &b->lock);
	build = TAILQ_FIRST(&b->done);
	if (build)
		TAILQ_REMOVE(&b->done, build, link);
	if (build && !TAILQ_FIRST(&b->done))
		eventfd_read(b->done_fd, &count);
	pthread_mutex_unlock(&b->lock);
	return build;
}

bool table_builder__take(struct table_builder *b, bool wait, struct built_table *built)
{
	struct build *build = take_done(b, wait);

	if (!build)
		return false;
	*built = build->result;
	build->result.image = (struct unwind_table_image){};
	free_build(build);
	return true;
}

void table_builder__refusals(struct table_builder *b, struct table_refusals *refusals)
{
	pthread_mutex_lock(&b->lock);
	*refusals = b->refusals;
	pthread_mutex_unlock(&b->lock);
	refusals->count[TABLE_REFUSAL_NONE] = 0;
}

int table_builder__fd(const struct table_builder *b)
{
	return b->done_fd;
}
