/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Publications. The kernel side unwinds a stack with the mappings that are published for the
 * process; the sample has the publication's tag. Mappings may have changed since it was published,
 * so frames are compared with the mappings of the sample's time, and truncated at the first
 * difference.
 *
 * Changes are published once per piece of the stream, so that few samples in transit have an older
 * publication. Except early in its life, a process is published every PUBLISH_NS at most, and
 * within a budget of CPU time (QUOTA_PUBLISHING); until then its stacks are cut where its mappings
 * have changed. Without room for it, or with too many mappings, it is not published, and its stacks
 * come as copies.
 */
#include "session/unwinding.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "jit/jit_code.h"
#include "live/readers.h"
#include "runtimes/ask/code.h"
#include "runtimes/ask/runtime_reader.h"
#include "runtimes/table.h"
#include "tenants/tenant_user.h"
#include "unwind/table_cache.h"
#include "unwind/unwind_feed_files.h"
#include "unwind/unwind_table.h"
#include "world/image_table.h"
#include "world/mapping_table.h"
#include "world/process_table.h"

/* A published process whose samples come without places is published again this often at most. */
#define REPUBLISH_NS 50000000ull

#define PUBLISH_NS   100000000ull  /* minimum time between two publications of a process … */
#define YOUNG_NS     1000000000ull /* … unless it is younger … */
#define AT_ONCE	     16		   /* … and has had fewer: its libraries are mapped one by one */
#define ROUND_NS                                                                                   \
	20000000ull /* longest time of publishing at once: other work of the collector waits */
#define REFUSED_NS  250000000ull  /* until the next try if there was no room */
#define TOO_MANY_NS 1000000000ull /* until the next try if there were too many mappings */
#define UNASKED_MAX 1024	  /* mappings of a process published before it is sampled */
#define LARGE	    1024	  /* more mappings make a publication large */

static void forget_publications(struct known_process *known)
{
	for (size_t i = 0; i < PUBLICATIONS; i++) {
		mapping_table__unref(known->publications[i].maps);
		known->publications[i] = (struct publication){};
	}
}

struct known_process *unwinding__known(struct unwinding *u, const struct process_life *life)
{
	struct known_process *known = vec_at(&u->known, life->number.slot);

	if (known && known->serial != life->number.serial) {
		forget_publications(known);
		*known = (struct known_process){
			.serial = life->number.serial,
			.since = monotonic_ns(),
		};
	}
	return known;
}

struct known_process *unwinding__find(struct unwinding *u, const struct process_life *life)
{
	return life ? life_entry(&u->known, life) : NULL;
}

const struct image *unwinding__image(const struct unwinding *u, struct image_id id)
{
	return image_table__get(world__images(u->world), id);
}

/* ---- callbacks of the feed ------------------------------------------------------------------- */

static int answer_file(void *context, uint32_t image, const struct file_answer *answer)
{
	struct unwinding *u = context;

	return unwind_feed__answer_file(u->feed, (struct image_id){image}, answer->fd,
					answer->base);
}

static int request_file(void *context, struct image_id id)
{
	struct unwinding *u = context;
	const struct image *image = unwinding__image(u, id);

	if (image->dso.kind != DSO_FILE && image->dso.kind != DSO_VDSO)
		return unwind_feed__answer_file(u->feed, id, -1, 0);
	return dso_opener__request(u->opener, image->file,
				   &(struct file_request){answer_file, u, id.v});
}

static struct fed_image describe_image(void *context, struct image_id id)
{
	const struct image *image = unwinding__image(context, id);

	return (struct fed_image){
		.is_made = image->dso.kind == DSO_JIT,
		.runtime = image->dso.kind == DSO_FILE ? runtime_like_file(image->name) : NULL,
	};
}

/* A made_answer_fn. */
static void take_frames(void *context, const struct made_answer *answer)
{
	struct unwinding *u = context;
	const struct process_life *process = process_table__find(world__processes(u->world),
								 answer->runtime->tgid);
	int err = answer->result == -ENOMEM ? -ENOMEM : unwind_feed__answer_frames(u->feed, answer);

	if (err > 0)
		err = process ? unwinding__publish_at_once(u, process) : 0;
	u->err = err ? err : u->err;
}

