/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files of perf record, made here word by word, as the events that are read of them. An event is a line:
 * see put_event().
 */
#include "unit.h"
#include "stream/perf/perf_data.h" /* its fail() is no macro yet */

#include <inttypes.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <unistd.h>

#include <sysprof/meta_keys.h>

#include "base/io.h"
#include "base/kernel_build_id.h"
#include "base/vec.h"
#include "stream/event_decode.h"
#include "stream/perf/perf_kernel.h"
#include "stream/perf/perf_tasks.h"
#include "tenants/outside_books.h"
#include "window/replay.h"

#define KERNEL 0xffffffff81000000ull
#define SAMPLE_TYPE                                                                                \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |            \
	 PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN)
#define FEATURE_BUILD_ID 2
#define FEATURE_ARCH	 6
#define FEATURE_COMMAND	 11
#define FEATURE_EVENTS	 12
#define FEATURE_CLOCK	 29
#define FINISHED_ROUND	 68
#define HEADER_ATTR	 64

/* ---- a file ---------------------------------------------------------------------------------- */

typedef VEC(uint8_t) bytes;

static struct {
	struct perf_event_attr attrs[4];
	size_t attr_count;
	bytes records;
	bytes features[32];
	bool pipe, without_ids;
	size_t shared_ids; /* not 0: all events name these, of which there are so many, at the end */
	bool copies;	   /* of stacks are passed on */
} made;

static void put(bytes *to, const void *from, size_t size)
{
	assert_int_equal(vec_append(to, (const uint8_t *)from, size), 0);
}

static void put_u64(bytes *to, uint64_t value)
{
	put(to, &value, sizeof(value));
}

static void put_u32(bytes *to, uint32_t value)
{
	put(to, &value, sizeof(value));
}

/* With its NUL, up to eight bytes. */
static void put_name(bytes *to, const char *name)
{
	static const char zeros[8];
	size_t size = strlen(name) + 1;

	put(to, name, size);
	put(to, zeros, (8 - size % 8) % 8);
}

/* Ids of events are 1, 2, … */
static struct perf_event_attr *add_event(uint32_t type, uint64_t config)
{
	struct perf_event_attr *attr = &made.attrs[made.attr_count++];

	*attr = (struct perf_event_attr){
		.type = type,
		.size = sizeof(*attr),
		.config = config,
		.sample_period = 250000,
		.sample_type = SAMPLE_TYPE,
		.sample_id_all = 1,
	};
	return attr;
}

static void begin_file(void)
{
	vec_free(&made.records);
	for (size_t i = 0; i < 32; i++)
		vec_free(&made.features[i]);
	made.attr_count = made.shared_ids = 0;
	made.pipe = made.without_ids = made.copies = false;
}

static void begin_clock(void)
{
	begin_file();
	add_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);
}

static void add_record(uint32_t type, uint16_t misc, const bytes *body)
{
	const struct perf_event_header header = {
		.type = type, .misc = misc, .size = (uint16_t)(sizeof(header) + body->count)};

	put(&made.records, &header, sizeof(header));
	put(&made.records, body->data, body->count);
}

/* What ends every record but samples: pid, tid, time, id. */
static void add_timed(uint32_t type, uint16_t misc, bytes *body, uint64_t time)
{
	put_u32(body, 7);
	put_u32(body, 7);
	put_u64(body, time);
	put_u64(body, 1);
	add_record(type, misc, body);
	vec_free(body);
}

static void add_sample_by(uint32_t pid, uint32_t tid, uint64_t id, uint16_t misc, uint64_t time,
			  uint64_t period, size_t count, const uint64_t *chain)
{
	bytes body = {};

	put_u64(&body, id);
	put_u64(&body, 0x1234);
	put_u32(&body, pid);
	put_u32(&body, tid);
	put_u64(&body, time);
	put_u64(&body, period);
	put_u64(&body, count);
	put(&body, chain, count * sizeof(*chain));
	add_record(PERF_RECORD_SAMPLE, misc, &body);
	vec_free(&body);
}

static void add_sample_of(uint64_t id, uint16_t misc, uint64_t time, uint64_t period, size_t count,
			  const uint64_t *chain)
{
	add_sample_by(7, 8, id, misc, time, period, count, chain);
}

#define CHAIN(...)                                                                                 \
	sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), (const uint64_t[])             \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}
#define USER(...) CHAIN((uint64_t)PERF_CONTEXT_USER, __VA_ARGS__)

static void add_sample(uint64_t time, size_t count, const uint64_t *chain)
{
	add_sample_of(1, PERF_RECORD_MISC_USER, time, 250000, count, chain);
}

static void add_round(void)
{
	add_record(FINISHED_ROUND, 0, &(bytes){});
}

static void add_comm(uint64_t time, uint16_t misc, uint32_t pid, uint32_t tid, const char *name)
{
	bytes body = {};

	put_u32(&body, pid);
	put_u32(&body, tid);
	put_name(&body, name);
	add_timed(PERF_RECORD_COMM, misc, &body, time);
}

static void add_task(uint32_t type, uint16_t misc, uint64_t time, uint32_t pid, uint32_t ppid)
{
	bytes body = {};
	const uint32_t ids[] = {pid, ppid, pid, ppid};

	put(&body, ids, sizeof(ids));
	put_u64(&body, time);
	add_timed(type, misc, &body, time);
}

