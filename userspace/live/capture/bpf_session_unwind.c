/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/capture/bpf_session_unwind.h"

#include <errno.h>
#include <string.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/clocks.h"
#include "base/minmax.h"
#include "live/capture/bpf_session_private.h"

#define SEGMENT_SIZE	   (16u << 20)
#define SEGMENT_SIZE_SMALL (8u << 20) /* if there are less than SEGMENTS_LEAST of the above */
#define SEGMENT_SIZE_OLD   (4u << 20)
#define SEGMENTS_LEAST	   4
/* ns that a CPU's program may still run before all are waited for otherwise */
#define PROGRAM_NS 200000ull
_Static_assert(UNWIND_PLACES_SIZE <= SEGMENT_SIZE_OLD, "a value of an array, too");

static int make_segment(size_t size)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);

	return bpf_map_create(BPF_MAP_TYPE_ARRAY, NULL, sizeof(uint32_t), size, 1, &options);
}

/*
 * A table lies within one segment, and a segment takes its memory at once: few large ones leave
 * much unused. Before Linux 6.0, values of arrays are 4 MB at most. The first segment that can be
 * made is the model of all.
 */
int bpf_session__choose_segments(struct bpf_session *s, size_t bytes)
{
	size_t size = bytes < SEGMENTS_LEAST * (size_t)SEGMENT_SIZE ? SEGMENT_SIZE_SMALL
								    : SEGMENT_SIZE;

	if (!bytes)
		return 0;
	s->segment_fd = bytes < size ? -1 : make_segment(size);
	if (s->segment_fd < 0) {
		size = SEGMENT_SIZE_OLD;
		s->segment_fd = make_segment(size);
	}
	s->unwind.segment_size = size;
	if (s->segment_fd < 0)
		return s->segment_fd;
	s->unwind.segment_limit = min_u64(max_u64(bytes / s->unwind.segment_size, 1),
					  UNWIND_SEGMENTS);
	return 0;
}

/* Without tables the maps exist all the same, for the program to refer to. */
int bpf_session__size_unwind_maps(struct bpf_session *s)
{
	if (s->unwind.segment_size)
		return bpf_map__set_inner_map_fd(s->skel->maps.unwind_segments, s->segment_fd);
	return bpf_map__set_max_entries(s->skel->maps.unwind_processes, 1)
			?: bpf_map__set_max_entries(s->skel->maps.unwind_tables, 1)
			?: bpf_map__set_max_entries(s->skel->maps.unwind_used, 1)
			?: bpf_map__set_max_entries(s->skel->maps.unwind_execs, 1)
			?: bpf_map__set_max_entries(s->skel->maps.runtime_forks, 1)
			?: bpf_map__set_max_entries(s->skel->maps.copied_codes, 1);
}

static int add_segment(void *context, unsigned int number, unsigned char **bytes)
{
	struct bpf_session *s = context;
	_cleanup_close_ int further = number ? make_segment(s->unwind.segment_size) : -1;
	int fd = number ? further : s->segment_fd;
	void *mapped;

	if (fd < 0)
		return fd;
	mapped = mmap(NULL, s->unwind.segment_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mapped == MAP_FAILED)
		return -errno;
	s->segments[number] = *bytes = mapped;
	s->map_bytes += s->unwind.segment_size;
	return put_map_fd(s->skel->maps.unwind_segments, number, fd);
}

/* False: it still runs. */
static bool has_program_ended(const struct cpu_books *books)
{
	uint64_t until = monotonic_ns() + PROGRAM_NS;

	while (__atomic_load_n(&books->busy, __ATOMIC_ACQUIRE))
		if (monotonic_ns() > until)
			return false;
	return true;
}

/*
 * A program that reads tables after it has set `busy` sees what was written before `busy` was
 * checked here, because both sides have a full barrier between. So each CPU is checked once, and
 * mostly none runs a program.
 *
 * A guest's CPU can be stopped in one. Programs run under RCU, and membarrier waits for that: for
 * milliseconds, on a busy machine a second. It fails where CPUs are free of ticks (nohz_full);
 * writing to a map of maps waits as well, but this CPU's ticks are lost for a moment.
 */
static int wait_for_programs(void *context)
{
	struct bpf_session *s = context;
	/* the visitor may sleep in the middle of a walk: it drops the stack */
	__u64 *changes = __atomic_load_n(&s->table_changes, __ATOMIC_ACQUIRE);
	bool ended = true;

	if (changes)
		__atomic_fetch_add(changes, 1, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (size_t i = 0; i < s->cpu_count && ended; i++)
		ended = has_program_ended(&s->books[s->cpus[i].cpu]);
	if (ended)
		return 0;
	if (!syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		return 0;
	return put_map_fd(s->skel->maps.unwind_segments, 0, s->segment_fd);
}

int bpf_session__map_unwind_tables(struct bpf_session *s, struct failure *failure)
{
	if (!s->unwind.segment_size)
		return 0;
	s->unwind.processes = map_array(s->skel->maps.unwind_processes, UNWIND_PROCESSES,
					sizeof(*s->unwind.processes));
	s->unwind.tables = map_array(s->skel->maps.unwind_tables, UNWIND_TABLES,
				     sizeof(*s->unwind.tables));
	s->unwind.places = map_array(s->skel->maps.unwind_places, 1, UNWIND_PLACES_SIZE);
	s->unwind.used = map_array(s->skel->maps.unwind_used, UNWIND_TABLES,
				   sizeof(*s->unwind.used));
	if (!s->unwind.processes || !s->unwind.tables || !s->unwind.places || !s->unwind.used)
		return fail(failure, -errno, "cannot map the unwind tables: %s", strerror(errno));
	s->unwind.epoch = &s->skel->bss->unwind_epoch;
	s->unwind.add_segment = add_segment;
	s->unwind.wait_for_programs = wait_for_programs;
	s->unwind.context = s;
	return 0;
}

void bpf_session__unmap_unwind_tables(struct bpf_session *s)
{
	unmap_array(s->unwind.processes, UNWIND_PROCESSES, sizeof(*s->unwind.processes));
	unmap_array(s->unwind.tables, UNWIND_TABLES, sizeof(*s->unwind.tables));
	unmap_array(s->unwind.places, 1, UNWIND_PLACES_SIZE);
	unmap_array(s->unwind.used, UNWIND_TABLES, sizeof(*s->unwind.used));
	for (size_t i = 0; i < UNWIND_SEGMENTS; i++)
		unmap_array(s->segments[i], 1, s->unwind.segment_size);
	cleanup_close(&s->segment_fd);
}

bool bpf_session__unwind_memory(struct bpf_session *s, struct unwind_memory *memory)
{
	*memory = s->unwind;
	return s->unwind.segment_size > 0;
}