static int request_frames(void *context, const struct made_request *made)
{
	struct unwinding *u = context;

	return runtime_reader__request(u->readers, SERVICE_RUNTIMES, made, take_frames, u);
}

/* Its jitdump's table has been built. */
static int on_described(void *context, uint32_t tgid)
{
	struct unwinding *u = context;
	const struct process_life *process = process_table__find(world__processes(u->world), tgid);

	return process ? unwinding__publish_at_once(u, process) : 0;
}

/* ---- publishing ------------------------------------------------------------------------------ */

/* table_store_options.user_of. */
static uint32_t user_of_process(void *context, uint32_t tgid)
{
	struct unwinding *u = context;
	const struct process_life *process = process_table__find(world__processes(u->world), tgid);
	/* adds none, which would invalidate one that the caller holds */
	struct known_process *known = unwinding__find(u, process);

	if (!known)
		return tenant_user((pid_t)tgid);
	if (!known->user_known)
		known->user = tenant_user((pid_t)tgid);
	known->user_known = true;
	return known->user;
}

/* A fork that has not changed its mappings has the parent's runtimes. */
static const struct known_process *parent_with_same_maps(struct unwinding *u,
							 const struct process_life *process)
{
	const struct process_life *parent = process_table__find(world__processes(u->world),
								process->ppid);
	const struct known_process *known = unwinding__find(u, parent);

	return known && parent->maps == process->maps && known->runtimes_known ? known : NULL;
}

static void find_runtimes(struct unwinding *u, const struct process_life *process,
			  struct known_process *known)
{
	const struct known_process *parent = parent_with_same_maps(u, process);
	struct mappings maps = mapping_table__all(process->maps);
	struct mapping_cursor at = {};

	known->runtimes =
		parent ? parent->runtimes
		       : (struct fed_runtimes){
				 .keeps_frame_pointers = known->runtimes.keeps_frame_pointers};
	for (const struct mapping *m; !parent && (m = mappings__next(maps, &at));)
		unwind_feed__note_runtime(u->feed, m, &known->runtimes);
	known->runtimes_known = true;
}

/* The memory of a JVM is read some time after its first publication. */
static void find_frame_pointers(const struct unwinding *u, const struct process_life *process,
				struct known_process *known)
{
	struct fed_runtimes *runtimes = &known->runtimes;

	if (!runtimes->has_own_walk || runtimes->keeps_frame_pointers ||
	    !code_keeps_frame_pointers(u->tasks, (pid_t)process->pid))
		return;
	runtimes->keeps_frame_pointers = true;
	known->urgent = known->published != 0;
	known->published = 0;
}

static void remember_publication(struct known_process *known, const struct process_life *process,
				 uint64_t time)
{
	struct publication *p = known->publications;

	mapping_table__unref(p[PUBLICATIONS - 1].maps);
	memmove(p + 1, p, (PUBLICATIONS - 1) * sizeof(*p));
	p[0] = (struct publication){
		.tag = unwind_tag(time),
		.maps_version = process->maps_version,
		.maps = mapping_table__ref(process->maps),
	};
}

struct fed_process unwinding__fed(struct unwinding *u, const struct process_life *process,
				  uint64_t time)
{
	struct known_process *known = unwinding__known(u, process);
	struct fed_process fed = {
		.tgid = process->pid,
		.born = process->born,
		.time = time,
		.maps = mapping_table__view(process->maps),
	};

	if (!known)
		return fed;
	if (!known->runtimes_known)
		find_runtimes(u, process, known);
	find_frame_pointers(u, process, known);
	fed.runtimes = known->runtimes;
	if (fed.runtimes.by != MADE_BY_OTHERS) /* its code is searched in all mappings */
		fed.maps = mapping_table__all(process->maps);
	return fed;
}

/* 0 or -ENOMEM. */
static int publish(struct unwinding *u, const struct process_life *process,
		   struct known_process *known, uint64_t now)
{
	struct fed_process fed = unwinding__fed(u, process, u->last_time);
	int err;

	if (mapping_table__count(process->maps) <= UNWIND_FEED_MAPPINGS) /* else too many */
		fed.maps = mapping_table__all(process->maps);
	err = unwind_feed__publish(u->feed, &fed);

