/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A request is first looked up in the cache. Tables to build wait in a list; the pool gets only as
 * many requests as builders can work on, so that an urgent one can still be moved to the front.
 */
#include "unwind/table_builder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/io.h"
#include "base/log.h"
#include "tenants/quota.h"
#include "unwind/table_cache.h"

#define AHEAD	      2 /* requests in the pool, so that the next starts when one is answered */
#define WAIT_NS	      20000000ull /* per wait for an answer of the pool */
#define WRITE_REST_NS 500000000ull

enum build_state { BUILD_NEW, BUILD_TO_DO, BUILD_IN_POOL, BUILD_DONE, BUILD_STATES };

struct build {
	TAILQ_ENTRY(build) link;
	enum build_state state;
	uint64_t ticket; /* in the pool */
	bool is_large;	 /* counted as large */
	int fd, memory;
	uint64_t base; /* offset of the ELF file */
	enum table_effort effort;
	struct file_stamp stamp; /* before it was built */
	struct built_table result;
};

TAILQ_HEAD(build_list, build);

struct table_builder {
	size_t limit;
	struct helper_pool *pool;
	struct table_cache *cache;
	bool unwritten; /* the cache may have something to write */
	struct build_list builds[BUILD_STATES];
	struct turns turns[BUILD_STATES];
	uint64_t tickets;
	struct table_refusals refusals;
	struct quota large;
	int epoll, wake; /* readable while there is work that needs no answer of the pool */
	bool awake;
};

/* The cache has tables of whole files only. */
static bool may_cache(const struct table_builder *b, const struct build *build)
{
	return b->cache && !build->base && build->result.kind == BUILD_FILE;
}

/* A file that only root can have written is not charged to the user that maps it. */
static uint64_t owner_of(const struct build *build)
{
	struct stat st;
	bool roots = !fstat(build->fd, &st) && only_writable_by(&st, 0) && st.st_nlink;

	return roots || !build->result.owner ? QUOTA_NOBODY : build->result.owner;
}

/* The kernel's name for the file. */
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

static struct build *first_in(const struct table_builder *b, enum build_state state)
{
	return TAILQ_FIRST(&b->builds[state]);
}

/* The first request of the user whose turn it is. */
static struct build *take_turn(struct table_builder *b, enum build_state state)
{
	struct turns *turns = &b->turns[state];
	struct build *build = first_in(b, state), *next = build;

	for (; build; build = TAILQ_NEXT(build, link))
		if (turns__is_before(turns, build->result.owner, next->result.owner))
			next = build;
	if (next)
		turns__take(turns, next->result.owner);
	return next;
}

static void count_large(struct table_builder *b, struct build *build)
{
	struct stat st;

	build->is_large = b->large.shared && !fstat(build->fd, &st) &&
			  st.st_size >= (off_t)QUOTA_LARGE_FILE;
	if (build->is_large)
		quota__take(&b->large, QUOTA_NOBODY, 1, 0);
}

static void uncount_large(struct table_builder *b, struct build *build)
{
	if (build->is_large)
		quota__give(&b->large, QUOTA_NOBODY, 1);
	build->is_large = false;
}

static void set_state(struct table_builder *b, struct build *build, enum build_state state)
{
	TAILQ_REMOVE(&b->builds[build->state], build, link);
	TAILQ_INSERT_TAIL(&b->builds[state], build, link);
	build->state = state;
}

static void finish_build(struct table_builder *b, struct build *build)
{
	uncount_large(b, build);
	set_state(b, build, BUILD_DONE);
	b->refusals.count[build->result.refusal]++;
	if (log_debug_wanted && build->result.kind == BUILD_FILE)
		log_build(build);
}

/* ---- the cache ------------------------------------------------------------------------------- */

static void look_up(struct table_builder *b, struct build *build)
{
	struct built_table *t = &build->result;
	uint64_t begin = thread_cpu_ns();

	t->err = -ENOENT;
	if (may_cache(b, build))
		t->err = table_cache__read(b->cache, build->fd, b->limit, &t->image);
	t->cached = t->err != -ENOENT;
	if (t->err == -EFBIG)
		t->refusal = TABLE_REFUSAL_SIZE;
	t->cpu_ns += thread_cpu_ns() - begin;
	if (t->cached || build->effort == TABLE_READ)
		finish_build(b, build);
	else
		set_state(b, build, BUILD_TO_DO);
}