static void add_mapping_of(uint64_t inode, uint64_t time, uint32_t type, uint16_t misc,
			   uint64_t start, const char *path)
{
	const bool is_kernel = (misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
	bytes body = {};

	put_u32(&body, is_kernel ? ~0u : 7);
	put_u32(&body, is_kernel ? 0 : 7);
	put_u64(&body, start);
	put_u64(&body, 0x1000);
	put_u64(&body, 0x3000);
	if (type == PERF_RECORD_MMAP2) {
		put_u32(&body, 8); /* device; or the size of the build-id */
		put_u32(&body, 1);
		put_u64(&body, inode);
		put_u64(&body, 0);
		put_u32(&body, PROT_EXEC);
		put_u32(&body, 2);
	}
	put_name(&body, path);
	add_timed(type, misc, &body, time);
}

static void add_mapping(uint64_t time, uint32_t type, uint16_t misc, uint64_t start,
			const char *path)
{
	add_mapping_of(77, time, type, misc, start, path);
}

static void add_numbers(uint32_t type, uint16_t misc, uint64_t time, uint64_t first,
			uint64_t second)
{
	bytes body = {};

	put_u64(&body, first);
	put_u64(&body, second);
	add_timed(type, misc, &body, time);
}

static void add_id(uint16_t misc, const uint8_t id[20], const char *path)
{
	bytes body = {}, *to = &made.features[FEATURE_BUILD_ID];
	struct perf_event_header header = {.type = 67, .misc = misc};

	put_u32(&body, ~0u);
	put(&body, id, 20);
	put_u32(&body, 0);
	put_name(&body, path);
	header.size = (uint16_t)(sizeof(header) + body.count);
	put(to, &header, sizeof(header));
	put(to, body.data, body.count);
	vec_free(&body);
}

/* Of a path: bytes `first`, `first` + 1, … */
static void add_build_id_from(uint8_t first, const char *path)
{
	uint8_t id[20];

	for (uint8_t i = 0; i < 20; i++)
		id[i] = first + i;
	add_id(PERF_RECORD_MISC_USER, id, path);
}

static void add_build_id(const char *path)
{
	add_build_id_from(1, path);
}

static void put_header(bytes *file, uint64_t data_at)
{
	uint64_t header[13] = {0,
			       104,
			       sizeof(struct perf_event_attr) + 16,
			       104,
			       made.attr_count * (sizeof(struct perf_event_attr) + 16),
			       data_at,
			       made.records.count};

	memcpy(header, "PERFILE2", 8);
	for (size_t i = 0; i < 32; i++)
		header[9] |= (uint64_t)(made.features[i].count > 0) << i;
	put(file, header, sizeof(header));
}

static void put_features(bytes *file)
{
	size_t count = 0;
	uint64_t at;

	for (size_t i = 0; i < 32; i++)
		count += made.features[i].count > 0;
	at = file->count + 16 * count;
	for (size_t i = 0; i < 32; i++) {
		if (!made.features[i].count)
			continue;
		put_u64(file, at);
		put_u64(file, made.features[i].count);
		at += made.features[i].count;
	}
	for (size_t i = 0; i < 32; i++)
		put(file, made.features[i].data, made.features[i].count);
}

static void put_pipe(bytes *file)
{
	put(file, "PERFILE2", 8);
	put_u64(file, 16);
	for (size_t i = 0; i < made.attr_count; i++) {
		const struct perf_event_header header = {
			.type = HEADER_ATTR,
			.size = (uint16_t)(sizeof(header) + sizeof(*made.attrs) +
					   (made.without_ids ? 0 : 8))};

		put(file, &header, sizeof(header));
		put(file, &made.attrs[i], sizeof(*made.attrs));
		if (!made.without_ids)
			put_u64(file, i + 1);
	}
	put(file, made.records.data, made.records.count);
}

static bytes finished_file(void)
{
	size_t attrs = made.attr_count * (sizeof(*made.attrs) + 16);
	uint64_t ids_at = 104 + attrs, data_at = ids_at + 8 * made.attr_count;
	bytes file = {};

	if (made.pipe) {
		put_pipe(&file);
		return file;
	}
	put_header(&file, data_at);
	for (size_t i = 0; i < made.attr_count; i++) {
		put(&file, &made.attrs[i], sizeof(*made.attrs));
		put_u64(&file, made.shared_ids ? data_at + made.records.count : ids_at + 8 * i);
		put_u64(&file, made.shared_ids ? 8 * made.shared_ids : 8);
	}
	for (size_t i = 0; i < made.attr_count; i++)
		put_u64(&file, i + 1);
	put(&file, made.records.data, made.records.count);
	for (size_t i = 0; i < made.shared_ids; i++)
		put_u64(&file, 1);
	put_features(&file);
	return file;
}

/* ---- what is read ---------------------------------------------------------------------------- */

static void put_sample(FILE *out, const struct sample_event *e)
{
	fprintf(out, "%u/%u weight %" PRIu64 " events %" PRIu64 " %s", e->tgid, e->tid,
		(uint64_t)e->cpu_time, (uint64_t)e->period, e->from_user ? "user" : "kernel");
	for (unsigned int i = 0; i < e->kernel_frames + e->user_frames; i++)
		fprintf(out, " %s%" PRIx64, i == e->kernel_frames ? "| " : "",
			(uint64_t)frame_address(e->frames[i]));
	fprintf(out, " end %u", e->user_end);
	if (e->header.flags & EVENT_STACK_COPY) {
		const struct stack_copy *copy =
			(const void *)&e->frames[e->kernel_frames + e->user_frames];

		fprintf(out,
			" copy of %u at %" PRIu64 ", ip %" PRIu64 ", rdx %" PRIu64 ", r15 %" PRIu64
			", '%.*s'",
			copy->size, (uint64_t)copy->start, (uint64_t)copy->ip,
			(uint64_t)copy->general[1], (uint64_t)copy->general[15], (int)copy->size,
			copy->stack);
	}
}

static void put_mapping(FILE *out, const struct mmap_event *e)
{
	fprintf(out, "%u %" PRIx64 "+%" PRIx64 "@%" PRIx64 " %s", e->pid, (uint64_t)e->start,
		(uint64_t)e->length, (uint64_t)e->page_offset, e->path);
	if (e->header.flags & EVENT_BUILD_ID)
		fprintf(out, " id of %u bytes: %02x…", e->build_id_size, e->build_id[0]);
	else
		fprintf(out, " inode %" PRIu64, (uint64_t)e->inode);
}

static void put_meta(FILE *out, const struct meta_event *e)
{
	fprintf(out, "%s: %s", e->text, e->text + strlen(e->text) + 1);
}

/* "TIME type what". */
static void put_event(FILE *out, const struct event_header *event)
{
	const void *e = event;
	const struct comm_event *comm = e;
	const struct task_event *task = e;
	const struct lost_event *lost = e;

	fprintf(out, "%" PRIu64 " ", (uint64_t)event->time);
	switch (event->type) {
	case EVENT_SAMPLE:
		fputs("sample ", out);
		put_sample(out, e);
		break;
	case EVENT_MMAP:
		fputs("map ", out);
		put_mapping(out, e);
		break;
	case EVENT_COMM:
		fprintf(out, "%s %u/%u %s", event->flags & EVENT_COMM_EXEC ? "exec" : "comm",
			comm->pid, comm->tid, comm->comm);
		break;
	case EVENT_FORK:
	case EVENT_EXIT:
		fprintf(out, "%s %u of %u", event->type == EVENT_FORK ? "fork" : "exit", task->pid,
			task->ppid);
		break;
	case EVENT_LOST:
		fprintf(out, "lost %" PRIu64 "%s", (uint64_t)lost->count,
			lost->source == LOST_SIDEBAND ? " of processes" : "");
		break;
	case EVENT_META:
		put_meta(out, e);
		break;
	case EVENT_KALLSYMS:
		fprintf(out, "kernel code %.*s",
			(int)strcspn(((struct kallsyms_event *)e)->text, "\t"),
			((struct kallsyms_event *)e)->text);
		break;
	case EVENT_CLOCK_ANCHOR:
		fprintf(out, "anchor %" PRIu64,
			(uint64_t)((struct clock_anchor_event *)e)->realtime);
		break;
	case EVENT_END:
		fputs("end", out);
		break;
	default:
		fprintf(out, "type %u", event->type);
	}
	fputc('\n', out);
}

struct reading {
	FILE *out;
	uint64_t last;
	bool all; /* facts of the event too */
};

/* Of the last file. */
static struct perf_data_summary summary;

static int take_event(void *context, const struct event_header *event)
{
	struct reading *r = context;
	const char *key = ((const struct meta_event *)event)->text;

	assert_int_equal(event_check(event, event->size), 0);
	assert_true(event->time >= r->last);
	r->last = event->time;
	if (event->type == EVENT_COMM && ((const struct comm_event *)event)->pid + 1 <= 1)
		return 0; /* the idle task and those that have ended: always */
	if (event->type == EVENT_META && strcmp(key, META_NOT_READ) && !r->all)
		return 0;
	put_event(r->out, event);
	return 0;
}

static int read_bytes(const bytes *file, bool all, char **text)
{
	int fd = memfd_create("perf.data", MFD_CLOEXEC), err;
	struct failure failure = {};
	struct reading r = {.all = all};
	size_t size;

	assert_int_equal(write_full(fd, file->data, file->count), 0);
	r.out = open_memstream(text, &size);
	err = perf_data_read(fd, made.copies, take_event, &r, &summary, &failure);
	if (err)
		fprintf(r.out, "%s", failure.what);
	fclose(r.out);
	close(fd);
	return err;
}

static void assert_read_with(bool all, const char *expected)
{
	bytes file = finished_file();
	char *text;

	assert_int_equal(read_bytes(&file, all, &text), 0);
	assert_string_equal(text, expected);
	free(text);
	vec_free(&file);
}

static void assert_read(const char *expected)
{
	assert_read_with(false, expected);
}

static void assert_refused(const bytes *file, int error, const char *expected)
{
	char *text;

	assert_int_equal(read_bytes(file, false, &text), error);
	assert_string_equal(text, expected);
	free(text);
}

/* ---- samples --------------------------------------------------------------------------------- */

TEST(a_sample_of_a_clock_stands_for_the_time_of_its_period)
{
	begin_clock();
	add_sample(100, USER(0x401000, 0x402000));
	assert_read("100 sample 7/8 weight 250000 events 0 user | 401000 402000 end 0\n100 end\n");
}

TEST(a_sample_of_another_event_stands_for_so_many_events)
{
	begin_file();
	add_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
	add_sample_of(1, PERF_RECORD_MISC_USER, 100, 4711, USER(0x401000));
	add_sample_of(1, PERF_RECORD_MISC_USER, 101, 0, USER(0x401000));
	assert_read_with(true, "0 event: cycles\n0 event_unit: count\n0 event_period: 250000\n"
			       "100 sampling_start: 100\n"
			       "100 sample 7/8 weight 0 events 4711 user | 401000 end 0\n"
			       "101 sample 7/8 weight 0 events 1 user | 401000 end 0\n101 end\n");
}

TEST(contexts_divide_a_chain_into_kernel_and_user)
{
	begin_clock();
	add_sample_of(1, PERF_RECORD_MISC_KERNEL, 100, 1,
		      CHAIN((uint64_t)PERF_CONTEXT_KERNEL, KERNEL + 1, KERNEL + 2,
			    (uint64_t)PERF_CONTEXT_USER, 0x401000, 0x402000));
	add_sample_of(1, PERF_RECORD_MISC_KERNEL, 101, 1,
		      CHAIN((uint64_t)PERF_CONTEXT_KERNEL, KERNEL + 1));
	assert_read("100 sample 7/8 weight 1 events 0 kernel ffffffff81000001 ffffffff81000002 "
		    "| 401000 402000 end 0\n"
		    "101 sample 7/8 weight 1 events 0 kernel ffffffff81000001 end 1\n101 end\n");
}

/* A sample in user code, of which the registers have their numbers, and `size` bytes of the stack are there. */
static void add_copy(uint64_t abi, uint64_t size)
{
	bytes body = {};

	put_u64(&body, 1);
	put_u64(&body, 0x1234);
	put_u32(&body, 7);
	put_u32(&body, 8);
	put_u64(&body, 100);
	put_u64(&body, 250000);
	put_u64(&body, 0); /* an empty chain */
	put_u64(&body, abi);
	for (uint64_t i = 0; i < 24; i++)
		if (made.attrs[0].sample_regs_user >> i & 1)
			put_u64(&body, i);
	put_u64(&body, 8);
	put(&body, "abcdefgh", 8);
	put_u64(&body, size);
	add_record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, &body);
	vec_free(&body);
}

