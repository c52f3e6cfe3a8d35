/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/capture/bpf_visits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include <sysprof/bpf_shared.h>

#include "base/cleanup.h"
#include "base/order.h"
#include "live/capture/bpf_session_private.h"
#include "live/capture/features.h"
#include "live/capture/kernel_types.h"

#define SMALL_RING    (1u << 20) /* bytes */
#define SMALL_THREADS 16384u	 /* a power of two */

struct bpf_visits {
	struct visit_bpf *skel;
	struct bpf_session *session; /* not owned */
	bool by_copies;
	struct bpf_link *pass; /* by copies: of the one program */
	struct ring_buffer *ring;
	event_push_fn sink; /* while draining */
	void *context;
	int err; /* of the sink */
	union {
		struct event_header header;
		unsigned char bytes[EVENT_SIZE_MAX];
	} event; /* the ring's memory cannot be changed */
};

/* ---- loading --------------------------------------------------------------------------------- */

static bool is_own_map(const struct bpf_map *map)
{
	static const char *const own[] = {"scratches",	"note_scratches", "seen_threads",
					  "visits",	"page_copies",	  "each_cpu",
					  "name_slots", "name_pendings"};

	if (bpf_map__is_internal(map)) /* globals */
		return true;
	return any_of(own, sizeof(own) / sizeof(own[0]), name, !strcmp(bpf_map__name(map), *name));
}

static size_t own_memory(const struct bpf_visits *v)
{
	const struct bpf_map *map;
	size_t bytes = 0;

	bpf_object__for_each_map (map, v->skel->obj)
		bytes += is_own_map(map) ? map_memory(map) : 0;
	return bytes;
}

/* All other maps are the sampler's. */
static int share_maps(struct bpf_visits *v)
{
	struct bpf_map *map;
	int err = 0;

	bpf_object__for_each_map (map, v->skel->obj) {
		struct bpf_map *other = bpf_object__find_map_by_name(v->session->skel->obj,
								     bpf_map__name(map));

		if (is_own_map(map))
			continue;
		err = other ? bpf_map__reuse_fd(map, bpf_map__fd(other)) : -ENOENT;
		if (err)
			break;
	}
	return err;
}

static void set_knobs(struct bpf_visits *v)
{
	const struct sampler_bpf *from = v->session->skel;
	struct visit_bpf *to = v->skel;

	to->rodata->by_copies = v->by_copies;
	to->rodata->filter_processes = from->rodata->filter_processes;
	to->rodata->filter_threads = from->rodata->filter_threads;
	to->rodata->filter_cgroup = from->rodata->filter_cgroup;
	to->rodata->include_kinds = from->rodata->include_kinds;
	to->rodata->exclude_kinds = from->rodata->exclude_kinds;
	to->rodata->wanted_group = v->session->group;
	to->rodata->exclude_self = from->rodata->exclude_self;
	to->rodata->kernel_stacks = from->rodata->kernel_stacks;
	to->rodata->user_stacks = from->rodata->user_stacks;
	to->rodata->use_tables = from->rodata->use_tables;
	to->rodata->segment_size = from->rodata->segment_size;
	to->rodata->max_depth = from->rodata->max_depth;
	to->rodata->pid_namespace_inode = from->rodata->pid_namespace_inode;
}

static void choose_programs(struct bpf_visits *v)
{
	struct bpf_program *program;

	bpf_object__for_each_program (program, v->skel->obj)
		bpf_program__set_autoload(program,
					  (program == v->skel->progs.pass) == v->by_copies);
}

/* A ring_buffer_sample_fn. */
static int take_event(void *visits, void *data, size_t size)
{
	struct bpf_visits *v = visits;

	if (v->err || size > sizeof(v->event) || size < sizeof(struct event_header))
		return 0;
	memcpy(&v->event, data, size);
	if (v->event.header.size == size)
		v->err = v->sink(v->context, &v->event.header);
	return 0;
}

/* If threads' numbers are equal in the smaller table, each of them is walked at each visit. */
static int make_small(struct bpf_visits *v)
{
	int err = bpf_map__set_max_entries(v->skel->maps.visits, SMALL_RING);

	v->skel->rodata->seen_mask = SMALL_THREADS - 1;
	return err ? err : bpf_map__set_max_entries(v->skel->maps.seen_threads, SMALL_THREADS);
}

