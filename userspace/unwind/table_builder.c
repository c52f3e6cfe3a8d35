/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two lists under one lock: what is asked for and what is done. The eventfd is readable as long as
 * the latter is not empty.
 */
#include "unwind/table_builder.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "elf/elf_file.h"

struct build {
	TAILQ_ENTRY(build) link;
	int fd;
	struct built_table result;
};

TAILQ_HEAD(build_list, build);

struct table_builder {
	size_t limit;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t asked_more, done_more;
	struct build_list asked, done; /* what is at hand is the first of `asked` */
	bool started, ending;
	int done_fd;
};

static void build(size_t limit, struct build *b)
{
	uint64_t begin = thread_cpu_ns();
	struct elf_file *file;

	b->result.err = elf_file__open(b->fd, &file);
	if (b->result.err)
		return;
	b->result.err = unwind_table__build(file, limit, &b->result.image);
	elf_file__free(file);
	b->result.cpu_ns = thread_cpu_ns() - begin;
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

	pthread_mutex_lock(&b->lock);
	while (!b->ending) {
		struct build *next = TAILQ_FIRST(&b->asked);

		if (!next) {
			pthread_cond_wait(&b->asked_more, &b->lock);
			continue;
		}
		pthread_mutex_unlock(&b->lock);
		build(b->limit, next);
		pthread_mutex_lock(&b->lock);
		TAILQ_REMOVE(&b->asked, next, link);
		TAILQ_INSERT_TAIL(&b->done, next, link);
		eventfd_write(b->done_fd, 1);
		pthread_cond_signal(&b->done_more);
	}
	pthread_mutex_unlock(&b->lock);
	return NULL;
}

/* Signals are for the thread that waits for them. */
static int start(struct table_builder *b)
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

int table_builder__new(size_t limit, struct table_builder **builder)
{
	struct table_builder *b = calloc(1, sizeof(*b));
	int err;

	if (!b)
		return -ENOMEM;
	b->limit = limit;
	TAILQ_INIT(&b->asked);
	TAILQ_INIT(&b->done);
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->asked_more, NULL);
	pthread_cond_init(&b->done_more, NULL);
	b->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = b->done_fd < 0 ? -errno : start(b);
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
	free(b);
}

int table_builder__ask(struct table_builder *b, uint32_t id, int fd)
{
	struct build *build = calloc(1, sizeof(*build));

	if (!build)
		return -ENOMEM;
	build->result.id = id;
	build->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
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
	struct build *first, *build;

	pthread_mutex_lock(&b->lock);
	first = TAILQ_FIRST(&b->asked); /* it may be at hand */
	TAILQ_FOREACH(build, &b->asked, link)
	if (build->result.id == id)
		break;
	if (build && build != first) {
		TAILQ_REMOVE(&b->asked, build, link);
		TAILQ_INSERT_AFTER(&b->asked, first, build, link);
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

int table_builder__fd(const struct table_builder *b)
{
	return b->done_fd;
}
