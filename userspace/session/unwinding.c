/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Publications. The kernel side unwinds a stack with the mappings that were published for the process at that
 * time; the sample says which publication it was. Mappings may have changed in between, so frames are compared
 * with the mappings of the sample's time, and truncated at the first difference.
 *
 * Changes are published once for each piece of the stream, not at each event, so that few of the samples in
 * transit were unwound with another publication.
 */
#include "session/unwinding.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/vec.h"
#include "jit/jit_code.h"
#include "jitwatch/runtime_reader.h"
#include "process/frame_address.h"
#include "stream/event_decode.h"
#include "stream/event_queue.h"
#include "unwind/table_cache.h"
#include "unwind/unwind_table.h"

/* A published process whose samples come without places is published again this often at most. */
#define REPUBLISH_NS 50000000ull

#define PUBLICATIONS 8 /* more often they do not change while a sample is on its way */

/* Mappings that were published to the kernel side. */
struct publication {
	uint32_t tag; /* unwind_tag(); 0: none */
	uint64_t maps_version;
	struct mapping_table *maps;
};

/* What the kernel side knows of a process life. */
struct known_process {
	uint64_t serial;       /* of the life */
	uint64_t published;    /* maps_version + 1; 0: nothing yet */
	uint64_t published_at; /* CLOCK_MONOTONIC */
	bool changed;	       /* it is in the list of those to be published */
	bool wanted;	       /* it has been sampled */
	struct publication publications[PUBLICATIONS]; /* the last ones, the newest first */
};

struct unwinding {
	struct world *world; /* not owned, as the next one */
	struct dso_opener *opener;
	struct table_store *tables;
	struct unwind_feed *feed;
	struct runtime_reader *runtimes;
	unsigned int max_depth;
	int err;			 /* of an answer */
	uint64_t last_time;		 /* of the stream */
	VEC(struct known_process) known; /* by slot of the life */
	VEC(uint32_t) changed; /* pids whose mappings have changed since they were last published */
	union {
		struct sample_event sample;
		char space[sizeof(struct sample_event) +
			   8 * (SAMPLE_KERNEL_DEPTH_MAX + SAMPLE_USER_DEPTH_MAX)];
	} settled;
};

static void forget_publications(struct known_process *known)
{
	for (size_t i = 0; i < PUBLICATIONS; i++)
		mapping_table__unref(known->publications[i].maps);
}

/* NULL: no memory. Valid until another one's is asked for. */
static struct known_process *known_process(struct unwinding *u, const struct process_life *life)
{
	struct known_process *known;

	while (u->known.count <= life->number.slot)
		if (vec_push(&u->known, (struct known_process){}))
			return NULL;
	known = &u->known.data[life->number.slot];
	if (known->serial != life->number.serial) {
		forget_publications(known);
		*known = (struct known_process){.serial = life->number.serial};
	}
	return known;
}

static const struct image *image_at(const struct unwinding *u, struct image_id id)
{
	return image_table__get(world__images(u->world), id);
}

/* ---- what the feed asks ---------------------------------------------------------------------- */

static struct dso_identity identity_of(const struct image *image)
{
	return (struct dso_identity){
		.path = image->path,
		.build_id = image->build_id,
		.build_id_size = image->build_id_size,
		.major = image->major,
		.minor = image->minor,
		.inode = image->inode,
		.inode_generation = image->inode_generation,
	};
}

struct file_request {
	struct unwinding *unwinding;
	struct image_id image;
};

static int answer_file(void *context, const struct file_answer *answer)
{
	struct file_request request = *(struct file_request *)context;

	free(context);
	return unwind_feed__answer_file(request.unwinding->feed, request.image, answer->fd,
					answer->base);
}

static int request_file(void *context, struct image_id id)
{
	struct unwinding *u = context;
	const struct image *image = image_at(u, id);
	struct dso_identity identity = identity_of(image);
	struct file_request *request;

	if (image->kind != DSO_FILE && image->kind != DSO_VDSO)
		return unwind_feed__answer_file(u->feed, id, -1, 0);
	request = malloc(sizeof(*request));
	if (!request)
		return -ENOMEM;
	*request = (struct file_request){u, id};
	return dso_opener__request(u->opener, &identity, answer_file, request);
}