	known->urgent = known->waits = false;
	if (err == -ENOSPC || err == -E2BIG) {
		known->published = 0;
		known->not_before = now + (err == -E2BIG ? TOO_MANY_NS : REFUSED_NS);
		return 0;
	}
	known->published = process->maps_version + 1;
	known->published_at = now;
	if (!err)
		remember_publication(known, process, fed.time);
	return err;
}

static int note_change(struct unwinding *u, struct known_process *known,
		       const struct process_life *process)
{
	if (known->changed)
		return 0;
	known->changed = true;
	return vec_push(&u->changed, ((struct life_mark){process->pid, process->number.serial}));
}

int unwinding__want(struct unwinding *u, const struct process_life *process)
{
	struct known_process *known = unwinding__known(u, process);

	if (!known)
		return -ENOMEM;
	if (known->published == process->maps_version + 1)
		return 0;
	known->wanted = true;
	return note_change(u, known, process);
}

int unwinding__publish_again(struct unwinding *u, const struct process_life *process)
{
	struct known_process *known = unwinding__known(u, process);

	if (!known)
		return -ENOMEM;
	known->published = 0;
	return unwinding__want(u, process);
}

int unwinding__publish_at_once(struct unwinding *u, const struct process_life *process)
{
	struct known_process *known = unwinding__known(u, process);

	if (!known)
		return -ENOMEM;
	known->urgent = true;
	return unwinding__publish_again(u, process);
}

/* The first publications of a process do not wait. */
static bool is_due(struct known_process *known, uint64_t now)
{
	if (now < known->not_before)
		return false;
	if (known->urgent || now - known->published_at >= PUBLISH_NS)
		return true;
	return now - known->since < YOUNG_NS && known->at_once < AT_ONCE;
}

/* Nothing else is done while waiting for eBPF programs, so that counts like CPU time. */
static uint64_t spent_so_far(const struct unwinding *u)
{
	struct unwind_feed_stats stats;

	unwind_feed__stats(u->feed, &stats);
	return thread_cpu_ns() + stats.store.places.waited_ns;
}

/*
 * A process decides how many mappings it has and how often they change, and so what publishing
 * costs. Large publications have a total of their own, so they do not delay small ones of other
 * users.
 */
static struct quota_claim publishing_claim(struct unwinding *u, const struct process_life *process,
					   struct known_process *known, uint64_t now)
{
	bool large = mapping_table__count(process->maps) > LARGE;

	return (struct quota_claim){
		.process = &known->publishing,
		.all = large ? &u->large_publishing : &u->publishing.total,
		.scarce = (int64_t)u->publishing.all.limit / 2,
		.now = now,
		.user_of = user_of_process,
		.context = u,
		.pid = process->pid,
	};
}

static int publish_within_budget(struct unwinding *u, const struct process_life *process,
				 struct known_process *known, uint64_t now)
{
	const struct quota_claim claim = publishing_claim(u, process, known, now);
	uint64_t begin;
	int err;

	if (quota__claim_refusal(&u->publishing, &claim, 1) != OUTSIDE_REASON_COUNT) {
		if (!known->waits) {
			u->deferred++;
			outside_books__add(u->books, user_of_process(u, process->pid),
					   OUTSIDE_PUBLICATIONS, OUTSIDE_BY_TOO_OFTEN, 1);
		}
		known->waits = true;
		/* no publication is better than a wrong one */
		if (known->urgent)
			place_store__withdraw(table_store__places(u->tables), process->pid);
		return 0;
	}
	known->at_once += now - known->published_at < PUBLISH_NS;
	if (!u->round_began)
		u->round_began = u->spent = spent_so_far(u);
	begin = u->spent;
	err = publish(u, process, known, now);
	u->spent = spent_so_far(u);
	quota__claim(&u->publishing, &claim, u->spent - begin);
	return err;
}

/* Before its first sample, a process is published only if no file must be read for it. */
static bool is_wanted(const struct unwinding *u, const struct process_life *process,
		      const struct known_process *known)
{
	if (known->wanted || known->published)
		return true;
	return mapping_table__count(process->maps) <= UNASKED_MAX &&
	       unwind_feed__has_tables(u->feed, mapping_table__all(process->maps));
}