static void begin_copies(uint64_t registers)
{
	begin_clock();
	made.attrs[0].sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	made.attrs[0].sample_regs_user = registers;
	made.copies = true;
	put_u32(&made.features[FEATURE_ARCH], 8);
	put_name(&made.features[FEATURE_ARCH], "x86_64");
}

#define ALL_REGISTERS 0xff0fffull /* without segments */

TEST(a_copied_stack_comes_with_its_registers_to_be_walked)
{
	begin_copies(ALL_REGISTERS);
	add_copy(PERF_SAMPLE_REGS_ABI_64, 6);
	assert_read(
		"100 sample 7/8 weight 250000 events 0 user | 1234 end 14 copy of 6 at 7, ip 8, rdx 3, "
		"r15 23, 'abcdef'\n100 end\n");
}

TEST(a_copied_stack_that_cannot_be_walked_is_counted)
{
	static const char innermost[] =
		"100 sample 7/8 weight 250000 events 0 user | 1234 end 14\n"
		"100 not_read: copied user stacks (--call-graph dwarf), of which the innermost frame "
		"is read: 1\n100 end\n";

	begin_copies(ALL_REGISTERS);
	made.copies = false;
	add_copy(PERF_SAMPLE_REGS_ABI_64, 6);
	assert_read(innermost);
	begin_copies(ALL_REGISTERS & ~(1ull << 23)); /* without r15 */
	add_copy(PERF_SAMPLE_REGS_ABI_64, 6);
	assert_read(innermost);
	begin_copies(ALL_REGISTERS);
	add_copy(PERF_SAMPLE_REGS_ABI_32, 6);
	assert_read(innermost);
}