static const struct {
	const char *start; /* of the file's name */
	enum fed_kind kind;
} runtimes[] = {
	{"python3", FED_PYTHON}, {"libpython3", FED_PYTHON}, {"pypy", FED_PYPY},
	{"libpypy", FED_PYPY},	 {"luajit", FED_LUAJIT},     {"libluajit", FED_LUAJIT},
};

static enum fed_kind kind_of_image(void *context, struct image_id id)
{
	const struct image *image = image_at(context, id);

	if (image->kind == DSO_JIT)
		return FED_JIT;
	if (image->kind == DSO_FILE && !strcmp(image->name, "libjvm.so"))
		return FED_JVM;
	for (size_t i = 0; image->kind == DSO_FILE && i < sizeof(runtimes) / sizeof(runtimes[0]);
	     i++)
		if (!strncmp(image->name, runtimes[i].start, strlen(runtimes[i].start)))
			return runtimes[i].kind;
	return FED_FILE;
}

static int request_jvm(void *context, uint32_t tgid, struct elf_file *library, uint64_t bias)
{
	struct unwinding *u = context;
	struct runtime_request request = {
		.question = RUNTIME_HOTSPOT_FRAME_POINTERS,
		.runtime = {.tgid = tgid},
		.bias = bias,
	};

	if (hotspot_symbols__find(library, &request.symbols) == -ENOMEM)
		return -ENOMEM;
	return runtime_reader__ask(u->runtimes, &request);
}

static int request_frames(void *context, const struct made_request *made)
{
	struct unwinding *u = context;
	struct runtime_request request = {
		.question = made->runtime->by == MADE_BY_PYPY ? RUNTIME_PYPY_TRACES
							      : RUNTIME_LUAJIT_TRACES,
		.ticket = made->ticket,
		.runtime = *made->runtime,
		.areas = made->areas,
		.area_count = made->area_count,
	};

	if (made->registers)
		memcpy(request.registers, made->registers, sizeof(request.registers));
	return runtime_reader__ask(u->runtimes, &request);
}

/* ---- publishing ------------------------------------------------------------------------------ */

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

static struct fed_process as_fed(const struct process_life *process, uint64_t time)
{
	return (struct fed_process){
		.tgid = process->pid,
		.born = process->born,
		.time = time,
		.maps = mapping_table__all(process->maps),
	};
}

/* Publishes its mappings if they have changed since the last publication. */
static int publish_process(struct unwinding *u, const struct process_life *process)
{
	struct known_process *known = known_process(u, process);
	struct fed_process now = as_fed(process, u->last_time);

	if (!known)
		return -ENOMEM;
	if (known->published == process->maps_version + 1)
		return 0;
	known->published = process->maps_version + 1;
	known->published_at = monotonic_ns();
	remember_publication(known, process, now.time);
	return unwind_feed__publish(u->feed, &now);
}

static int note_change(struct unwinding *u, struct known_process *known, uint32_t pid)
{
	if (known->changed)
		return 0;
	known->changed = true;
	return vec_push(&u->changed, pid);
}

/* It is sampled, so it must be published. */
static int want_publication(struct unwinding *u, const struct process_life *process)
{
	struct known_process *known = known_process(u, process);

	if (!known)
		return -ENOMEM;
	if (known->published == process->maps_version + 1)
		return 0;
	known->wanted = true;
	return note_change(u, known, process->pid);
}

/* The last publication is outdated. 0 or -ENOMEM. */
static int publish_again(struct unwinding *u, const struct process_life *process)
{
	struct known_process *known = known_process(u, process);

	if (!known)
		return -ENOMEM;
	known->published = 0;
	return want_publication(u, process);
}