static void write_rest(struct table_builder *b)
{
	uint64_t begin = monotonic_ns();

	while (b->unwritten && monotonic_ns() - begin < WRITE_REST_NS)
		b->unwritten = table_cache__write(b->cache);
}

/* ---- builders -------------------------------------------------------------------------------- */

static int error_of(enum helper_refusal refusal, enum table_refusal *why)
{
	switch (refusal) {
	case HELPER_HUNG:
		*why = TABLE_REFUSAL_HUNG;
		return -ETIMEDOUT;
	case HELPER_FORGED:
		*why = TABLE_REFUSAL_FORGED;
		return -EPROTO;
	case HELPER_BANNED:
		*why = TABLE_REFUSAL_BANNED;
		return -EPERM;
	default:
		*why = TABLE_REFUSAL_DIED;
		return -EPIPE;
	}
}

/* A helper_answer_fn. */
static void take_reply(void *context, const struct helper_answer *answer)
{
	struct table_builder *b = context;
	uint64_t begin = thread_cpu_ns();
	struct build *build = first_in(b, BUILD_IN_POOL);
	struct built_table *t;

	while (build && build->ticket != answer->ticket)
		build = TAILQ_NEXT(build, link);
	if (!build)
		return;
	t = &build->result;
	if (answer->refusal)
		t->err = error_of(answer->refusal, &t->refusal);
	else
		t->err = build_reply__take(answer->data, answer->size, build->memory, b->limit,
					   &t->image, &t->refusal);
	if (t->err == -EPROTO)
		t->refusal = TABLE_REFUSAL_FORGED;
	if (may_cache(b, build) && !t->err) {
		table_cache__keep(b->cache, build->fd, &build->stamp, &t->image);
		b->unwritten = true;
	}
	t->cpu_ns += answer->cpu_ns + thread_cpu_ns() - begin;
	finish_build(b, build);
}

static int request_build(struct table_builder *b, struct build *build)
{
	const struct build_question question = {
		.base = build->base, .limit = b->limit, .kind = build->result.kind};
	int fds[2] = {build->fd, build->memory = sealed_memory__new("table", b->limit)};

	if (build->memory < 0)
		return build->memory;
	if (may_cache(b, build))
		(void)file_stamp__read(build->fd,
				       &build->stamp); /* else the zeros are not the file's */
	build->ticket = ++b->tickets;
	count_large(b, build);
	set_state(b, build, BUILD_IN_POOL);
	return helper_pool__request(b->pool, &(struct helper_request){.owner = owner_of(build),
								      .data = &question,
								      .size = sizeof(question),
								      .fds = fds,
								      .fd_count = 2,
								      .answer = take_reply,
								      .context = b,
								      .ticket = build->ticket});
}

static void hand_over(struct table_builder *b)
{
	struct build *build;

	while (helper_pool__waiting(b->pool) < AHEAD && (build = take_turn(b, BUILD_TO_DO))) {
		build->result.err = request_build(b, build);
		if (build->result.err)
			finish_build(b, build);
	}
}

/* ---- requests -------------------------------------------------------------------------------- */

static void free_build(struct build *b)
{
	if (b->fd >= 0)
		close(b->fd);
	if (b->memory >= 0)
		close(b->memory);
	unwind_table_image__fini(&b->result.image);
	free(b);
}

/* Makes poll() return if there is work without an answer of the pool. */
static void set_awake(struct table_builder *b)
{
	bool awake = first_in(b, BUILD_DONE) || first_in(b, BUILD_NEW) || b->unwritten;
	eventfd_t count;

	if (awake == b->awake)
		return;
	b->awake = awake;
	if (awake)
		eventfd_write(b->wake, 1);
	else
		eventfd_read(b->wake, &count);
}

void table_builder__count_large(struct table_builder *b, _Atomic int64_t *large)
{
	b->large.shared = large;
}

int table_builder__request(struct table_builder *b, const struct table_request *request)
{
	struct build *build = calloc(1, sizeof(*build));

	if (!build)
		return -ENOMEM;
	build->result.id = request->id;
	build->result.kind = request->kind;
	build->base = request->base;
	build->effort = request->effort;
	build->result.owner = request->owner;
	build->memory = -1;
	build->fd = fcntl(request->fd, F_DUPFD_CLOEXEC, 0);
	if (build->fd < 0) {
		int err = -errno;

		free_build(build);
		return err;
	}
	TAILQ_INSERT_TAIL(&b->builds[BUILD_NEW], build, link);
	set_awake(b);
	return 0;
}