TEST(without_a_chain_a_stack_is_the_interrupted_instruction)
{
	begin_clock();
	made.attrs[0].sample_type &= ~(uint64_t)PERF_SAMPLE_CALLCHAIN;
	add_sample(100, 0, NULL);
	assert_read("100 sample 7/8 weight 250000 events 0 user | 1234 end 2\n100 end\n");
}

TEST(a_stack_as_deep_as_the_kernel_goes_is_cut)
{
	uint64_t chain[128] = {(uint64_t)PERF_CONTEXT_USER};
	bytes file;
	char *text;

	for (size_t i = 1; i < 128; i++)
		chain[i] = 0x400000 + i;
	begin_clock();
	add_sample(100, 128, chain);
	file = finished_file();
	assert_int_equal(read_bytes(&file, false, &text), 0);
	assert_non_null(strstr(text, "40007f end 3\n"));
	free(text);
	vec_free(&file);
}

TEST(a_chain_ends_at_a_word_that_is_no_address)
{
	begin_clock();
	add_sample(100, USER(0x401000, ~0ull, 0x402000));
	assert_read("100 sample 7/8 weight 250000 events 0 user | 401000 end 5\n100 end\n");
}

TEST(samples_of_an_event_that_the_file_does_not_describe_are_counted)
{
	begin_clock();
	add_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
	add_sample(100, USER(0x401000));
	add_sample_of(9, PERF_RECORD_MISC_USER, 101, 1, USER(0x401000));
	assert_read(
		"100 sample 7/8 weight 250000 events 0 user | 401000 end 0\n"
		"100 not_read: samples of events that the file does not describe: 1\n100 end\n");
}

TEST(events_that_share_their_ids_are_read_up_to_a_limit_that_is_said)
{
	begin_clock();
	for (int i = 0; i < 3; i++)
		add_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
	add_sample(100, USER(0x401000));
	made.shared_ids = (1u << 20) - 1;
	assert_read("100 sample 7/8 weight 250000 events 0 user | 401000 end 0\n"
		    "100 not_read: ids of events over the limit of 1,048,576: 3145724\n100 end\n");
}

TEST(the_profile_is_of_a_clock_or_the_event_with_more_samples)
{
	begin_file();
	add_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);
	add_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);
	add_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS);
	add_sample_of(2, PERF_RECORD_MISC_USER, 100, 1, USER(0x401000));
	add_sample_of(3, PERF_RECORD_MISC_USER, 101, 5, USER(0x401000));
	add_sample_of(3, PERF_RECORD_MISC_USER, 102, 5, USER(0x401000));
	assert_read("101 sample 7/8 weight 0 events 5 user | 401000 end 0\n"
		    "102 sample 7/8 weight 0 events 5 user | 401000 end 0\n"
		    "102 not_read: samples of page-faults: 1\n102 end\n");
	add_sample_of(1, PERF_RECORD_MISC_USER, 103, 9, USER(0x401000));
	assert_read(
		"103 sample 7/8 weight 9 events 0 user | 401000 end 0\n"
		"103 not_read: samples of page-faults: 1; samples of cpu-migrations: 2\n103 end\n");
}

TEST(a_task_without_a_number_is_not_idle_in_user_code)
{
	begin_clock();
	add_sample(100, USER(1));
	add_sample_by(0, 0, 1, PERF_RECORD_MISC_USER, 101, 1, USER(1));
	add_sample_by(0, 0, 1, PERF_RECORD_MISC_KERNEL, 102, 1,
		      CHAIN((uint64_t)PERF_CONTEXT_KERNEL, KERNEL, (uint64_t)PERF_CONTEXT_USER, 1));
	add_sample_by(0, 0, 1, PERF_RECORD_MISC_KERNEL, 103, 1,
		      CHAIN((uint64_t)PERF_CONTEXT_KERNEL, KERNEL));
	assert_read("100 sample 7/8 weight 250000 events 0 user | 1 end 0\n"
		    "100 not_read: samples of idle CPUs, or tasks of other pid namespaces: 1; "
		    "samples of tasks of other pid namespaces: 2\n100 end\n");
}

TEST(the_event_of_two_kinds_of_cpus_is_one)
{
	begin_file();
	add_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES | 8ull << 32);
	add_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES | 10ull << 32);
	add_sample_of(1, PERF_RECORD_MISC_USER, 100, 5, USER(0x401000));
	add_sample_of(2, PERF_RECORD_MISC_USER, 101, 6, USER(0x401000));
	assert_read("100 sample 7/8 weight 0 events 5 user | 401000 end 0\n"
		    "101 sample 7/8 weight 0 events 6 user | 401000 end 0\n101 end\n");
}

TEST(an_event_that_was_recorded_twice_counts_once)
{
	begin_file();
	add_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
	add_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES)->exclude_kernel = 1;
	add_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
	add_sample_of(1, PERF_RECORD_MISC_USER, 100, 5, USER(0x401000));
	add_sample_of(1, PERF_RECORD_MISC_USER, 101, 5, USER(0x401000));
	add_sample_of(2, PERF_RECORD_MISC_USER, 102, 6, USER(0x401000));
	add_sample_of(3, PERF_RECORD_MISC_USER, 103, 7, USER(0x401000));
	assert_read("100 sample 7/8 weight 0 events 5 user | 401000 end 0\n"
		    "101 sample 7/8 weight 0 events 5 user | 401000 end 0\n"
		    "101 not_read: samples of cycles: 1; samples of cycles: 1\n101 end\n");
}

TEST(the_same_event_of_other_cpus_is_not_added_to_one_that_excludes_more)
{
	begin_file();
	add_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES | 8ull << 32);
	add_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES | 10ull << 32)->exclude_user = 1;
	add_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES | 10ull << 32);
	add_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES | 10ull << 32);
	for (uint64_t id = 1; id <= 4; id++)
		add_sample_of(id, PERF_RECORD_MISC_USER, 99 + id, id, USER(0x401000));
	assert_read("100 sample 7/8 weight 0 events 1 user | 401000 end 0\n"
		    "102 sample 7/8 weight 0 events 3 user | 401000 end 0\n"
		    "102 not_read: samples of cycles: 1; samples of cycles: 1\n102 end\n");
}

