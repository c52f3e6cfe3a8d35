/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * helper_cost CPU SECONDS ROUNDS [HZ [NAME]]
 *
 * What the parts that every profiler on BPF is made of cost on this machine: programs of a few
 * instructions, each calling one helper, run by a timer of HZ (999) on CPU for SECONDS each, ROUNDS
 * times in turn; all of them, or NAME alone. Prints "NAME NS…", ns a run by the kernel's own count, one figure a round.
 *
 *  empty            does nothing: what the counting itself takes; part of every other line
 *  ktime            bpf_ktime_get_ns()
 *  event-clock      bpf_perf_prog_read_value()
 *  tsc              bpf_perf_event_read() of an msr/tsc/ counter; left out where there is none
 *  read-user        bpf_probe_read_user() of 16 bytes at the stack pointer
 *  user-stack       bpf_get_stack(BPF_F_USER_STACK), 255 frames at most
 *  perf-ring-N      bpf_perf_event_output() of N bytes into a ring without wake-ups
 *  bpf-ringbuf-N    bpf_ringbuf_output() of N bytes with BPF_RB_NO_WAKEUP
 *
 * The instructions are written down as they are, so that this needs no compiler and no library.
 */
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "../fixtures/fixture.h"

#define RING_SIZE     (1u << 20)
#define ROUNDS_MAX    64
#define PIECES	      10  /* a ring is emptied so often in a round */
#define STACK_POINTER 152 /* of struct pt_regs, where a program's context begins */

enum source { SOURCE_NONE, SOURCE_TSC, SOURCE_PERF_RING, SOURCE_RINGBUF };

struct measured {
	const char *name;
	enum source source;
	int helper;
	uint32_t size; /* of the record */
	int map, event, ring_event, program;
	void *ring; /* its control pages */
	double ns[ROUNDS_MAX];
};

static struct measured all[] = {
	{.name = "empty"},
	{.name = "ktime", .helper = BPF_FUNC_ktime_get_ns},
	{.name = "event-clock", .helper = BPF_FUNC_perf_prog_read_value},
	{.name = "tsc", .helper = BPF_FUNC_perf_event_read, .source = SOURCE_TSC},
	{.name = "read-user", .helper = BPF_FUNC_probe_read_user},
	{.name = "user-stack", .helper = BPF_FUNC_get_stack},
	{.name = "perf-ring-64",
	 .helper = BPF_FUNC_perf_event_output,
	 .source = SOURCE_PERF_RING,
	 .size = 68},
	{.name = "perf-ring-320",
	 .helper = BPF_FUNC_perf_event_output,
	 .source = SOURCE_PERF_RING,
	 .size = 324},
	{.name = "perf-ring-2112",
	 .helper = BPF_FUNC_perf_event_output,
	 .source = SOURCE_PERF_RING,
	 .size = 2116},
	{.name = "bpf-ringbuf-64",
	 .helper = BPF_FUNC_ringbuf_output,
	 .source = SOURCE_RINGBUF,
	 .size = 64},
	{.name = "bpf-ringbuf-320",
	 .helper = BPF_FUNC_ringbuf_output,
	 .source = SOURCE_RINGBUF,
	 .size = 320},
	{.name = "bpf-ringbuf-2112",
	 .helper = BPF_FUNC_ringbuf_output,
	 .source = SOURCE_RINGBUF,
	 .size = 2112},
};
#define COUNT (sizeof(all) / sizeof(all[0]))