/* What a runtime's memory says. */
static void take_runtime_answer(void *context, const struct runtime_answer *answer)
{
	struct unwinding *u = context;
	const struct made_answer made = {
		.ticket = answer->ticket,
		.runtime = &answer->runtime,
		.frames = answer->frames,
		.count = answer->frame_count,
		.cpu_ns = answer->cpu_ns,
		.elapsed_ns = answer->elapsed_ns,
	};
	const struct process_life *process = process_table__find(world__processes(u->world),
								 answer->runtime.tgid);
	int err = answer->result == -ENOMEM ? -ENOMEM : 0;

	if (!err)
		err = answer->question == RUNTIME_HOTSPOT_FRAME_POINTERS
			      ? unwind_feed__answer_jvm(u->feed, answer->runtime.tgid, answer->bias,
							answer->keeps_frame_pointers)
			      : unwind_feed__answer_frames(u->feed, &made);
	if (err > 0)
		err = process ? publish_again(u, process) : 0;
	u->err = err ? err : u->err;
}

static int publish_if_changed(struct unwinding *u, uint32_t pid)
{
	const struct process_life *process = process_table__find(world__processes(u->world), pid);
	struct known_process *known = process ? known_process(u, process) : NULL;

	if (!known || !known->changed)
		return process && !known ? -ENOMEM : 0;
	known->changed = false;
	if (process->end || !process->maps)
		return 0;
	return known->wanted || known->published ||
			       unwind_feed__knows(u->feed, mapping_table__all(process->maps))
		       ? publish_process(u, process)
		       : 0;
}

int unwinding__update(struct unwinding *u)
{
	int err = u->err ? u->err : unwind_feed__take(u->feed);

	for (size_t i = 0; i < u->changed.count && !err; i++)
		err = publish_if_changed(u, u->changed.data[i]);
	u->changed.count = 0;
	return err;
}

int unwinding__prepare(struct unwinding *u)
{
	struct process_table *table = world__processes(u->world);
	int err = 0;

	for (const struct process_life *p = process_table__first_living(table); p && !err;
	     p = process_life__next(p))
		if (p == process_table__find(table, p->pid) && p->is_target && p->maps)
			err = publish_process(u, p);
	return err;
}

/* ---- what becomes of processes --------------------------------------------------------------- */

static int on_mapped(void *context, struct process_life *process)
{
	struct unwinding *u = context;
	struct known_process *known = known_process(u, process);

	return known ? note_change(u, known, process->pid) : -ENOMEM;
}

static void on_process_ended(void *context, struct process_life *process, enum life_end how)
{
	struct unwinding *u = context;
	struct known_process *known = known_process(u, process);

	(void)how;
	unwind_feed__withdraw(u->feed, process->pid);
	if (known)
		known->published = 0;
}

/* Passes the unwinding information of a jitdump to the unwinder. */
static int on_jit_frames(void *context, struct process_life *process, uint64_t time,
			 const struct jit_unwinding *list, size_t count)
{
	struct unwinding *u = context;
	_cleanup_free_ struct unwind_piece *pieces = calloc(count + 1, sizeof(*pieces));
	struct fed_process now = as_fed(process, time);
	int err;

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
	err = unwind_feed__describe(u->feed, &now, pieces, count);
	return err <= 0 ? err : publish_again(u, process);
}

/* The kernel side has dropped the publication, or never had room for it. */
static bool is_lost(const struct known_process *known, const struct sample_event *e)
{
	return known->published && !e->places_tag && e->user_frames &&
	       e->user_end != STACK_END_COMPAT &&
	       e->header.time > known->published_at + REPUBLISH_NS;
}

int unwinding__recorded(struct unwinding *u, const struct event_header *event)
{
	const struct sample_event *sample = (const struct sample_event *)event;
	const struct process_life *process;
	struct known_process *known;

	if (u->last_time < event->time)
		u->last_time = event->time;
	if (event->type != EVENT_SAMPLE)
		return 0;
	process = process_table__find(world__processes(u->world), sample->tgid);
	known = process ? known_process(u, process) : NULL;
	if (!known)
		return process ? -ENOMEM : 0;
	return is_lost(known, sample) ? publish_again(u, process) : want_publication(u, process);
}

/* ---- settling -------------------------------------------------------------------------------- */

/* JIT code is unwound by frame pointer, no matter when it was mapped. */
static bool same_place(const struct unwinding *u, const struct mapping *then,
		       const struct mapping *now)
{
	if (!now)
		return false;
	if (!then)
		return image_at(u, now->image)->kind == DSO_JIT;
	return then->image.v == now->image.v &&
	       then->start - then->page_offset == now->start - now->page_offset;
}