/* *waits: publish it later. */
static int publish_if_changed(struct unwinding *u, const struct life_mark *mark, uint64_t now,
			      bool *waits)
{
	const struct process_life *process = process_table__find(world__processes(u->world),
								 mark->pid);
	struct known_process *known = unwinding__find(u, process);
	int err = 0;

	*waits = false;
	if (!known || known->serial != mark->serial)
		return 0;
	known->changed = false;
	if (process->end || !process->maps || !is_wanted(u, process, known) ||
	    known->published == process->maps_version + 1)
		return 0;
	known->changed = true;
	if (is_due(known, now)) {
		err = publish_within_budget(u, process, known, now);
		known = unwinding__find(u, process);
		known->changed = known->waits;
	}
	*waits = known->changed;
	return err;
}

int unwinding__update(struct unwinding *u)
{
	int err = u->err ? u->err : unwind_feed__take(u->feed);
	uint64_t now = monotonic_ns();
	size_t kept = 0;

	u->round_began = 0;
	for (size_t i = 0; i < u->changed.count && !err; i++) {
		struct life_mark mark = u->changed.data[i];
		bool waits = true;

		/* the rest is first in the next round */
		if (!u->round_began || u->spent - u->round_began < ROUND_NS)
			err = publish_if_changed(u, &mark, now, &waits);
		if (waits)
			u->changed.data[kept++] = mark;
	}
	u->changed.count = kept;
	return err;
}

/* A target before the first tick. */
static bool is_known_target(const struct unwinding *u, const struct process_life *process)
{
	const struct task *task = tasks__find(u->tasks, (pid_t)process->pid);

	return process->is_target || (task && task->slots.is_named);
}

int unwinding__prepare(struct unwinding *u)
{
	struct process_table *table = world__processes(u->world);
	int err = 0;

	for (const struct process_life *p = process_table__first_living(table); p && !err;
	     p = process_life__next(p)) {
		struct known_process *known;

		if (p != process_table__find(table, p->pid) || !is_known_target(u, p) || !p->maps)
			continue;
		known = unwinding__known(u, p);
		err = known ? publish(u, p, known, monotonic_ns()) : -ENOMEM;
	}
	return err;
}

/* ---- callbacks of the world ------------------------------------------------------------------ */

static int on_mapped(void *context, struct process_life *process, const struct mapping *mapping)
{
	struct unwinding *u = context;
	struct known_process *known = unwinding__known(u, process);

	if (!known)
		return -ENOMEM;
	if (!mapping)
		known->runtimes_known = false;
	else if (known->runtimes_known)
		unwind_feed__note_runtime(u->feed, mapping, &known->runtimes);
	return note_change(u, known, process);
}

static void on_process_ended(void *context, struct process_life *process, enum life_end how)
{
	struct unwinding *u = context;
	struct known_process *known = unwinding__known(u, process);

	(void)how;
	unwind_feed__withdraw(u->feed, process->pid);
	if (known)
		known->published = 0;
}

static void on_process_forgotten(void *context, struct process_life *process)
{
	struct known_process *known = unwinding__find(context, process);

	if (known)
		forget_publications(known);
}

/* Passes the unwinding information of a jitdump to the unwinder. */
static int on_jit_frames(void *context, struct process_life *process, uint64_t time)
{
	struct unwinding *u = context;
	struct fed_process now = unwinding__fed(u, process, time);
	_cleanup_free_ struct unwind_piece *pieces = NULL;
	_cleanup_free_ struct jit_unwinding *list = NULL;
	size_t count;

	if (!jit_code__has_new_unwinding(process->dump) ||
	    !unwind_feed__may_describe(u->feed, process->pid))
		return 0;
	outside_books__add(u->books, user_of_process(u, process->pid), OUTSIDE_JIT_RECORDS,
			   OUTSIDE_BY_ITSELF, jit_code__take_left_unwinding(process->dump));
	if (jit_code__unwinding(process->dump, &list, &count))
		return -ENOMEM;
	pieces = calloc(count + 1, sizeof(*pieces));
	if (!pieces)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		pieces[i] = (struct unwind_piece){
			.start = list[i].address,
			.end = list[i].address + list[i].size,
			.section = {.data = list[i].eh_frame,
				    .size = list[i].eh_frame_size,
				    .address = list[i].eh_frame_address,
				    .is_eh_frame = true},
		};
	return unwind_feed__describe(u->feed, &now, pieces, count);
}