static int load(struct bpf_visits *v, const struct kernel_types *types, bool small,
		struct failure *failure)
{
	LIBBPF_OPTS(bpf_object_open_opts, options, .btf_custom_path = kernel_types__path(types));
	int err;

	catch_libbpf_messages();
	v->skel = visit_bpf__open_opts(&options);
	if (!v->skel)
		return features_explain(failure, -errno, "cannot open the visitor's programs");
	set_knobs(v);
	choose_programs(v);
	err = share_maps(v)
			?: (small ? make_small(v) : 0)
			?: kernel_types__select(types, bpf_object__btf(v->skel->obj))
			?: visit_bpf__load(v->skel);
	if (err)
		return explain_libbpf(err, "the visitor's programs", failure);
	v->skel->bss->self_tgid = v->session->skel->bss->self_tgid;
	v->ring = ring_buffer__new(bpf_map__fd(v->skel->maps.visits), take_event, v, NULL);
	if (!v->ring)
		return features_explain(failure, -errno, "cannot read the visitor's ring");
	if (v->by_copies) {
		v->pass = bpf_program__attach_iter(v->skel->progs.pass, NULL);
		if (!v->pass)
			return features_explain(failure, -errno, "cannot visit threads");
	}
	/* a thread of its own may load them */
	__atomic_store_n(&v->session->visit_bytes, own_memory(v), __ATOMIC_RELAXED);
	__atomic_store_n(&v->session->table_changes, &v->skel->bss->visitor.table_changes,
			 __ATOMIC_RELEASE);
	return 0;
}

int bpf_visits__open(struct bpf_session *session, bool small, struct bpf_visits **visits,
		     struct failure *failure)
{
	_cleanup_(kernel_types__cleanup) struct kernel_types *types = kernel_types__read();
	enum visits how = features_visits(types);
	struct bpf_visits *v;
	int err;

	if (how == VISITS_NONE) {
		fail(failure, -EOPNOTSUPP, "--wall: visits of threads: " VISITS_SINCE);
		return fail_remedy(failure, -EOPNOTSUPP, "record without --wall");
	}
	v = calloc(1, sizeof(*v));
	if (!v)
		return fail(failure, -ENOMEM, "out of memory");
	v->session = session;
	v->by_copies = how == VISITS_BY_COPIES;
	err = load(v, types, small, failure);
	return finish_new(err, v, bpf_visits__free, visits);
}

void bpf_visits__free(struct bpf_visits *v)
{
	if (!v)
		return;
	if (v->skel && v->skel->bss &&
	    v->session->table_changes == &v->skel->bss->visitor.table_changes)
		v->session->table_changes = NULL;
	ring_buffer__free(v->ring);
	bpf_link__destroy(v->pass);
	visit_bpf__destroy(v->skel);
	free(v);
}

/* ---- running --------------------------------------------------------------------------------- */

struct visitor *bpf_visits__shared(struct bpf_visits *v)
{
	return &v->skel->bss->visitor;
}

struct bpf_visits_memory bpf_visits__memory(const struct bpf_visits *v)
{
	const char *start = (const char *)v->skel->bss;

	return (struct bpf_visits_memory){
		.map = bpf_map__fd(v->skel->maps.bss),
		.size = sizeof(*v->skel->bss),
		.offset = (size_t)((const char *)&v->skel->bss->visitor - start),
	};
}

int bpf_visits__programs(const struct bpf_visits *v, int fds[VISIT_PROGRAMS])
{
	if (v->pass) {
		fds[VISIT_PASS] = bpf_link__fd(v->pass);
		return 1;
	}
	fds[VISIT_SCAN] = bpf_program__fd(v->skel->progs.scan);
	fds[VISIT_ONE] = bpf_program__fd(v->skel->progs.visit);
	return VISIT_PROGRAMS;
}

int bpf_visits__run(int program)
{
	LIBBPF_OPTS(bpf_test_run_opts, options);

	return bpf_prog_test_run_opts(program, &options);
}

int bpf_visits__pass(int pass)
{
	return run_iterator(pass);
}

int bpf_visits__drain(struct bpf_visits *v, event_push_fn sink, void *context)
{
	v->skel->bss->visitor.used_epoch = v->session->skel->bss->unwind_epoch;
	v->skel->bss->name_serial = v->session->skel->bss->name_serial;
	v->sink = sink;
	v->context = context;
	v->err = 0;
	ring_buffer__consume(v->ring);
	return v->err;
}