/* As --no-period -F 4000. */
static void add_sample_at_frequency(uint32_t type, uint64_t config)
{
	bytes body = {};
	struct perf_event_attr *attr;

	begin_file();
	attr = add_event(type, config);
	attr->freq = 1;
	attr->sample_freq = 4000;
	attr->sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
	put_u64(&body, 0x1234);
	put_u32(&body, 7);
	put_u32(&body, 8);
	put_u64(&body, 100);
	add_record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, &body);
	vec_free(&body);
}

TEST(without_periods_a_clock_s_samples_have_that_of_its_frequency)
{
	add_sample_at_frequency(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);
	assert_read("100 sample 7/8 weight 250000 events 0 user | 1234 end 2\n100 end\n");
	add_sample_at_frequency(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
	assert_read("100 sample 7/8 weight 0 events 1 user | 1234 end 2\n"
		    "100 not_read: samples without a period (--no-period, at a frequency), which "
		    "count as one event: 1\n100 end\n");
}

/* ---- order ----------------------------------------------------------------------------------- */

TEST(records_of_two_rounds_are_put_in_order)
{
	begin_clock();
	add_sample(100, USER(1));
	add_sample(120, USER(2));
	add_round();
	add_sample(110, USER(3));
	add_sample(130, USER(4));
	add_round();
	add_sample(125, USER(5));
	assert_read("100 sample 7/8 weight 250000 events 0 user | 1 end 0\n"
		    "110 sample 7/8 weight 250000 events 0 user | 3 end 0\n"
		    "120 sample 7/8 weight 250000 events 0 user | 2 end 0\n"
		    "125 sample 7/8 weight 250000 events 0 user | 5 end 0\n"
		    "130 sample 7/8 weight 250000 events 0 user | 4 end 0\n130 end\n");
}

/* Samples at `time`, `time` + 1, …, in several pieces of the file's order, and rounds. */
static void add_many(uint64_t time, unsigned int count)
{
	uint64_t chain[100] = {(uint64_t)PERF_CONTEXT_USER};

	for (size_t i = 1; i < 100; i++)
		chain[i] = 0x400000 + i;
	for (unsigned int i = 0; i < count; i++) {
		add_sample(time + i, 100, chain);
		if (i % 50 == 49)
			add_round();
	}
}

/* All samples at their own times, in order. */
static void assert_in_order(uint64_t time, unsigned int count)
{
	bytes file = finished_file();
	char *text, *at, sample[64];

	assert_int_equal(read_bytes(&file, false, &text), 0);
	at = text;
	for (unsigned int i = 0; i < count; i++) {
		snprintf(sample, sizeof(sample), "%" PRIu64 " sample ", time + i);
		at = strstr(at, sample);
		if (!at)
			fail_msg("no '%s'", sample);
	}
	assert_null(strstr(text, " lost "));
	free(text);
	vec_free(&file);
}

TEST(mappings_far_ahead_of_their_place_do_not_move_later_samples)
{
	begin_clock();
	for (uint64_t i = 0; i < 1000; i++) /* as perf inject --jit puts them */
		add_mapping(1000 + 2 * i, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, 0x400000,
			    "/tmp/jitted-7-1.so");
	add_many(1000, 2000);
	assert_in_order(1000, 2000);
}

TEST(a_sample_whose_time_is_damaged_does_not_move_others)
{
	begin_clock();
	add_many(1000, 200);
	add_sample(1ull << 62, USER(1));
	add_many(1200, 400);
	assert_in_order(1000, 600);
}

TEST(rounds_of_any_size_are_put_in_order)
{
	begin_clock();
	add_many(1300, 300);
	add_many(1000, 300);
	add_round();
	assert_in_order(1000, 600);
}

/* Ends with nothing, as each record does without times. */
static void add_untimed(uint32_t type, uint16_t misc, bytes *body)
{
	put_u32(body, 7);
	put_u32(body, 7);
	put_u64(body, 1);
	add_record(type, misc, body);
	vec_free(body);
}

TEST(without_times_processes_and_mappings_keep_their_place_among_the_samples)
{
	bytes body = {};

	begin_clock();
	made.attrs[0].sample_type &= ~(uint64_t)PERF_SAMPLE_TIME;
	made.attrs[0].sample_type &= ~(uint64_t)PERF_SAMPLE_CALLCHAIN;
	for (int i = 0; i < 2; i++) {
		put_u32(&body, 7);
		put_u32(&body, 7);
		put_name(&body, i ? "gzip" : "shell");
		add_untimed(PERF_RECORD_COMM, i ? PERF_RECORD_MISC_COMM_EXEC : 0, &body);
		body = (bytes){};
		put_u64(&body, 1);
		put_u64(&body, 0x1234);
		put_u32(&body, 7);
		put_u32(&body, 7);
		put_u64(&body, 250000);
		add_record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, &body);
		vec_free(&body);
	}
	assert_read("0 comm 7/7 shell\n0 comm 7/7 shell\n"
		    "1 sample 7/7 weight 250000 events 0 user | 1234 end 2\n2 exec 7/7 gzip\n"
		    "3 sample 7/7 weight 250000 events 0 user | 1234 end 2\n"
		    "3 not_read: samples without a time, which follow the order of the file: 2\n"
		    "3 end\n");
}

TEST(samples_without_a_time_follow_the_order_of_the_file)
{
	begin_clock();
	add_sample(0, USER(1));
	add_sample(0, USER(2));
	assert_read(
		"1 sample 7/8 weight 250000 events 0 user | 1 end 0\n"
		"2 sample 7/8 weight 250000 events 0 user | 2 end 0\n"
		"2 not_read: samples without a time, which follow the order of the file: 2\n2 end\n");
}

/* ---- processes and mappings ------------------------------------------------------------------ */

TEST(processes_are_named_forked_executed_and_end)
{
	begin_clock();
	add_comm(0, 0, 7, 7, "shell");
	add_task(PERF_RECORD_FORK, 1u << 13, 0, 6, 1); /* found in /proc: its own mappings follow */
	add_task(PERF_RECORD_FORK, 0, 100, 9, 7);
	add_comm(101, PERF_RECORD_MISC_COMM_EXEC, 9, 9, "gzip");
	add_task(PERF_RECORD_EXIT, 0, 102, 9, 7);
	assert_read("0 comm 7/7 shell\n0 comm 7/7 shell\n100 fork 9 of 7\n101 exec 9/9 gzip\n"
		    "102 exit 9 of 7\n102 end\n");
}