static long bpf(enum bpf_cmd command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static int make_map(enum bpf_map_type type, uint32_t key, uint32_t value, uint32_t entries)
{
	union bpf_attr attr = {
		.map_type = type, .key_size = key, .value_size = value, .max_entries = entries};
	long fd = bpf(BPF_MAP_CREATE, &attr);

	if (fd < 0)
		die(1, "cannot make a BPF map: %s", strerror(errno));
	return (int)fd;
}

static void set_entry(int map, uint32_t key, int fd)
{
	union bpf_attr attr = {
		.map_fd = (uint32_t)map, .key = (uintptr_t)&key, .value = (uintptr_t)&fd};

	if (bpf(BPF_MAP_UPDATE_ELEM, &attr))
		die(1, "cannot set a map entry: %s", strerror(errno));
}

static int open_event(struct perf_event_attr *attr, unsigned int cpu)
{
	attr->size = sizeof(*attr);
	return (int)syscall(SYS_perf_event_open, attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* ---- where a record goes, or a count comes from ---------------------------------------------- */

static int read_sysfs_number(const char *path, const char *format)
{
	FILE *f = fopen(path, "re");
	unsigned int number;
	int read = f ? fscanf(f, format, &number) : 0;

	if (f)
		fclose(f);
	return read == 1 ? (int)number : -1;
}

/* False: this machine has none. */
static int open_tsc(struct measured *m, unsigned int cpu)
{
	int type = read_sysfs_number("/sys/bus/event_source/devices/msr/type", "%u");
	int config = read_sysfs_number("/sys/bus/event_source/devices/msr/events/tsc", "event=%x");
	struct perf_event_attr attr = {.type = (uint32_t)type, .config = (uint64_t)config};
	int fd = type < 0 || config < 0 ? -1 : open_event(&attr, cpu);

	if (fd < 0)
		return 0;
	m->map = make_map(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, cpu + 1);
	set_entry(m->map, cpu, fd);
	return 1;
}

static void open_perf_ring(struct measured *m, unsigned int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_BPF_OUTPUT,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_RAW,
		.watermark = 1,
		.wakeup_watermark = RING_SIZE - 1,
	};

	m->ring_event = open_event(&attr, cpu);
	if (m->ring_event < 0)
		die(1, "cannot open an output event: %s", strerror(errno));
	m->ring = mmap(NULL, (size_t)getpagesize() + RING_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
		       m->ring_event, 0);
	if (m->ring == MAP_FAILED)
		die(1, "cannot map a ring: %s", strerror(errno));
	m->map = make_map(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, cpu + 1);
	set_entry(m->map, cpu, m->ring_event);
}

static void open_ringbuf(struct measured *m)
{
	m->map = make_map(BPF_MAP_TYPE_RINGBUF, 0, 0, RING_SIZE);
	m->ring = mmap(NULL, (size_t)getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED, m->map, 0);
	if (m->ring == MAP_FAILED)
		die(1, "cannot map a ring buffer: %s", strerror(errno));
}

/* All that is in it has been read. */
static void empty_ring(const struct measured *m)
{
	if (m->source == SOURCE_PERF_RING) {
		struct perf_event_mmap_page *page = m->ring;

		__atomic_store_n(&page->data_tail,
				 __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE),
				 __ATOMIC_RELEASE);
	} else if (m->source == SOURCE_RINGBUF) {
		size_t page = (size_t)getpagesize();
		uint64_t *produced = mmap(NULL, page, PROT_READ, MAP_SHARED, m->map, (off_t)page);

		if (produced == MAP_FAILED)
			die(1, "cannot map a ring buffer: %s", strerror(errno));
		__atomic_store_n((uint64_t *)m->ring, __atomic_load_n(produced, __ATOMIC_ACQUIRE),
				 __ATOMIC_RELEASE);
		munmap(produced, page);
	}
}

/* ---- the programs ---------------------------------------------------------------------------- */

struct code {
	struct bpf_insn insns[32];
	uint32_t count;
};

static void put(struct code *c, uint8_t op, uint8_t dst, uint8_t src, int16_t off, int32_t imm)
{
	c->insns[c->count++] = (struct bpf_insn){
		.code = op, .dst_reg = dst, .src_reg = src, .off = off, .imm = imm};
}

static void put_number(struct code *c, uint8_t dst, int32_t number)
{
	put(c, BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, number);
}

static void put_copy(struct code *c, uint8_t dst, uint8_t src)
{
	put(c, BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0);
}

/* BPF_PSEUDO_MAP_FD: the map itself; BPF_PSEUDO_MAP_VALUE: its first value's address. */
static void put_map(struct code *c, uint8_t dst, uint8_t kind, int map)
{
	put(c, BPF_LD | BPF_DW | BPF_IMM, dst, kind, 0, map);
	put(c, 0, 0, 0, 0, 0);
}

/* The `size` bytes right below the frame, as argument `dst`. */
static void put_local(struct code *c, uint8_t dst, int32_t size)
{
	put_copy(c, dst, BPF_REG_10);
	put(c, BPF_ALU64 | BPF_ADD | BPF_K, dst, 0, 0, -size);
}

/* bpf_perf_event_read() and _output(): the entry of this CPU, 0xffffffff */
static void put_this_cpu(struct code *c, uint8_t dst)
{
	put(c, BPF_ALU | BPF_MOV | BPF_K, dst, 0, 0, -1);
}

/* The arguments; register 1 is the context. `data` is an array map with one big value. */
static void put_arguments(struct code *c, const struct measured *m, int data)
{
	switch (m->helper) {
	case BPF_FUNC_perf_prog_read_value:
		put_local(c, BPF_REG_2, sizeof(struct bpf_perf_event_value));
		put_number(c, BPF_REG_3, sizeof(struct bpf_perf_event_value));
		break;
	case BPF_FUNC_perf_event_read:
		put_map(c, BPF_REG_1, BPF_PSEUDO_MAP_FD, m->map);
		put_this_cpu(c, BPF_REG_2);
		break;
	case BPF_FUNC_probe_read_user:
		put(c, BPF_LDX | BPF_DW | BPF_MEM, BPF_REG_3, BPF_REG_1, STACK_POINTER, 0);
		put_local(c, BPF_REG_1, 16);
		put_number(c, BPF_REG_2, 16);
		break;
	case BPF_FUNC_get_stack:
		put_map(c, BPF_REG_2, BPF_PSEUDO_MAP_VALUE, data);
		put_number(c, BPF_REG_3, 255 * 8);
		put_number(c, BPF_REG_4, BPF_F_USER_STACK);
		break;
	case BPF_FUNC_perf_event_output:
		put_map(c, BPF_REG_2, BPF_PSEUDO_MAP_FD, m->map);
		put_this_cpu(c, BPF_REG_3);
		put_map(c, BPF_REG_4, BPF_PSEUDO_MAP_VALUE, data);
		put_number(c, BPF_REG_5, (int32_t)m->size);
		break;
	case BPF_FUNC_ringbuf_output:
		put_map(c, BPF_REG_1, BPF_PSEUDO_MAP_FD, m->map);
		put_map(c, BPF_REG_2, BPF_PSEUDO_MAP_VALUE, data);
		put_number(c, BPF_REG_3, (int32_t)m->size);
		put_number(c, BPF_REG_4, BPF_RB_NO_WAKEUP);
		break;
	}
}

static int load_program(const struct measured *m, int data)
{
	static char log[4096];
	struct code c = {};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_PERF_EVENT,
		.insns = (uintptr_t)c.insns,
		.license = (uintptr_t) "Dual BSD/GPL",
		.log_buf = (uintptr_t)log,
		.log_size = sizeof(log),
		.log_level = 1,
	};
	long fd;

	if (m->helper) {
		put_arguments(&c, m, data);
		put(&c, BPF_JMP | BPF_CALL, 0, 0, 0, m->helper);
	}
	put_number(&c, BPF_REG_0, 0);
	put(&c, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	attr.insn_cnt = c.count;
	fd = bpf(BPF_PROG_LOAD, &attr);
	if (fd < 0)
		die(1, "cannot load the program %s: %s\n%s", m->name, strerror(errno), log);
	return (int)fd;
}

/* ---- measuring ------------------------------------------------------------------------------- */

static void open_measured(struct measured *m, unsigned int cpu, uint64_t hz, int data)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = NSEC_PER_SEC / hz,
		.disabled = 1,
	};

	if (m->source == SOURCE_TSC && !open_tsc(m, cpu))
		return;
	if (m->source == SOURCE_PERF_RING)
		open_perf_ring(m, cpu);
	if (m->source == SOURCE_RINGBUF)
		open_ringbuf(m);
	m->program = load_program(m, data);
	m->event = open_event(&attr, cpu);
	if (m->event < 0 || ioctl(m->event, PERF_EVENT_IOC_SET_BPF, m->program))
		die(1, "cannot attach the program %s: %s", m->name, strerror(errno));
}