/* How many user frames, from the innermost on, are at addresses where both have the same mapping. */
static size_t frames_in_common(const struct unwinding *u, const struct sample_event *sample,
			       const struct mapping_table *then, const struct mapping_table *now)
{
	const __u64 *frames = sample->frames + sample->kernel_frames;
	size_t i = 0;

	while (i < sample->user_frames &&
	       same_place(u, mapping_table__find(then, frame_user_address(frames[i])),
			  mapping_table__find(now, frame_user_address(frames[i]))))
		i++;
	return i;
}

/* The innermost frame is always right: it is where the thread was. */
static size_t frames_to_keep(const struct unwinding *u, const struct sample_event *sample,
			     const struct process_life *process, const struct known_process *known)
{
	size_t same = 0;

	if (!sample->places_tag || !sample->user_frames)
		return sample->user_frames;
	for (size_t i = 0; i < PUBLICATIONS; i++) {
		const struct publication *p = &known->publications[i];

		if (p->tag != sample->places_tag)
			continue;
		if (p->maps_version == process->maps_version)
			return sample->user_frames;
		same = frames_in_common(u, sample, p->maps, process->maps);
		break;
	}
	return same ? same : 1;
}

static void copy_sample(struct sample_event *to, const struct sample_event *from,
			size_t user_frames)
{
	size_t size = sizeof(*from) + (from->kernel_frames + user_frames) * sizeof(from->frames[0]);

	memcpy(to, from, size);
	to->header.size = size;
	to->header.flags &= ~EVENT_STACK_COPY;
	to->user_frames = user_frames;
}

/* NULL: it brought none. */
static const struct stack_copy *copy_of(const struct sample_event *sample)
{
	if (!(sample->header.flags & EVENT_STACK_COPY))
		return NULL;
	return (const void *)&sample->frames[sample->kernel_frames + sample->user_frames];
}

/* The address that the walk got to. */
static uint64_t last_address(const struct sample_event *sample)
{
	size_t frames = (size_t)sample->kernel_frames + sample->user_frames;

	return frames ? frame_user_address(sample->frames[frames - 1]) : 0;
}

static void walk_once(struct unwinding *u, const struct fed_process *process,
		      const struct stack_copy *copy, size_t max, struct sample_event *to)
{
	enum stack_end end;
	size_t count;

	end = unwind_feed__walk(u->feed, process, copy, (uint64_t *)to->frames + to->kernel_frames,
				max, &count);
	if (!count)
		return;
	to->user_frames = count;
	to->user_end = end;
	to->header.size = sizeof(*to) + (to->kernel_frames + count) * sizeof(to->frames[0]);
}

/* A walk ended because a table is missing. 1: the table is known now; 0; -ENOMEM. */
static int note_missing(struct unwinding *u, struct process_life *process,
			const struct sample_event *ended, const struct stack_copy *copy)
{
	struct fed_process now = as_fed(process, ended->header.time);
	int err = unwind_feed__missed(u->feed, &now, last_address(ended), copy);

	if (err <= 0)
		return err;
	err = publish_again(u, process);
	return err ? err : 1;
}

static bool ends_in_made_code(const struct unwinding *u, const struct process_life *process,
			      const struct sample_event *ended)
{
	const struct mapping *mapping = mapping_table__find(process->maps, last_address(ended));

	return mapping && image_at(u, mapping->image)->kind == DSO_JIT;
}

/*
 * 0; -EAGAIN: a table that it needs will be built soon; -ENOMEM. For a process that was not published the
 * sample does not say what is missing, so its JIT code is looked up here.
 */
static int walk_copy(struct unwinding *u, struct process_life *process,
		     const struct sample_event *sample, size_t max, struct sample_event *to)
{
	struct fed_process now = as_fed(process, sample->header.time);
	bool asked = false;
	int again;

	do {
		walk_once(u, &now, copy_of(sample), max, to);
		again = to->user_end == STACK_END_NO_TABLE
				? unwind_feed__await(u->feed, &now, last_address(to))
				: 0;
		if (!again && !asked && to->user_end == STACK_END_NO_TABLE &&
		    ends_in_made_code(u, process, to)) {
			asked = true;
			again = note_missing(u, process, to, copy_of(sample));
		}
	} while (again > 0);
	return again;
}