/* A request that no builder has yet; NULL: none with this id. */
static struct build *find_waiting(const struct table_builder *b, enum build_kind kind, uint32_t id)
{
	for (enum build_state state = BUILD_NEW; state < BUILD_IN_POOL; state++) {
		struct build *build;

		TAILQ_FOREACH (build, &b->builds[state], link)
			if (build->result.id == id && build->result.kind == kind)
				return build;
	}
	return NULL;
}

void table_builder__hurry(struct table_builder *b, uint32_t id)
{
	struct build *build = find_waiting(b, BUILD_FILE, id);

	if (!build)
		return;
	TAILQ_REMOVE(&b->builds[build->state], build, link);
	TAILQ_INSERT_HEAD(&b->builds[build->state], build, link);
}

bool table_builder__cancel_pieces(struct table_builder *b, uint32_t id)
{
	struct build *build = find_waiting(b, BUILD_PIECES, id);

	if (!build)
		return false;
	TAILQ_REMOVE(&b->builds[build->state], build, link);
	free_build(build);
	return true;
}

/* Cache look-ups come before builds. The cache is written when there is nothing else to do. */
static struct build *take_done(struct table_builder *b, bool wait)
{
	for (;;) {
		struct build *build;

		hand_over(b);
		helper_pool__step(b->pool);
		hand_over(b);
		build = first_in(b, BUILD_DONE);
		if (build) {
			TAILQ_REMOVE(&b->builds[BUILD_DONE], build, link);
			return build;
		}
		build = take_turn(b, BUILD_NEW);
		if (build) {
			look_up(b, build);
			continue;
		}
		if (wait && (first_in(b, BUILD_TO_DO) || first_in(b, BUILD_IN_POOL))) {
			helper_pool__settle(b->pool, WAIT_NS);
			continue;
		}
		if (b->unwritten)
			b->unwritten = table_cache__write(b->cache);
		return NULL;
	}
}

bool table_builder__take(struct table_builder *b, bool wait, struct built_table *built)
{
	struct build *build = take_done(b, wait);

	set_awake(b);
	if (!build)
		return false;
	*built = build->result;
	build->result.image = (struct unwind_table_image){};
	free_build(build);
	return true;
}

void table_builder__refusals(struct table_builder *b, struct table_refusals *refusals)
{
	*refusals = b->refusals;
	refusals->count[TABLE_REFUSAL_NONE] = 0;
}

int table_builder__fd(const struct table_builder *b)
{
	return b->epoll;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int open_poll(struct table_builder *b)
{
	struct epoll_event event = {.events = EPOLLIN};

	b->epoll = epoll_create1(EPOLL_CLOEXEC);
	b->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (b->epoll < 0 || b->wake < 0 || epoll_ctl(b->epoll, EPOLL_CTL_ADD, b->wake, &event) ||
	    epoll_ctl(b->epoll, EPOLL_CTL_ADD, helper_pool__fd(b->pool), &event))
		return -errno;
	return 0;
}

int table_builder__new(size_t limit, struct helper_pool *pool, struct table_cache *cache,
		       struct table_builder **builder)
{
	struct table_builder *b = calloc(1, sizeof(*b));
	int err;

	if (!b) {
		table_cache__free(cache);
		return -ENOMEM;
	}
	b->limit = limit;
	b->pool = pool;
	b->cache = cache;
	quota__init(&b->large, QUOTA_LARGE_CHILDREN);
	for (enum build_state state = 0; state < BUILD_STATES; state++)
		TAILQ_INIT(&b->builds[state]);
	err = open_poll(b);
	return finish_new(err, b, table_builder__free, builder);
}

void table_builder__free(struct table_builder *b)
{
	struct build *build;

	if (!b)
		return;
	helper_pool__forget(b->pool, b);
	write_rest(b);
	for (enum build_state state = 0; state < BUILD_STATES; state++)
		while ((build = first_in(b, state))) {
			TAILQ_REMOVE(&b->builds[state], build, link);
			uncount_large(b, build);
			free_build(build);
		}
	if (b->wake >= 0)
		close(b->wake);
	if (b->epoll >= 0)
		close(b->epoll);
	table_cache__free(b->cache);
	free(b);
}