TEST(a_file_has_no_more_lives_of_tasks_than_its_size_allows)
{
	struct perf_tasks *tasks = calloc(1, sizeof(*tasks));
	uint32_t admitted = 0;

	while (perf_tasks__admit(tasks, 400, 7, 7, true) == PERF_TASK_ADMITTED)
		admitted++;
	assert_int_equal(admitted, 4096 + 100);
	assert_int_equal(perf_tasks__admit(tasks, 400, 7, 7, false), PERF_TASK_ADMITTED);
	assert_int_equal(perf_tasks__admit(tasks, 400, 7, 8, false), PERF_TASK_OVER_LIMIT);
	assert_int_equal(perf_tasks__admit(tasks, 800, 7, 8, false), PERF_TASK_ADMITTED);
	free(tasks);
}

TEST(a_task_s_number_is_one_that_the_kernel_gives)
{
	begin_clock();
	add_comm(100, 0, 4u << 20, 4u << 20, "none");
	add_comm(101, 0, (4u << 20) - 1, (4u << 20) - 1, "last");
	assert_read("101 comm 4194303/4194303 last\n101 not_read: damaged records: 1\n101 end\n");
}

TEST(mappings_are_files_by_inode_or_build_id)
{
	begin_clock();
	add_build_id("/bin/known");
	add_mapping(100, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, 0x400000, "/bin/gzip");
	add_mapping(101, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, 0x500000, "/bin/known");
	add_mapping(102, PERF_RECORD_MMAP, PERF_RECORD_MISC_USER, 0x600000, "/bin/known");
	add_mapping(103, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID,
		    0x700000, "/lib/a.so");
	add_mapping(104, PERF_RECORD_MMAP, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_DATA,
		    0x800000, "/data");
	made.attrs[0].build_id = 1;
	assert_read("100 map 7 400000+1000@3000 /bin/gzip inode 77\n"
		    "101 map 7 500000+1000@3000 /bin/known id of 20 bytes: 01…\n"
		    "102 map 7 600000+1000@3000 /bin/known id of 20 bytes: 01…\n"
		    "103 map 7 700000+1000@3000 /lib/a.so id of 8 bytes: 01…\n103 end\n");
}

TEST(a_path_with_two_build_ids_in_the_list_has_none)
{
	begin_clock();
	add_build_id("/bin/known");
	add_build_id_from(2, "/bin/known");
	add_build_id("/bin/twice");
	add_build_id("/bin/twice");
	add_mapping(100, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, 0x400000, "/bin/known");
	add_mapping(101, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, 0x500000, "/bin/twice");
	assert_read("100 map 7 400000+1000@3000 /bin/known inode 77\n"
		    "101 map 7 500000+1000@3000 /bin/twice id of 20 bytes: 01…\n101 end\n");
}

/* The list has its build-id as it was when recording ended. */
TEST(a_path_that_was_mapped_of_two_files_has_no_build_id_of_the_list)
{
	static const char read[] = "100 map 7 400000+1000@3000 /bin/known inode 77\n"
				   "101 map 7 500000+1000@3000 /bin/known inode 78\n101 end\n";
	bytes *list = &made.features[FEATURE_BUILD_ID];

	begin_clock();
	add_build_id("/bin/known");
	add_mapping_of(77, 100, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, 0x400000, "/bin/known");
	add_mapping_of(78, 101, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, 0x500000, "/bin/known");
	assert_read(read);
	made.pipe = true; /* the list is behind its records */
	put(&made.records, list->data, list->count);
	assert_read(read);
}

TEST(a_mapping_of_an_event_without_build_ids_has_an_inode_whatever_its_flags)
{
	begin_clock();
	add_mapping(100, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID,
		    0x400000, "/bin/gzip");
	assert_read("100 map 7 400000+1000@3000 /bin/gzip inode 77\n100 end\n");
}

TEST(a_list_of_build_ids_ends_at_an_entry_that_is_longer_than_it)
{
	begin_clock();
	add_build_id("/bin/known");
	add_build_id("/bin/gzip");
	made.features[FEATURE_BUILD_ID].data[made.features[FEATURE_BUILD_ID].count / 2 + 6]++;
	add_mapping(100, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, 0x400000, "/bin/gzip");
	add_mapping(101, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, 0x500000, "/bin/known");
	assert_read("100 map 7 400000+1000@3000 /bin/gzip inode 77\n"
		    "101 map 7 500000+1000@3000 /bin/known id of 20 bytes: 01…\n101 end\n");
}

static void add_kernel_mapping(const char *path)
{
	add_mapping(0, PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL, KERNEL, path);
}

/* With the build-id of the kernel that runs. False: it does not show it. */
static bool begin_same_kernel(void)
{
	char text[64];
	uint8_t id[20];

	if (kernel_build_id__read(text, sizeof(text)) || strlen(text) != 2 * sizeof(id))
		return false;
	for (size_t i = 0; i < sizeof(id); i++) {
		unsigned int byte;

		assert_int_equal(sscanf(text + 2 * i, "%2x", &byte), 1);
		id[i] = (uint8_t)byte;
	}
	begin_clock();
	add_id(PERF_RECORD_MISC_KERNEL, id, "[kernel.kallsyms]");
	add_sample_of(1, PERF_RECORD_MISC_KERNEL, 100, 1,
		      CHAIN((uint64_t)PERF_CONTEXT_KERNEL, KERNEL + 1));
	return true;
}

TEST(the_same_kernel_has_no_names_where_its_address_was_not_recorded)
{
	static const char read[] =
		"100 sample 7/8 weight 1 events 0 kernel ffffffff81000001 end 1\n100 end\n";

	if (!begin_same_kernel())
		skip();
	add_kernel_mapping("[kernel.kallsyms]");
	assert_read(read);
	assert_int_equal(summary.kernel_names, PERF_KERNEL_UNKNOWN);
	assert_true(begin_same_kernel());
	assert_read(read); /* no mapping at all */
	assert_int_equal(summary.kernel_names, PERF_KERNEL_UNKNOWN);
}

static void add_ksymbol(uint64_t address)
{
	bytes body = {};

	put_u64(&body, address);
	put_u32(&body, 64);
	put_u32(&body, PERF_RECORD_KSYMBOL_TYPE_BPF);
	put_name(&body, "bpf_prog_1");
	put_u64(&body, 7);
	put_u64(&body, 100); /* time */
	put_u64(&body, 1);
	put_u64(&body, ~0ull); /* room for the sample_id of another listener, which is none here */
	add_record(PERF_RECORD_KSYMBOL, 0, &body);
	vec_free(&body);
}