static struct bpf_prog_info program_info(int program)
{
	struct bpf_prog_info info = {};
	union bpf_attr attr = {.info = {.bpf_fd = (uint32_t)program,
					.info_len = sizeof(info),
					.info = (uintptr_t)&info}};

	if (bpf(BPF_OBJ_GET_INFO_BY_FD, &attr))
		die(1, "cannot read what a program cost: %s", strerror(errno));
	return info;
}

static double measure(const struct measured *m, uint64_t duration)
{
	struct bpf_prog_info before = program_info(m->program), after;

	ioctl(m->event, PERF_EVENT_IOC_ENABLE, 0);
	for (int i = 0; i < PIECES; i++) {
		usleep((useconds_t)(duration / 1000 / PIECES));
		empty_ring(m);
	}
	ioctl(m->event, PERF_EVENT_IOC_DISABLE, 0);
	after = program_info(m->program);
	if (after.run_cnt == before.run_cnt)
		die(1, "the program %s did not run", m->name);
	return (double)(after.run_time_ns - before.run_time_ns) /
	       (double)(after.run_cnt - before.run_cnt);
}

int main(int argc, char **argv)
{
	union bpf_attr stats = {.enable_stats = {.type = BPF_STATS_RUN_TIME}};
	unsigned int cpu, rounds;
	uint64_t duration, hz;
	const char *name;
	int data;

	if (argc < 4 || argc > 6)
		die(2, "usage: helper_cost CPU SECONDS ROUNDS [HZ [NAME]]");
	hz = argc > 4 ? parse_number(argv[4], 1, 100000) : 999;
	name = argc > 5 ? argv[5] : NULL;
	cpu = parse_cpu(argv[1]);
	duration = parse_duration(argv[2]);
	rounds = (unsigned int)parse_number(argv[3], 1, ROUNDS_MAX);
	if (bpf(BPF_ENABLE_STATS, &stats) < 0)
		die(1, "cannot enable BPF statistics: %s", strerror(errno));
	data = make_map(BPF_MAP_TYPE_ARRAY, 4, 4096, 1);
	for (size_t i = 0; i < COUNT; i++)
		if (!name || !strcmp(all[i].name, name))
			open_measured(&all[i], cpu, hz, data);
	for (unsigned int round = 0; round < rounds; round++)
		for (size_t i = 0; i < COUNT; i++)
			if (all[i].program)
				all[i].ns[round] = measure(&all[i], duration);
	for (size_t i = 0; i < COUNT; i++) {
		if (!all[i].program)
			continue;
		printf("%s", all[i].name);
		for (unsigned int round = 0; round < rounds; round++)
			printf(" %.1f", all[i].ns[round]);
		putchar('\n');
	}
	return 0;
}