/* Requests its missing tables. */
static int feed_process(struct unwinding *u, struct process_life *process,
			const struct sample_event *sample)
{
	struct fed_process now = as_fed(process, sample->header.time);
	int err = want_publication(u, process);

	if (err)
		return err;
	if (sample->user_end == STACK_END_NO_TABLE) {
		err = note_missing(u, process, sample, copy_of(sample));
		return err < 0 ? err : 0;
	}
	err = unwind_feed__refresh(u->feed, &now);
	if (err <= 0)
		return err;
	return publish_again(u, process);
}

static int settle_sample(struct unwinding *u, const struct sample_event **sample)
{
	const struct sample_event *s = *sample;
	struct process_life *process = process_table__find(world__processes(u->world), s->tgid);
	const struct known_process *known = process ? known_process(u, process) : NULL;
	bool copied = s->header.flags & EVENT_STACK_COPY;
	size_t keep = known ? frames_to_keep(u, s, process, known) : s->user_frames;
	bool is_fed = process && process->maps;
	int err = is_fed ? feed_process(u, process, s) : 0;

	if (err || (!copied && keep == s->user_frames))
		return err;
	copy_sample(&u->settled.sample, s, keep);
	if (keep < s->user_frames)
		u->settled.sample.user_end = STACK_END_STALE;
	err = copied && is_fed ? walk_copy(u, process, s, u->max_depth, &u->settled.sample) : 0;
	*sample = err ? s : &u->settled.sample;
	return err;
}

int unwinding__settle(void *unwinding, const struct event_header **event)
{
	struct unwinding *u = unwinding;
	const struct sample_event *sample = (const struct sample_event *)*event;
	int err;

	if (sample->header.type != EVENT_SAMPLE)
		return 0;
	err = event_check(*event, (*event)->size);
	if (!err)
		err = settle_sample(u, &sample);
	*event = &sample->header;
	return err == -EAGAIN ? STAGE_WAIT : err;
}

/* ---- life ------------------------------------------------------------------------------------ */

static int observe_world(struct unwinding *u)
{
	const struct process_observer observer = {
		.context = u,
		.mapped = on_mapped,
		.jit_frames = on_jit_frames,
		.process_ended = on_process_ended,
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
		.kind = kind_of_image,
		.request_jvm = request_jvm,
		.request_frames = request_frames,
		.context = u,
	};
	int err;

	if (!u)
		return -ENOMEM;
	u->world = world;
	u->opener = opener;
	u->max_depth = options->max_depth;
	u->tables = feed.store = table_store__new(options->memory);
	err = u->tables ? runtime_reader__new(take_runtime_answer, u, &u->runtimes) : -ENOMEM;
	if (!err && options->cache)
		feed.cache = table_cache__open();
	if (!err)
		err = unwind_feed__new(&feed, &u->feed);
	if (!err)
		err = observe_world(u);
	if (err) {
		unwinding__free(u);
		return err;
	}
	*unwinding = u;
	return 0;
}

void unwinding__free(struct unwinding *u)
{
	if (!u)
		return;
	process_table__unobserve(world__processes(u->world), u);
	runtime_reader__free(u->runtimes);
	unwind_feed__free(u->feed);
	table_store__free(u->tables);
	for (size_t i = 0; i < u->known.count; i++)
		forget_publications(&u->known.data[i]);
	vec_free(&u->known);
	vec_free(&u->changed);
	free(u);
}

int unwinding__fd(const struct unwinding *u)
{
	return unwind_feed__fd(u->feed);
}

bool unwinding__is_building(const struct unwinding *u)
{
	return unwind_feed__is_building(u->feed);
}

void unwinding__end(struct unwinding *u)
{
	unwind_feed__end(u->feed);
}

bool unwinding__forget_image(void *unwinding, struct image_id image)
{
	struct unwinding *u = unwinding;

	return unwind_feed__forget(u->feed, image);
}

void unwinding__stats(const struct unwinding *u, struct unwind_feed_stats *stats)
{
	unwind_feed__stats(u->feed, stats);
}