TEST(a_module_is_named_by_the_path_of_its_mapping)
{
	static const char *const paths[][2] = {
		{"/lib/modules/6.1.0/kernel/net/ip-tables.ko.xz", "ip_tables"},
		{"/lib/modules/6.1.0/extra/nv.ko", "nv"},
		{"[ip_tables]", "ip_tables"},
		{"", ""},
	};
	char name[16];

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		perf_kernel__module_name(paths[i][0], name, sizeof(name));
		assert_string_equal(name, paths[i][1]);
	}
	perf_kernel__module_name("[a_name_of_more_than_15]", name, sizeof(name));
	assert_string_equal(name, "a_name_of_more_");
}

TEST(reports_of_kernel_code_over_a_limit_are_counted)
{
	bytes file;
	char *text;

	begin_clock();
	for (unsigned int i = 0; i < 32768 + 3; i++)
		add_ksymbol(KERNEL + 64ull * (100000 - i));
	file = finished_file();
	assert_int_equal(read_bytes(&file, false, &text), 0);
	assert_non_null(
		strstr(text, "not_read: reports of kernel code over the limit of 32,768: 3\n"));
	free(text);
	vec_free(&file);
}

TEST(programs_of_the_kernel_come_and_go)
{
	begin_clock();
	add_ksymbol(KERNEL);
	assert_read("100 kernel code ffffffff81000000 t bpf_prog_1\n100 end\n");
}

/* One mapping as `count`, each behind the one before. */
static void add_mappings(uint32_t count)
{
	size_t size, first = made.records.count;
	uint64_t start = 0x100000000;

	add_mapping(100, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, start, "/bin/pages");
	size = made.records.count - first;
	assert_int_equal(vec_reserve(&made.records, first + size * count), 0);
	for (uint32_t i = 1; i < count; i++) {
		uint8_t *copy = made.records.data + first + size * i;

		start += 0x2000;
		memcpy(copy, made.records.data + first, size);
		memcpy(copy + 16, &start, sizeof(start));
	}
	made.records.count = first + size * count;
}

TEST(mappings_over_a_limit_are_in_the_profile_as_left_out)
{
	enum { MAX = 262144 };
	const struct replay_options options = {};
	const struct profile *profile;
	struct windows *windows;
	struct failure failure = {};
	bytes file;
	int fd = memfd_create("perf.data", MFD_CLOEXEC);

	begin_clock();
	add_mappings(MAX + 3);
	file = finished_file();
	assert_int_equal(write_full(fd, file.data, file.count), 0);
	assert_int_equal(
		replay_perf_data(fd, "x", &options, &windows, &profile, &summary, &failure), 0);
	assert_int_equal(profile->outside_count, 1);
	assert_int_equal(profile->outside[0].thing, OUTSIDE_MAPPINGS);
	assert_int_equal(profile->outside[0].reason, OUTSIDE_BY_ITSELF);
	assert_int_equal(profile->outside[0].count, 3);
	windows__free(windows);
	vec_free(&file);
	close(fd);
}

/* ---- books ----------------------------------------------------------------------------------- */

TEST(losses_and_throttling_are_counted_once)
{
	begin_clock();
	add_sample(100, USER(1));
	add_numbers(PERF_RECORD_LOST, 0, 101, 1, 5);
	add_numbers(PERF_RECORD_LOST_SAMPLES, 0, 0, 8, 0);
	add_numbers(PERF_RECORD_LOST_SAMPLES, 1u << 15, 0, 100, 0); /* dropped by a filter */
	add_numbers(PERF_RECORD_THROTTLE, 0, 104, 104, 1);
	assert_read("100 sample 7/8 weight 250000 events 0 user | 1 end 0\n101 lost 5\n101 lost 3\n"
		    "101 not_read: times that the kernel stopped the event for a while "
		    "(throttling): 1\n101 end\n");
}

/* Of `id`, without a time, as perf writes it at the end. */
static void add_counter(uint64_t id, uint64_t lost)
{
	bytes body = {};

	put_u64(&body, lost);
	put_u64(&body, 0);
	put_u64(&body, 0); /* time */
	put_u64(&body, id);
	add_record(PERF_RECORD_LOST_SAMPLES, 0, &body);
	vec_free(&body);
}

TEST(losses_are_those_of_the_profile_s_event)
{
	begin_clock();
	add_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);
	add_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
	add_sample(100, USER(1));
	add_numbers(PERF_RECORD_LOST, 0, 101, 2, 6); /* of all events of a ring */
	add_counter(1, 1);
	add_counter(2, 2);
	add_counter(3, 3);
	assert_read("100 sample 7/8 weight 250000 events 0 user | 1 end 0\n101 lost 1\n"
		    "101 lost 3 of processes\n101 not_read: lost samples of other events: 2\n"
		    "101 end\n");
}

TEST(samples_that_the_kernel_never_wrote_are_lost_beside_those_of_rings)
{
	begin_clock();
	add_sample(100, USER(1));
	add_numbers(PERF_RECORD_LOST_SAMPLES, 0, 101, 8, 0);
	add_numbers(PERF_RECORD_LOST, 0, 102, 1, 5);
	assert_read(
		"100 sample 7/8 weight 250000 events 0 user | 1 end 0\n101 lost 8\n102 lost 5\n"
		"102 not_read: lost records that may be of processes and mappings (names may be "
		"wrong), or other events: 5\n102 end\n");
}

/* Does a profile have the program as its target that perf ran with these options? */
static bool has_target(const char *option)
{
	const char *const arguments[] = {"perf", "record", option, "--", "sleep"};
	bytes *to = &made.features[FEATURE_COMMAND], file;
	bool has;
	char *text;

	begin_clock();
	put_u32(to, 5);
	for (size_t i = 0; i < 5; i++) {
		put_u32(to, (uint32_t)(strlen(arguments[i]) / 8 * 8 + 8));
		put_name(to, arguments[i]);
	}
	add_sample(100, USER(1)); /* without records it has no features */
	file = finished_file();
	assert_int_equal(read_bytes(&file, true, &text), 0);
	has = strstr(text, META_TARGET ": -- sleep\n");
	free(text);
	vec_free(&file);
	return has;
}

TEST(a_program_beside_which_others_were_recorded_is_no_target)
{
	assert_true(has_target("-g"));
	assert_true(has_target("-gFmax"));
	assert_true(has_target("--all-user"));
	assert_false(has_target("-a"));
	assert_false(has_target("-ga"));
	assert_false(has_target("-gp7"));
	assert_false(has_target("--pid=7"));
}

