/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The methods inlined at sampled instructions, of a JVM with -XX:+DebugNonSafepoints: with all places that it describes, and
 * without those that only this flag adds, which have no map of object pointers, as a JVM has them that was started without it.
 *
 * An instruction without a place of its own may be of the place before it or behind it: the compiler does not say.
 */
#ifndef TESTS_E2E_HOTSPOT_INLINED_H
#define TESTS_E2E_HOTSPOT_INLINED_H

#include <linux/perf_event.h>
#include <sys/syscall.h>

#include "base/order.h"
#include "hotspot_jvm.h"
#include "runtimes/hotspot/heap.h"
#include "runtimes/hotspot/layout.h"
#include "runtimes/hotspot/scopes.h"

#define INLINED_THREADS 256
#define INLINED_RING	(16u << 12)
#define INLINED_PERIOD	499999 /* ns */
#define INLINED_ROUNDS	600    /* of 0.1 s */
#define OOP_MAPS_MAX	100000

typedef VEC(uint64_t) address_list;

/* ---- samples --------------------------------------------------------------------------------- */

struct ip_ring {
	struct perf_event_mmap_page *page;
};

static int open_ip_ring(pid_t tid, struct ip_ring *ring)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = INLINED_PERIOD,
		.sample_type = PERF_SAMPLE_IP,
		.exclude_kernel = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -errno;
	ring->page = mmap(NULL, INLINED_RING + 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return ring->page == MAP_FAILED ? -errno : 0;
}

static size_t open_ip_rings(struct ip_ring *rings)
{
	char path[64];
	size_t count = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	for (struct dirent *e; tasks && (e = readdir(tasks)) && count < INLINED_THREADS;)
		if (e->d_name[0] != '.' && !open_ip_ring(atoi(e->d_name), &rings[count]))
			count++;
	if (tasks)
		closedir(tasks);
	return count;
}

static bool nmethod_at(uint64_t ip, struct hotspot_blob *blob)
{
	struct target_memory memory = memory_of();
	uint64_t address;

	return !hotspot_code__find(&code, &memory, ip, &address) &&
	       !hotspot_code__blob(&code, &memory, address, blob) && blob->kind == HOTSPOT_NMETHOD;
}

static void take_ips(struct ip_ring *ring, address_list *ips)
{
	const char *data = (const char *)ring->page + 4096;
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = ring->page->data_tail;

	while (tail < head) {
		struct {
			struct perf_event_header header;
			uint64_t ip;
		} record;
		struct hotspot_blob blob;

		for (size_t i = 0; i < sizeof(record); i++)
			((char *)&record)[i] = data[(tail + i) % INLINED_RING];
		if (record.header.type == PERF_RECORD_SAMPLE && nmethod_at(record.ip, &blob) &&
		    vec_push(ips, record.ip))
			die("memory");
		tail += record.header.size;
	}
	__atomic_store_n(&ring->page->data_tail, tail, __ATOMIC_RELEASE);
}

/* Addresses in compiled methods where the process ran. It is stopped afterwards. */
static void sample_ips(size_t wanted, address_list *ips)
{
	static struct ip_ring rings[INLINED_THREADS];
	size_t count = open_ip_rings(rings);

	for (int i = 0; i < INLINED_ROUNDS && ips->count < wanted; i++) {
		usleep(100000);
		for (size_t k = 0; k < count; k++)
			take_ips(&rings[k], ips);
	}
	kill(pid, SIGSTOP);
}

/* ---- their methods --------------------------------------------------------------------------- */

static uint64_t word_at(struct target_memory *memory, uint64_t address)
{
	uint64_t word = 0;

	return target_memory__word(memory, &word, address) ? 0 : word;
}

/* Where a CodeBlob has the address of its maps, by what the JVM publishes of its structures. */
static uint64_t offset_of_maps(void)
{
	struct target_memory memory = memory_of();
	uint64_t entry = word_at(&memory, exports[HOTSPOT_STRUCTS]);
	char type[64], field[64];

	for (;; entry += word_at(&memory, exports[HOTSPOT_STRUCT_STRIDE])) {
		uint64_t name = word_at(&memory,
					entry + word_at(&memory, exports[HOTSPOT_STRUCT_TYPE]));

		if (!name)
			die("CodeBlob::_oop_maps");
		target_memory__string(&memory, type, sizeof(type), name);
		name = word_at(&memory, entry + word_at(&memory, exports[HOTSPOT_STRUCT_FIELD]));
		target_memory__string(&memory, field, sizeof(field), name);
		if (!strcmp(type, "CodeBlob") && !strcmp(field, "_oop_maps"))
			return word_at(&memory,
				       entry + word_at(&memory, exports[HOTSPOT_STRUCT_OFFSET]));
	}
}

/* An nmethod with all places, and with those that it has without the flag. */
struct described {
	uint64_t address;
	struct hotspot_debug all, some;
};