/* The kernel side has dropped the publication: others needed its room. */
static bool is_lost(const struct known_process *known, const struct sample_event *e)
{
	return known->published && !e->places_tag && e->user_frames &&
	       e->user_end != STACK_END_COMPAT &&
	       e->header.time > known->published_at + REPUBLISH_NS;
}

int unwinding__recorded(struct unwinding *u, const struct event_header *event)
{
	const struct sample_event *sample = event_stack(event);
	const struct process_life *process;
	struct known_process *known;

	if (u->last_time < event->time)
		u->last_time = event->time;
	if (!sample)
		return 0;
	process = process_table__find(world__processes(u->world), sample->tgid);
	known = process ? unwinding__known(u, process) : NULL;
	if (!known)
		return process ? -ENOMEM : 0;
	if (sample->places_tag)
		place_store__sampled(table_store__places(u->tables), sample->tgid);
	return is_lost(known, sample) ? unwinding__publish_again(u, process)
				      : unwinding__want(u, process);
}

/* ---- life ------------------------------------------------------------------------------------ */

static int observe_world(struct unwinding *u)
{
	const struct process_observer observer = {
		.context = u,
		.mapped = on_mapped,
		.jit_frames = on_jit_frames,
		.process_ended = on_process_ended,
		.process_forgotten = on_process_forgotten,
	};

	return process_table__observe(world__processes(u->world), &observer);
}

int unwinding__new(const struct unwinding_options *options, struct world *world,
		   struct dso_opener *opener, struct unwinding **unwinding)
{
	struct unwinding *u = calloc(1, sizeof(*u));
	struct unwind_feed_options feed = {
		.table_limit = options->memory->segment_size,
		.request_file = request_file,
		.describe = describe_image,
		.request_frames = request_frames,
		.described = on_described,
		.builders = options->builders,
		.large_children = options->large_children,
		.context = u,
	};
	const struct table_store_options store = {
		.memory = options->memory,
		.user_of = user_of_process,
		.context = u,
		.books = options->books,
		.old_first = options->small,
	};
	int err;

	if (!u)
		return -ENOMEM;
	quota__init(&u->publishing, QUOTA_PUBLISHING);
	u->world = world;
	u->opener = opener;
	u->tasks = options->tasks;
	u->books = options->books;
	u->max_depth = options->max_depth;
	u->tables = feed.store = table_store__new(&store);
	u->readers = options->readers;
	err = u->tables ? 0 : -ENOMEM;
	if (!err && options->cache)
		feed.cache = table_cache__open(NULL, TABLE_CACHE_LIMIT, false);
	if (!err)
		err = unwind_feed__new(&feed, &u->feed) ?: observe_world(u);
	return finish_new(err, u, unwinding__free, unwinding);
}

void unwinding__free(struct unwinding *u)
{
	if (!u)
		return;
	process_table__unobserve(world__processes(u->world), u);
	unwind_feed__free(u->feed);
	table_store__free(u->tables);
	for (size_t i = 0; i < u->known.count; i++)
		forget_publications(&u->known.data[i]);
	vec_free(&u->known);
	vec_free(&u->changed);
	free(u);
}

/* An open descriptor keeps a deleted file on disk, so it is forgotten at once, others if `full`. */
bool unwinding__forget_image(void *unwinding, struct image_id id, bool full)
{
	struct unwinding *u = unwinding;
	const struct image *image = unwinding__image(u, id);
	bool deleted = image->dso.kind == DSO_FILE &&
		       dso_opener__is_deleted(u->opener, image->file);

	if ((!full && !deleted) || !unwind_feed__forget(u->feed, id))
		return false;
	if (deleted)
		dso_opener__release(u->opener, image->file);
	return true;
}

void unwinding__stats(const struct unwinding *u, struct unwind_feed_stats *stats)
{
	unwind_feed__stats(u->feed, stats);
	stats->deferred = u->deferred;
}