TEST(the_wall_clock_is_the_file_s)
{
	bytes *clock;

	begin_clock();
	clock = &made.features[FEATURE_CLOCK];
	put_u32(clock, 1);
	put_u32(clock, 1);
	put_u64(clock, 1700000000000000000);
	put_u64(clock, 90);
	add_sample(100, USER(1));
	assert_read("100 anchor 1700000000000000000\n"
		    "100 sample 7/8 weight 250000 events 0 user | 1 end 0\n100 end\n");
}

/* ---- containers ------------------------------------------------------------------------------ */

TEST(a_pipe_has_its_events_among_the_records)
{
	begin_clock();
	made.pipe = true;
	add_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);
	add_sample_of(2, PERF_RECORD_MISC_USER, 100, 1, USER(2));
	add_sample(101, USER(1));
	assert_read("101 sample 7/8 weight 250000 events 0 user | 1 end 0\n"
		    "101 not_read: samples of page-faults: 1\n101 end\n");
}

TEST(an_event_of_a_pipe_without_ids_is_one_event_however_often_the_file_is_read)
{
	begin_clock();
	made.pipe = made.without_ids = true;
	add_sample(100, USER(1));
	assert_read("100 sample 7/8 weight 250000 events 0 user | 1 end 0\n100 end\n");
}

/* A frame of zstd (RFC 8878) whose blocks are what they hold. */
static void begin_frame(bytes *to)
{
	put(to, "\x28\xb5\x2f\xfd\x00\x58", 6);
}

static void put_block(bytes *to, const void *data, size_t size)
{
	put_u32(to, (uint32_t)size << 3);
	to->count--; /* three bytes */
	put(to, data, size);
}

static void add_packed(const bytes *body)
{
	add_record(81, 0, body);
}

TEST(compressed_records_are_one_stream_whose_parts_end_anywhere)
{
	bytes inner, body = {}, file;
	char *text;

	begin_clock();
	add_sample(100, USER(1));
	add_sample(101, USER(2));
	inner = made.records;
	made.records = (bytes){};
	begin_frame(&body);
	put_block(&body, inner.data, 40);
	add_packed(&body);
	body.count = 0;
	put_block(&body, inner.data + 40, inner.count - 40);
	add_packed(&body);
	add_sample(102, USER(3));
	assert_read("100 sample 7/8 weight 250000 events 0 user | 1 end 0\n"
		    "101 sample 7/8 weight 250000 events 0 user | 2 end 0\n"
		    "102 sample 7/8 weight 250000 events 0 user | 3 end 0\n102 end\n");
	file = finished_file();
	file.data[file.count - made.records.count + 8] ^= 1; /* the frame's magic */
	assert_int_equal(read_bytes(&file, false, &text), 0);
	assert_string_equal(text, "102 sample 7/8 weight 250000 events 0 user | 3 end 0\n"
				  "102 not_read: damaged compressed records: 2\n102 end\n");
	free(text);
	vec_free(&file);
	vec_free(&body);
	vec_free(&inner);
}

TEST(compressed_records_that_unpack_to_far_more_than_the_file_are_damage)
{
	bytes body = {};
	/* a block of one byte, 128 KB of it, as often as a record has room */
	static const uint8_t block[] = {0x02, 0x00, 0x10, 0x00};

	begin_clock();
	begin_frame(&body);
	for (int i = 0; i < 10000; i++)
		put(&body, block, sizeof(block));
	add_packed(&body);
	vec_free(&body);
	add_sample(102, USER(3));
	assert_read("102 sample 7/8 weight 250000 events 0 user | 3 end 0\n"
		    "102 not_read: damaged compressed records: 1\n102 end\n");
}

TEST(traces_and_their_data_behind_the_record_are_skipped)
{
	bytes body = {};

	begin_clock();
	put_u32(&body, 5);
	add_record(66, 0, &body); /* HEADER_TRACING_DATA: five bytes, as eight */
	put_name(&made.records, "tracing");
	put_u32(&body, 0);
	body.count = 0;
	put_u64(&body, 16);
	add_record(71, 0, &body); /* AUXTRACE */
	put_u64(&made.records, ~0ull);
	put_u64(&made.records, ~0ull);
	vec_free(&body);
	add_sample(100, USER(1));
	assert_read("100 sample 7/8 weight 250000 events 0 user | 1 end 0\n"
		    "100 not_read: pieces of hardware traces: 1\n100 end\n");
}

TEST(a_file_is_read_up_to_the_first_record_that_is_none)
{
	begin_clock();
	add_sample(100, USER(1));
	put_u64(&made.records, 0);
	put_u64(&made.records, 0);
	add_sample(101, USER(1));
	assert_read("100 sample 7/8 weight 250000 events 0 user | 1 end 0\n"
		    "100 not_read: bytes behind the last whole record: 88\n100 end\n");
}

TEST(a_chain_that_is_longer_than_its_record_is_damage)
{
	begin_clock();
	add_sample(100, USER(1));
	made.records.data[made.records.count - 24] = 0xff; /* how long it is */
	add_sample(101, USER(1));
	assert_read("101 sample 7/8 weight 250000 events 0 user | 1 end 0\n"
		    "101 not_read: damaged records: 1\n101 end\n");
}

TEST(files_that_would_be_misread_are_refused)
{
	bytes file;

	begin_clock();
	file = finished_file();
	memcpy(file.data, "2ELIFREP", 8);
	assert_refused(&file, -ENOTSUP,
		       "it is a perf.data file of a machine with the other byte order");
	memcpy(file.data, "PERFILE2", 8);
	file.data[8] = 20;
	assert_refused(&file, -EBADMSG, "its header has 20 bytes");
	file.data[8] = 104;
	file.data[16] = 8;
	assert_refused(&file, -EBADMSG, "its events have 8 bytes each");
	file.count = 15;
	assert_refused(&file, -EBADMSG, "it ends within its header");
	vec_free(&file);
	begin_file();
	file = finished_file();
	assert_refused(&file, -ENODATA, "it has no events");
	vec_free(&file);
}

TEST(wherever_a_file_is_cut_it_is_read_or_refused_with_a_reason)
{
	bytes file;

	begin_clock();
	add_build_id("/bin/known");
	add_mapping(99, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, 0x500000, "/bin/known");
	add_sample(100, USER(1));
	add_round();
	file = finished_file();
	for (size_t whole = file.count; file.count--;) {
		char *text;
		int err = read_bytes(&file, false, &text);

		if (err && !*text)
			fail_msg("%zu of %zu bytes: no reason", file.count, whole);
		free(text);
	}
	file.count = 0;
	vec_free(&file);
}