static bool has_map(const uint32_t *maps, uint32_t count, int32_t offset)
{
	for (uint32_t i = 0; i < count; i++)
		if ((int32_t)maps[2 * i] == offset)
			return true;
	return false;
}

/* An ImmutableOopMapSet has a count, its size, and pairs of an address and a map. */
static void drop_places_of_flag(struct hotspot_debug *debug, uint64_t maps_at)
{
	struct target_memory memory = memory_of();
	uint64_t set = word_at(&memory, maps_at);
	_cleanup_free_ uint32_t *maps = NULL;
	uint32_t count = 0;
	size_t kept = 0;

	if (set && !target_memory__u32(&memory, &count, set) && count < OOP_MAPS_MAX) {
		maps = calloc(count + 1, 8);
		if (!maps || read_process(NULL, maps, 8ul * count, set + 8))
			count = 0;
	}
	for (size_t i = 0; i < debug->place_count; i++) {
		const struct hotspot_pc_desc *place = &debug->places[i];

		if (!i || i + 1 == debug->place_count || place->flags >= HOTSPOT_PLACE_CHECK ||
		    has_map(maps, count, place->pc_offset))
			debug->places[kept++] = *place;
	}
	debug->place_count = kept;
}

static bool read_described(const struct hotspot_blob *blob, struct hotspot_debug *debug, bool all,
			   uint64_t ip, struct hotspot_chain *chain)
{
	struct target_memory memory = memory_of();

	layout.describes_all = all ? HOTSPOT_FLAG_ON : HOTSPOT_FLAG_OFF;
	return !hotspot_chain__read(&code, &memory, blob, debug, ip, chain);
}

static struct described *describe(const struct hotspot_blob *blob, uint64_t maps_offset)
{
	static VEC(struct described *) known;
	struct hotspot_chain chain;
	struct described *d;

	for (size_t i = 0; i < known.count; i++)
		if (known.data[i]->address == blob->address)
			return known.data[i];
	d = calloc(1, sizeof(*d));
	if (!d || vec_push(&known, d))
		die("memory");
	d->address = blob->address;
	if (read_described(blob, &d->some, false, blob->code, &chain))
		drop_places_of_flag(&d->some, blob->address + maps_offset);
	return d;
}

/* Are so many of its outermost methods those of the other chain? All of them: nothing more is in that one. */
static bool same_methods(const struct hotspot_chain *ours, const struct hotspot_chain *all,
			 unsigned int count)
{
	if (count > all->count || (count == ours->count && count < all->count))
		return false;
	for (unsigned int i = 1; i <= count; i++)
		if (ours->scopes[ours->count - i].method != all->scopes[all->count - i].method)
			return false;
	return true;
}

/* Are these, the outermost `count`, the methods at the address? */
static bool is_right(const struct hotspot_blob *blob, struct described *d, uint64_t ip,
		     const struct hotspot_chain *ours, unsigned int count)
{
	const struct hotspot_debug *all = &d->all;
	int64_t offset = (int64_t)(ip - blob->code) + 1;
	struct hotspot_chain chain;
	size_t behind;

	if (!read_described(blob, &d->all, true, ip, &chain))
		return false;
	if (same_methods(ours, &chain, count))
		return true;
	behind = partition_point(all->places, all->place_count, p, p->pc_offset < offset);
	if (!behind || (behind < all->place_count && all->places[behind].pc_offset == offset))
		return false;
	return read_described(blob, &d->all, true,
			      blob->code + all->places[behind - 1].pc_offset - 1, &chain) &&
	       same_methods(ours, &chain, count);
}

static int compare_inlined(size_t wanted)
{
	uint64_t compared = 0, marked = 0, marked_right = 0, wrong = 0, wrong_callers = 0,
		 maps_offset;
	address_list ips = {};

	open_jvm();
	maps_offset = offset_of_maps();
	sample_ips(wanted, &ips);
	for (size_t i = 0; i < ips.count; i++) {
		struct hotspot_chain ours;
		struct hotspot_blob blob;
		struct described *d;
		bool right;

		if (!nmethod_at(ips.data[i], &blob))
			continue;
		d = describe(&blob, maps_offset);
		if (!read_described(&blob, &d->some, false, ips.data[i], &ours))
			continue;
		right = is_right(&blob, d, ips.data[i], &ours, ours.count);
		compared++;
		marked += ours.sure < ours.count;
		marked_right += ours.sure < ours.count && right;
		wrong += ours.sure == ours.count && !right;
		wrong_callers += ours.sure < ours.count &&
				 !is_right(&blob, d, ips.data[i], &ours, ours.sure);
	}
	kill(pid, SIGCONT);
	printf("total compared %" PRIu64 "\ntotal marked %" PRIu64 "\ntotal marked_right %" PRIu64
	       "\ntotal wrong %" PRIu64 "\ntotal wrong_callers %" PRIu64 "\n",
	       compared, marked, marked_right, wrong, wrong_callers);
	return 0;
}

#endif
