/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hand-made event sequences through the recorder, and what the profile says then.
 *
 * Every test tells a story in events, one call each, with times in ns around 1 s; ev.now is the
 * time of the next event. Addresses: programs are mapped at 0x10000, libraries at 0x20000.
 */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "process/recorder.h"
#include "profile/profile_dump.h"

#define S  1000000000ull
#define MS 1000000ull

static struct {
	struct profile_builder *builder;
	struct recorder *recorder;
	struct event_handler h;
	struct event_source_requests requests;
	uint64_t now;
	uint32_t reread[16];
	size_t rereads;
	const struct profile *p;
} ev;

static void note_reread(void *context, __u32 pid)
{
	(void)context;
	if (ev.rereads < 16)
		ev.reread[ev.rereads] = pid;
	ev.rereads++;
}

static int set_up(void **state)
{
	(void)state;
	memset(&ev, 0, sizeof(ev));
	ev.requests.reread_process = note_reread;
	ev.builder = profile_builder__new();
	ev.recorder = recorder__new(ev.builder, NULL, &ev.requests);
	ev.h = recorder__handler(ev.recorder);
	ev.now = S;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	recorder__free(ev.recorder);
	profile_builder__free(ev.builder);
	return 0;
}

/* ---- events ---------------------------------------------------------------------------------- */

static struct event_header header(uint16_t flags)
{
	return (struct event_header){.flags = flags, .time = ev.now};
}

static void start_sampling(void)
{
	char value[32];

	assert_int_equal(ev.h.meta(ev.h.context, "period_ns", "1000000"), 0);
	snprintf(value, sizeof(value), "%" PRIu64, ev.now);
	assert_int_equal(ev.h.meta(ev.h.context, "sampling_start", value), 0);
}

static void tell_process(uint32_t pid, uint64_t start, bool target, bool kernel, const char *name)
{
	struct process_event *e = calloc(1, sizeof(*e) + 64);

	e->header = header(EVENT_FROM_PROC);
	e->pid = pid;
	e->ppid = 1;
	e->start_time = start;
	e->is_target = target;
	e->is_kernel = kernel;
	strcpy(e->name, name);
	assert_int_equal(ev.h.process(ev.h.context, e), 0);
	free(e);
}

static void process(uint32_t pid, uint64_t start, bool target, const char *name)
{
	tell_process(pid, start, target, false, name);
}

static void thread(uint32_t pid, uint32_t tid, uint64_t start, uint64_t cpu, const char *comm)
{
	struct thread_event e = {.header = header(EVENT_FROM_PROC),
				 .pid = pid,
				 .tid = tid,
				 .start_time = start,
				 .cpu_time = cpu};

	strcpy(e.comm, comm);
	assert_int_equal(ev.h.thread(ev.h.context, &e), 0);
}

static void fork_(uint32_t ppid, uint32_t ptid, uint32_t pid, uint32_t tid)
{
	struct task_event e = {
		.header = header(0), .pid = pid, .ppid = ppid, .tid = tid, .ptid = ptid};

	assert_int_equal(ev.h.fork(ev.h.context, &e), 0);
}

static void exit_(uint32_t pid, uint32_t tid)
{
	struct task_event e = {.header = header(0), .pid = pid, .tid = tid};

	assert_int_equal(ev.h.exit(ev.h.context, &e), 0);
}

static void comm(uint32_t pid, uint32_t tid, const char *name, uint16_t flags)
{
	struct comm_event e = {.header = header(flags), .pid = pid, .tid = tid};

	strcpy(e.comm, name);
	assert_int_equal(ev.h.comm(ev.h.context, &e), 0);
}

static void map(uint32_t pid, uint64_t start, uint64_t length, uint64_t offset, const char *path,
		uint16_t flags)
{
	struct mmap_event *e = calloc(1, sizeof(*e) + 256);

	e->header = header(flags);
	e->pid = e->tid = pid;
	e->start = start;
	e->length = length;
	e->page_offset = offset;
	e->protection = PROT_READ | PROT_EXEC;
	e->file_state = FILE_STATE_RIGHT;
	strcpy(e->path, path);
	assert_int_equal(ev.h.mmap(ev.h.context, e), 0);
	free(e);
}

static void maps_read(uint32_t pid)
{
	struct maps_read_event e = {.header = header(EVENT_FROM_PROC), .pid = pid};

	assert_int_equal(ev.h.maps_read(ev.h.context, &e), 0);
}

static void thread_cpu(uint32_t pid, uint32_t tid, uint64_t cpu, uint16_t flags)
{
	struct thread_cpu_event e = {
		.header = header(flags), .tgid = pid, .tid = tid, .cpu_time = cpu};

	assert_int_equal(ev.h.thread_cpu(ev.h.context, &e), 0);
}

/* Frames leaf first; kernel ones are full addresses, user ones made by frame_pack(); 0 ends. */
static void sample(uint32_t pid, uint32_t tid, uint64_t cpu, ...)
{
	struct sample_event *e = calloc(1, sizeof(*e) + 32 * sizeof(e->frames[0]));
	uint64_t frame;
	size_t n = 0;
	va_list frames;

	e->header = header(0);
	e->tgid = pid;
	e->tid = tid;
	e->cpu_time = cpu;
	va_start(frames, cpu);
	while ((frame = va_arg(frames, uint64_t))) {
		e->frames[n++] = frame;
		if (frame_kind(frame) == FRAME_KERNEL)
			e->kernel_frames++;
		else
			e->user_frames++;
	}
	va_end(frames);
	e->from_user = !e->kernel_frames;
	assert_int_equal(ev.h.sample(ev.h.context, e), 0);
	free(e);
}

#define IP(address)  frame_pack(FRAME_IP, (address))
#define RET(address) frame_pack(FRAME_POINTER, (address))
#define END	     ((uint64_t)0)
/* a sample at a place in the program that is mapped at 0x10000 */
#define HERE IP(0x10010), END

static void stop(void)
{
	struct event_header e = header(0);

	assert_int_equal(ev.h.end(ev.h.context, &e), 0);
}

static const struct profile *finish(void)
{
	char why[256] = "";

	assert_int_equal(recorder__finish(ev.recorder), 0);
	if (profile_builder__finish(ev.builder, &ev.p, why, sizeof(why)))
		fail_msg("%s", why);
	return ev.p;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* The n-th life (from 0) of a tid. */
static const struct profile_thread *thread_of(uint32_t tid, unsigned int n)
{
	for (size_t i = 1; i < ev.p->thread_count; i++)
		if (ev.p->threads[i].tid == tid && n-- == 0)
			return &ev.p->threads[i];
	fail_msg("no thread %u", tid);
	return NULL;
}

static const struct profile_process *process_of(const struct profile_thread *t)
{
	return &ev.p->processes[t->process.v];
}

static const char *str(struct string_id id)
{
	return profile__string(ev.p, id);
}

/* "libx+0x10 prog+0x20": dso and address, root first */
static const char *stack_text(const struct profile_thread *t, size_t i)
{
	static char text[1024];
	char part[1024];

	assert_true(i < t->samples[SAMPLE_CPU].count);
	text[0] = '\0';
	for (struct stack_id s = t->samples[SAMPLE_CPU].stack[i]; s.v;
	     s = ev.p->stacks[s.v].parent) {
		const struct profile_location *l = &ev.p->locations[ev.p->stacks[s.v].location.v];

		snprintf(part, sizeof(part), "%s+0x%" PRIx64 "%s%s", str(ev.p->dsos[l->dso.v].name),
			 l->address, *text ? " " : "", text);
		strcpy(text, part);
	}
	return text;
}

static void expect_stack(const struct profile_thread *t, size_t i, const char *wanted)
{
	assert_string_equal(stack_text(t, i), wanted);
}

static uint64_t cpu_of_tid(uint32_t tid)
{
	uint64_t sum = 0;

	for (size_t i = 1; i < ev.p->thread_count; i++)
		if (ev.p->threads[i].tid == tid)
			sum += profile_thread__cpu(&ev.p->threads[i]);
	return sum;
}

/* A process of one thread that was there before: pid 10, "prog", 5 s of CPU so far. */
static void prog(void)
{
	process(10, S / 2, true, "prog");
	thread(10, 10, S / 2, 5 * S, "prog");
	map(10, 0x10000, 0x1000, 0x400, "/bin/prog", EVENT_FROM_PROC);
	maps_read(10);
	start_sampling();
}

/* ---- frames ---------------------------------------------------------------------------------- */

static void kernel_and_user_frames(void **state)
{
	(void)state;
	prog();
	map(10, 0x20000, 0x1000, 0, "/lib/libx.so.1 (deleted)", 0);
	map(10, 0x30000, 0x1000, 0, "//anon", 0);
	map(10, 0x40000, 0x1000, 0, "[vdso]", 0);
	ev.now += MS;
	/* a signal interrupted 0x10080, which is exact; others are return addresses */
	sample(10, 10, 5 * S + MS, (uint64_t)0xffffffff81000100, (uint64_t)0xffffffff81000200,
	       IP(0x40010), RET(0x20010), frame_pack(FRAME_AFTER_SIGNAL, 0x10080),
	       frame_pack(FRAME_TABLE, 0x30040), frame_pack(FRAME_LEAF_PEEK, 0x10020), END);
	ev.now += MS;
	sample(10, 10, 5 * S + 2 * MS, (uint64_t)0xffffffff81000100, IP(0x40010), END);
	ev.now += MS;
	/* the same kernel address, now as the caller: not to be taken from the last sample */
	sample(10, 10, 5 * S + 3 * MS, (uint64_t)0xffffffff81000300, (uint64_t)0xffffffff81000100,
	       IP(0x40010), END);
	finish();
	expect_stack(thread_of(10, 0), 0,
		     "prog+0x41f [anon]+0x3003f prog+0x480 libx.so.1+0xf [vdso]+0x10 "
		     "[kernel]+0xffffffff810001ff [kernel]+0xffffffff81000100");
	expect_stack(thread_of(10, 0), 1, "[vdso]+0x10 [kernel]+0xffffffff81000100");
	expect_stack(thread_of(10, 0), 2,
		     "[vdso]+0x10 [kernel]+0xffffffff810000ff [kernel]+0xffffffff81000300");
	for (size_t i = 1; i < ev.p->location_count; i++) {
		const struct profile_location *l = &ev.p->locations[i];
		const struct profile_dso *d = &ev.p->dsos[l->dso.v];
		static const enum profile_category wanted[] = {
			[DSO_FILE] = CATEGORY_USER,
			[DSO_VDSO] = CATEGORY_LIBRARY,
			[DSO_KERNEL] = CATEGORY_KERNEL,
			[DSO_JIT] = CATEGORY_JIT,
		};

		assert_int_equal(l->category, d->is_library ? CATEGORY_LIBRARY : wanted[d->kind]);
		if (d->is_library) {
			assert_true(d->deleted);
			assert_string_equal(str(d->path), "/lib/libx.so.1");
		}
	}
	assert_int_equal(ev.p->unmapped_frames, 0);
}

/* The call is the last thing in its mapping: the return address belongs to the next file. */
static void return_address_at_a_boundary(void **state)
{
	(void)state;
	prog();
	map(10, 0x11000, 0x1000, 0, "/lib/next.so", 0);
	ev.now += MS;
	sample(10, 10, 5 * S + MS, IP(0x11000), RET(0x11000), END);
	finish();
	expect_stack(thread_of(10, 0), 0, "prog+0x13ff next.so+0x0");
}

static void frames_without_mapping(void **state)
{
	const struct profile_location *l;

	(void)state;
	prog();
	for (int i = 0; i < 2; i++) {
		ev.now += MS;
		sample(10, 10, 5 * S + MS, IP(0x10010), RET(0x99001), RET(0x10021), END);
	}
	assert_int_equal(ev.rereads, 2); /* once a sample */
	assert_int_equal(ev.reread[0], 10);
	/* the answer: now the same frames mean something */
	map(10, 0x99000, 0x1000, 0, "/lib/late.so", EVENT_FROM_PROC);
	map(10, 0x10000, 0x1000, 0x400, "/bin/prog", EVENT_FROM_PROC);
	maps_read(10);
	ev.now += MS;
	sample(10, 10, 5 * S + MS, IP(0x10010), RET(0x99001), RET(0x10021), END);
	finish();
	assert_int_equal(ev.p->unmapped_frames, 2);
	expect_stack(thread_of(10, 0), 1, "prog+0x420 [unknown]+0x99000 prog+0x410");
	expect_stack(thread_of(10, 0), 2, "prog+0x420 late.so+0x0 prog+0x410");
	l = &ev.p->locations
		     [ev.p->stacks[ev.p->stacks[thread_of(10, 0)->samples[SAMPLE_CPU].stack[0].v]
					   .parent.v]
			      .location.v];
	assert_int_equal(l->category, CATEGORY_OTHER);
	assert_int_equal(l->process.v, thread_of(10, 0)->process.v);
}

static void no_frames_at_all(void **state)
{
	(void)state;
	prog();
	ev.now += MS;
	ev.h.sample(ev.h.context, &(struct sample_event){.header = header(0),
							 .tgid = 10,
							 .tid = 10,
							 .cpu_time = 5 * S,
							 .user_end = STACK_END_DISABLED});
	ev.now += MS;
	sample(10, 10, 5 * S, END); /* from user code */
	finish();
	expect_stack(thread_of(10, 0), 0, "[kernel]+0x0");
	expect_stack(thread_of(10, 0), 1, "[unknown]+0x0");
	assert_int_equal(ev.p->stack_ends[STACK_END_DISABLED], 1);
}

static void run_time_code_by_name(void **state)
{
	static const struct {
		const char *path;
		enum dso_kind kind;
	} cases[] = {
		{"//anon", DSO_JIT},	  {"", DSO_JIT},
		{"[heap]", DSO_JIT},	  {"[stack]", DSO_JIT},
		{"[anon:v8]", DSO_JIT},	  {"/memfd:doublemapper (deleted)", DSO_JIT},
		{"/dev/zero", DSO_JIT},	  {"anon_inode:[io_uring]", DSO_JIT},
		{"/bin/tool", DSO_FILE},  {"/tmp/odd name\n.so", DSO_FILE},
		{"[vsyscall]", DSO_FILE}, {"[vdso]", DSO_VDSO},
	};

	(void)state;
	prog();
	for (uint64_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		map(10, 0x20000, 0x1000, 0, cases[i].path, 0);
		ev.now += MS;
		sample(10, 10, 5 * S, IP(0x20010), END);
	}
	map(10, 0xffffffffff600000, 0x1000, 0, "[vsyscall]", 0);
	ev.now += MS;
	sample(10, 10, 5 * S, IP(0xffffffffff600010), END);
	finish();
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct profile_thread *t = thread_of(10, 0);
		const struct profile_location *l =
			&ev.p->locations[ev.p->stacks[t->samples[SAMPLE_CPU].stack[i].v]
						 .location.v];

		assert_int_equal(ev.p->dsos[l->dso.v].kind, cases[i].kind);
		assert_int_equal(l->address, cases[i].kind == DSO_JIT ? 0x20010 : 0x10);
		assert_int_equal(l->process.v != 0, cases[i].kind == DSO_JIT);
	}
	expect_stack(thread_of(10, 0), sizeof(cases) / sizeof(*cases), "[vsyscall]+0x10");
}

/* ---- mappings -------------------------------------------------------------------------------- */

static void dlopen_over_an_old_mapping(void **state)
{
	(void)state;
	prog();
	map(10, 0x20000, 0x3000, 0, "/lib/old.so", 0);
	ev.now += MS;
	sample(10, 10, 5 * S, IP(0x21010), RET(0x10020), END);
	map(10, 0x21000, 0x1000, 0x5000, "/lib/new.so", 0);
	ev.now += MS;
	sample(10, 10, 5 * S, IP(0x21010), RET(0x10020), END);
	ev.now += MS;
	sample(10, 10, 5 * S, IP(0x22010), RET(0x10020), END);
	finish();
	expect_stack(thread_of(10, 0), 0, "prog+0x41f old.so+0x1010");
	expect_stack(thread_of(10, 0), 1, "prog+0x41f new.so+0x5010");
	expect_stack(thread_of(10, 0), 2, "prog+0x41f old.so+0x2010");
}

static void munmap_is_seen_by_a_reading(void **state)
{
	(void)state;
	prog();
	map(10, 0x20000, 0x1000, 0, "/lib/gone.so", 0);
	ev.now += MS;
	sample(10, 10, 5 * S, IP(0x20010), END);
	map(10, 0x10000, 0x1000, 0x400, "/bin/prog", EVENT_FROM_PROC);
	maps_read(10);
	ev.now += MS;
	sample(10, 10, 5 * S, IP(0x20010), END);
	finish();
	expect_stack(thread_of(10, 0), 0, "gone.so+0x10");
	expect_stack(thread_of(10, 0), 1, "[unknown]+0x20010");
	assert_int_equal(recorder__stats(ev.recorder).stale_mappings, 1);
}

static void flips_of_a_jit_page_cost_nothing(void **state)
{
	size_t dsos;

	(void)state;
	prog();
	map(10, 0x30000, 0x1000, 0x30000, "//anon", 0);
	dsos = profile_builder__dso_count(ev.builder);
	for (int i = 0; i < 1000; i++)
		map(10, 0x30000, 0x1000, 0x30000, "//anon", 0);
	assert_int_equal(recorder__stats(ev.recorder).known_mappings, 1000);
	assert_int_equal(profile_builder__dso_count(ev.builder), dsos);
}

/* ---- fork, exec, exit ------------------------------------------------------------------------ */

static void fork_storm(void **state)
{
	(void)state;
	prog();
	for (uint32_t pid = 1000; pid < 101000; pid++) {
		ev.now += MS;
		fork_(10, 10, pid, pid);
		if (pid % 10000 == 0) {
			map(pid, 0x20000, 0x1000, 0, "/lib/own.so", 0);
			sample(pid, pid, MS / 2, IP(0x20010), RET(0x10020), END);
		}
		exit_(pid, pid);
	}
	ev.now += MS;
	sample(10, 10, 5 * S, IP(0x20010), RET(0x10020), END);
	finish();
	/* the ten that were sampled, and the parent */
	assert_int_equal(ev.p->process_count, 1 + 11);
	assert_int_equal(ev.p->thread_count, 1 + 11);
	expect_stack(thread_of(20000, 0), 0, "prog+0x41f own.so+0x10");
	assert_string_equal(str(process_of(thread_of(20000, 0))->name), "prog");
	assert_int_equal(process_of(thread_of(20000, 0))->ppid, 10);
	assert_true(process_of(thread_of(20000, 0))->is_target);
	/* what a child maps is not its parent's */
	expect_stack(thread_of(10, 0), 0, "prog+0x41f [unknown]+0x20010");
}

static void exec_replaces_names_and_maps(void **state)
{
	const struct profile_thread *t;

	(void)state;
	prog();
	ev.now += MS;
	fork_(10, 10, 11, 11);
	ev.now += MS;
	sample(11, 11, MS, HERE);
	ev.now += MS;
	thread_cpu(11, 11, MS + 200, 0); /* the next life's to account for */
	comm(11, 11, "tool", EVENT_COMM_EXEC);
	ev.now += MS;
	sample(11, 11, 2 * MS + 300, HERE); /* the new image is not mapped yet */
	map(11, 0x10000, 0x1000, 0, "/bin/tool", 0);
	ev.now += MS;
	sample(11, 11, 4 * MS, HERE);
	ev.now += MS;
	thread_cpu(11, 11, 4 * MS + 7, EVENT_EXITED);
	exit_(11, 11);
	finish();
	t = thread_of(11, 0);
	assert_string_equal(str(process_of(t)->name), "prog");
	assert_string_equal(str(t->name), "prog");
	expect_stack(t, 0, "prog+0x410");
	assert_int_equal(t->end, S + 3 * MS);
	assert_int_equal(t->cpu_tail, 0);
	t = thread_of(11, 1);
	assert_string_equal(str(process_of(t)->name), "tool");
	assert_string_equal(str(t->samples[SAMPLE_CPU].comm[0]), "tool");
	assert_true(t->is_main);
	assert_int_equal(t->start, S + 3 * MS);
	assert_int_equal(t->end, S + 6 * MS);
	expect_stack(t, 0, "[unknown]+0x10010");
	expect_stack(t, 1, "tool+0x10");
	assert_int_equal(t->samples[SAMPLE_CPU].weight[0], MS + 300);
	assert_int_equal(t->cpu_tail, 7);
	assert_int_equal(cpu_of_tid(11), 4 * MS + 7);
}

/* Thread 12 calls execve: it goes on as 11, with its own clock, and all others are gone. */
static void exec_by_another_thread(void **state)
{
	(void)state;
	prog();
	ev.now += MS;
	fork_(10, 10, 11, 11);
	fork_(11, 11, 11, 12);
	ev.now += MS;
	sample(11, 11, 900000, HERE);
	sample(11, 12, 800000, HERE);
	ev.now += MS;
	thread_cpu(11, 11, 950000, EVENT_EXITED);
	exit_(11, 11);
	comm(11, 11, "tool", EVENT_COMM_EXEC);
	ev.now += MS;
	sample(11, 11, 1900000, HERE);
	finish();
	assert_int_equal(cpu_of_tid(11) + cpu_of_tid(12), 950000 + 1900000);
	assert_int_equal(profile_thread__cpu(thread_of(11, 0)), 950000);
	assert_int_equal(profile_thread__cpu(thread_of(12, 0)), 800000);
	assert_int_equal(thread_of(11, 1)->samples[SAMPLE_CPU].weight[0], 1100000);
	assert_int_equal(thread_of(12, 0)->end, S + 3 * MS);
}

static void leader_exits_first(void **state)
{
	const struct profile_process *p;

	(void)state;
	prog();
	fork_(10, 10, 10, 12);
	ev.now += MS;
	sample(10, 10, 5 * S + MS, HERE);
	exit_(10, 10);
	ev.now += 3 * S; /* long after the leader's grace */
	sample(10, 12, S, HERE);
	ev.now += MS;
	exit_(10, 12);
	ev.now += MS;
	stop();
	finish();
	p = process_of(thread_of(12, 0));
	assert_int_equal(thread_of(10, 0)->process.v, thread_of(12, 0)->process.v);
	assert_int_equal(thread_of(10, 0)->end, S + MS);
	assert_int_equal(p->end, 4 * S + 2 * MS);
	assert_int_equal(ev.p->process_count, 2);
	expect_stack(thread_of(12, 0), 0, "prog+0x410");
}

static void a_sample_after_the_exit_record(void **state)
{
	const struct profile_thread *t;

	(void)state;
	prog();
	ev.now += MS;
	fork_(10, 10, 11, 11);
	ev.now += MS;
	exit_(11, 11);
	ev.now += 1000;
	sample(11, 11, MS, (uint64_t)0xffffffff81000100, END);
	ev.now += 1000;
	thread_cpu(11, 11, MS + 500, EVENT_EXITED);
	ev.now += MS;
	stop();
	finish();
	t = thread_of(11, 0);
	assert_int_equal(t->samples[SAMPLE_CPU].count, 1);
	assert_int_equal(t->end, S + 2 * MS + 1000);
	assert_int_equal(process_of(t)->end, t->end);
	assert_int_equal(profile_thread__cpu(t), MS + 500);
	assert_string_equal(str(process_of(t)->name), "prog");
}

/* Not all of its threads were known: the last known one is not the last one. */
static void a_sign_of_life_after_the_end(void **state)
{
	(void)state;
	prog();
	ev.now += MS;
	exit_(10, 10);
	ev.now += MS;
	sample(10, 12, MS, HERE);
	ev.now += MS;
	stop();
	finish();
	assert_int_equal(process_of(thread_of(12, 0))->end, 0);
	assert_int_equal(thread_of(12, 0)->process.v, thread_of(10, 0)->process.v);
	expect_stack(thread_of(12, 0), 0, "prog+0x410");
}

static void pid_reuse(void **state)
{
	(void)state;
	prog();
	ev.now += MS;
	fork_(10, 10, 11, 11);
	comm(11, 11, "first", EVENT_COMM_EXEC);
	map(11, 0x10000, 0x1000, 0, "/bin/first", 0);
	ev.now += MS;
	sample(11, 11, MS, HERE);
	exit_(11, 11);
	ev.now += MS;
	fork_(10, 10, 11, 11);
	ev.now += MS;
	sample(11, 11, MS / 2, HERE);
	/* and once more, without an exit record: only /proc tells, by the start time */
	ev.now += S;
	process(11, ev.now - 10 * MS, false, "third");
	thread(11, 11, ev.now - 10 * MS, MS, "third");
	map(11, 0x10000, 0x1000, 0, "/bin/third", EVENT_FROM_PROC);
	maps_read(11);
	ev.now += MS;
	sample(11, 11, 2 * MS, HERE);
	stop();
	finish();
	expect_stack(thread_of(11, 0), 0, "first+0x10");
	expect_stack(thread_of(11, 1), 0, "prog+0x410");
	expect_stack(thread_of(11, 2), 0, "third+0x10");
	assert_string_equal(str(process_of(thread_of(11, 2))->name), "third");
	assert_int_equal(thread_of(11, 1)->samples[SAMPLE_CPU].weight[0], MS / 2);
	assert_int_equal(thread_of(11, 2)->samples[SAMPLE_CPU].weight[0], MS);
	assert_int_not_equal(thread_of(11, 1)->end, 0);
	assert_int_equal(thread_of(11, 2)->end, 0);
}

static void tid_reuse_in_another_process(void **state)
{
	(void)state;
	prog();
	fork_(10, 10, 10, 12);
	ev.now += MS;
	sample(10, 12, MS, HERE);
	/* its exit record was lost */
	ev.now += MS;
	fork_(10, 10, 20, 20);
	fork_(20, 20, 20, 12);
	ev.now += MS;
	sample(20, 12, MS / 2, HERE);
	finish();
	assert_int_equal(process_of(thread_of(12, 0))->pid, 10);
	assert_int_equal(thread_of(12, 0)->end, S + 2 * MS);
	assert_int_equal(process_of(thread_of(12, 1))->pid, 20);
	assert_int_equal(thread_of(12, 1)->samples[SAMPLE_CPU].weight[0], MS / 2);
}

/* /proc was being read when the thread was born: it is told first, the record comes after. */
static void told_before_its_fork_record(void **state)
{
	(void)state;
	prog();
	process(11, S - 5 * MS, true, "child");
	thread(11, 11, S - 5 * MS, 100, "child");
	ev.now += MS;
	fork_(10, 10, 11, 11);
	ev.now += MS;
	sample(11, 11, MS, HERE);
	finish();
	assert_int_equal(thread_of(11, 0)->samples[SAMPLE_CPU].weight[0], MS);
	assert_string_equal(str(process_of(thread_of(11, 0))->name), "child");
	assert_int_equal(ev.p->process_count, 3);
}

static void ended_lives_are_forgotten(void **state)
{
	(void)state;
	prog();
	fork_(10, 10, 11, 11);
	exit_(11, 11);
	ev.now += 3 * S;
	/* nobody knows it any more: a new life of unknown name, and a question */
	sample(11, 11, 10 * S, HERE);
	finish();
	assert_int_equal(ev.reread[0], 11);
	assert_string_equal(str(process_of(thread_of(11, 0))->name), "[unknown]");
	/* what it used before is not known: one period at most */
	assert_int_equal(thread_of(11, 0)->samples[SAMPLE_CPU].weight[0], MS);
	assert_true(thread_of(11, 0)->start <= thread_of(11, 0)->samples[SAMPLE_CPU].time[0] - MS);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void names_as_they_were(void **state)
{
	const struct profile_thread *t;

	(void)state;
	prog();
	ev.now += MS;
	sample(10, 10, 5 * S, HERE);
	fork_(10, 10, 10, 12);
	comm(10, 10, "renamed", 0);
	ev.now += MS;
	sample(10, 10, 5 * S, HERE);
	sample(10, 12, 5, HERE);
	comm(10, 12, "worker", 0);
	ev.now += MS;
	sample(10, 12, 6, HERE);
	finish();
	t = thread_of(10, 0);
	assert_string_equal(str(t->samples[SAMPLE_CPU].comm[0]), "prog");
	assert_string_equal(str(t->samples[SAMPLE_CPU].comm[1]), "renamed");
	assert_string_equal(str(t->name), "renamed");
	assert_string_equal(str(process_of(t)->name), "renamed");
	t = thread_of(12, 0);
	assert_string_equal(str(t->samples[SAMPLE_CPU].comm[0]), "prog");
	assert_string_equal(str(t->samples[SAMPLE_CPU].comm[1]), "worker");
	assert_false(t->is_main);
	assert_int_equal(t->process.v, thread_of(10, 0)->process.v);
}

/* ---- CPU time -------------------------------------------------------------------------------- */

static void cpu_deltas(void **state)
{
	const struct profile_thread *t;

	(void)state;
	prog();
	ev.now += MS;
	fork_(10, 10, 10, 12);
	ev.now += MS;
	sample(10, 10, 5 * S + 2 * MS - 100, HERE);
	sample(10, 12, 900, HERE);
	ev.now += MS;
	sample(10, 12, 800, HERE); /* so the one before was too large by 100 */
	ev.now += MS;
	sample(10, 12, 1000, HERE);
	thread_cpu(10, 10, 5 * S + 3 * MS, 0); /* read meanwhile */
	ev.now += MS;
	sample(10, 10, 5 * S + 4 * MS, HERE);
	thread_cpu(10, 10, 5 * S + 4 * MS + 50, 0);
	thread_cpu(10, 12, 1001, 0);
	stop();
	finish();
	t = thread_of(10, 0);
	assert_int_equal(t->samples[SAMPLE_CPU].weight[0],
			 2 * MS - 100); /* not what it used before */
	assert_int_equal(t->samples[SAMPLE_CPU].weight[1], 2 * MS + 100);
	assert_int_equal(t->cpu_tail, 50);
	t = thread_of(12, 0);
	assert_int_equal(t->samples[SAMPLE_CPU].weight[0], 800);
	assert_int_equal(t->samples[SAMPLE_CPU].weight[1], 0);
	assert_int_equal(t->samples[SAMPLE_CPU].weight[2], 200);
	assert_int_equal(t->cpu_tail, 1);
}

static void cpu_before_the_start_does_not_count(void **state)
{
	(void)state;
	process(10, S / 2, true, "prog");
	thread(10, 10, S / 2, 5 * S, "prog");
	map(10, 0x10000, 0x1000, 0x400, "/bin/prog", EVENT_FROM_PROC);
	process(20, S / 2, true, "idler");
	thread(20, 20, S / 2, 5 * S, "idler");
	process(30, S / 2, true, "shell");
	thread(30, 30, S / 2, 5 * S, "shell");
	thread_cpu(10, 10, 6 * S, 0); /* later baselines */
	thread_cpu(20, 20, 6 * S, 0);
	ev.now += 100 * MS; /* it runs on while the rest of the system is read */
	start_sampling();
	ev.now += MS;
	sample(10, 10, 6 * S + 101 * MS, HERE);
	ev.now += MS;
	/* an execve does not bring it back */
	comm(10, 10, "tool", EVENT_COMM_EXEC);
	sample(10, 10, 6 * S + 102 * MS, HERE);
	/* nor one before the first sample */
	comm(30, 30, "tool", EVENT_COMM_EXEC);
	ev.now += MS;
	sample(30, 30, 6 * S, HERE);
	ev.now += 10 * MS;
	sample(20, 20, 6 * S + 300, HERE);
	finish();
	assert_int_equal(cpu_of_tid(20), 300);
	assert_int_equal(cpu_of_tid(30), 3 * MS);
	assert_int_equal(thread_of(10, 0)->samples[SAMPLE_CPU].weight[0], MS);
	assert_int_equal(cpu_of_tid(10), 2 * MS);
}

/* ---- the session ----------------------------------------------------------------------------- */

static void an_empty_profile_has_its_threads(void **state)
{
	(void)state;
	process(10, S / 2, true, "prog");
	thread(10, 10, S / 2, 5 * S, "prog");
	thread(10, 12, S / 2, 5 * S, "worker");
	process(20, S / 2, false, "other");
	thread(20, 20, S / 2, 5 * S, "other");
	process(30, S / 2, true, "held");
	thread(30, 30, S / 2, 0, "held");
	start_sampling();
	/* a command that was held: what it was before is nobody's business */
	comm(30, 30, "command", EVENT_COMM_EXEC);
	ev.now += S;
	thread_cpu(10, 12, 5 * S + 9, 0);
	stop();
	finish();
	assert_int_equal(ev.p->thread_count, 4);
	assert_string_equal(str(thread_of(30, 0)->name), "command");
	assert_string_equal(str(thread_of(12, 0)->name), "worker");
	assert_int_equal(thread_of(12, 0)->cpu_tail, 9);
	assert_int_equal(thread_of(12, 0)->samples[SAMPLE_CPU].count, 0);
	assert_int_equal(ev.p->start, S);
	assert_int_equal(ev.p->end, 2 * S);
	assert_false(ev.p->cut_short);
}

/* The whole system is not asked for by name: what did not run is not in the profile. */
static void the_whole_system_has_what_ran(void **state)
{
	(void)state;
	prog();
	tell_process(2, S / 2, true, true, "kthreadd");
	thread(2, 2, S / 2, 0, "kthreadd");
	process(20, S / 2, true, "other");
	thread(20, 20, S / 2, 5 * S, "other");
	ev.now += MS;
	sample(20, 20, 5 * S + MS, (uint64_t)0xffffffff81000100, END);
	finish();
	assert_int_equal(ev.p->thread_count, 2);
}

static void clocks_books_and_losses(void **state)
{
	struct clock_anchor_event anchor = {
		.monotonic = S - 5, .realtime = 77 * S, .tsc_khz = 2000000, .error_ns = 100};
	struct books_event books = {.cpu = 1,
				    .lines = BOOK_COUNT,
				    .period = 1000,
				    .time_running = 5500,
				    .count = {4, 1}};
	struct lost_event lost = {.source = LOST_SIDEBAND, .count = 3, .since = S + 1};

	(void)state;
	anchor.header = header(EVENT_NEW_EPOCH);
	anchor.extrapolation_error_ns = -900000; /* of another epoch */
	ev.h.clock_anchor(ev.h.context, &anchor);
	prog();
	fork_(10, 10, 11, 11);
	fork_(10, 10, 12, 12);
	exit_(12, 12);
	anchor.header = header(0);
	anchor.extrapolation_error_ns = -50;
	ev.h.clock_anchor(ev.h.context, &anchor);
	anchor.header = header(EVENT_NEW_EPOCH);
	ev.h.clock_anchor(ev.h.context, &anchor);
	ev.h.books(ev.h.context, &books);
	books.time_running = 6100;
	ev.h.books(ev.h.context, &books);
	ev.now += MS;
	lost.header = header(0);
	ev.h.lost(ev.h.context, &lost);
	/* every living process may be wrong now */
	assert_int_equal(ev.rereads, 2);
	assert_true((ev.reread[0] == 10 && ev.reread[1] == 11) ||
		    (ev.reread[0] == 11 && ev.reread[1] == 10));
	ev.now += MS;
	sample(10, 10, 5 * S, HERE);
	finish(); /* without an end */
	assert_true(ev.p->cut_short);
	assert_int_equal(ev.p->end, S + 2 * MS);
	assert_int_equal(ev.p->start_realtime, 77 * S + 5);
	assert_int_equal(ev.p->tsc_khz, 2000000);
	assert_int_equal(ev.p->clock_error_ns, 150);
	assert_int_equal(ev.p->clock_epochs, 2);
	assert_int_equal(ev.p->period, 1000000); /* META's, not the books' */
	assert_int_equal(ev.p->books_count, 1);
	assert_int_equal(ev.p->books[0].due, 6);
	assert_int_equal(ev.p->lost[LOST_SIDEBAND], 3);
	assert_int_equal(ev.p->lost_ranges[0].since, S + 1);
}

static void samples_before_the_start_are_kept(void **state)
{
	(void)state;
	prog();
	ev.now -= MS;
	sample(10, 10, 5 * S, HERE);
	finish();
	assert_int_equal(thread_of(10, 0)->samples[SAMPLE_CPU].count, 1);
	assert_true(ev.p->start < S - MS);
}

/* ---- symbols --------------------------------------------------------------------------------- */

struct symbol_fixture {
	struct symbol_event event;
	struct symbol_event_frame outer;
	char strings[32];
};

static void tell_symbols(uint32_t dso, uint64_t address, size_t size)
{
	struct symbol_dso_event of = {.dso = dso, .state = SYMBOL_STATE_RESOLVED};
	struct symbol_fixture f = {
		.event = {.header = {.size = size},
			  .address = address,
			  .elf_address = 0x1410,
			  .frames = 1},
		.outer = {.function_address = 0x1400,
			  .function_size = 32,
			  .line = 5,
			  .column = 6,
			  .definition_line = 3,
			  .name_size = 5,
			  .file_size = 4},
		.strings = "main\0a.c",
	};

	assert_int_equal(ev.h.symbol_dso(ev.h.context, &of), 0);
	assert_int_equal(ev.h.symbol(ev.h.context, &f.event), 0);
}

static void symbols_from_the_stream(void **state)
{
	const struct profile_location *l;
	const struct profile_line *line;
	const struct profile_function *f;
	uint32_t dso = 1; /* the first that was mapped */

	(void)state;
	prog();
	ev.now += MS;
	sample(10, 10, 5 * S, IP(0x10010), RET(0x10021), END);
	tell_symbols(dso, 0x410, sizeof(struct symbol_fixture));
	tell_symbols(dso, 0x999, sizeof(struct symbol_fixture)); /* of no location */
	tell_symbols(77, 0x410, sizeof(struct symbol_fixture));	 /* of no dso */
	ev.h.symbols_end(ev.h.context, &(struct event_header){});
	finish();
	assert_true(ev.p->finished_symbols);
	assert_int_equal(ev.p->dsos[dso].symbol_state, SYMBOL_STATE_RESOLVED);
	l = &ev.p->locations[ev.p->stacks[thread_of(10, 0)->samples[SAMPLE_CPU].stack[0].v]
				     .location.v];
	assert_int_equal(l->elf_address, 0x1410);
	line = &ev.p->lines[l->first_line];
	assert_int_equal(line->line, 5);
	assert_string_equal(str(line->file), "a.c");
	f = &ev.p->functions[line->function.v];
	assert_string_equal(str(f->name), "main");
	assert_int_equal(f->address, 0x1400);
	assert_int_equal(f->definition_line, 3);
}

/* Whatever is cut off or wrong in it, a symbol event does no harm. */
static void damaged_symbol_events(void **state)
{
	(void)state;
	prog();
	ev.now += MS;
	sample(10, 10, 5 * S, HERE);
	for (size_t size = sizeof(struct symbol_event); size < sizeof(struct symbol_fixture);
	     size++) {
		/* exactly as long as it says, so that a sanitizer sees a byte too far */
		struct symbol_event *e = malloc(size);
		struct symbol_fixture f = {
			.event = {.header = {.size = size}, .address = 0x411, .frames = UINT32_MAX},
			.outer = {.name_size = 60000, .file_size = 60000},
		};

		memcpy(e, &f, size);
		assert_int_equal(ev.h.symbol(ev.h.context, e), 0);
		e->address = 0x410;
		ev.h.symbol_dso(ev.h.context, &(struct symbol_dso_event){.dso = 1, .state = 99});
		assert_int_equal(ev.h.symbol(ev.h.context, e), 0);
		free(e);
	}
	finish();
}

/* ---- the whole ------------------------------------------------------------------------------- */

static char *story(void)
{
	char *text;
	size_t size;
	FILE *out;

	set_up(NULL);
	prog();
	fork_(10, 10, 11, 11);
	ev.now += MS;
	sample(10, 10, 5 * S + MS, (uint64_t)0xffffffff81000100, IP(0x10010), END);
	sample(11, 11, MS, IP(0x10010), RET(0x99001), END);
	comm(11, 11, "tool", EVENT_COMM_EXEC);
	ev.now += MS;
	exit_(11, 11);
	stop();
	finish();
	out = open_memstream(&text, &size);
	profile_dump(ev.p, out);
	fclose(out);
	tear_down(NULL);
	return text;
}

static const char story_dump[] =
	"session start=1000000000 end=1002000000 realtime=0 period=1000000 samples=2\n"
	"clock tsc_khz=0 error=0 epochs=0\n"
	"meta key=\"period_ns\" value=\"1000000\"\n"
	"meta key=\"sampling_start\" value=\"1000000000\"\n"
	"ends root=2\n"
	"frames ip=2\n"
	"frames frame-pointer=1\n"
	"unmapped-frames 1\n"
	"dso 1 file path=\"/bin/prog\" name=\"prog\" file=RIGHT symbols=PENDING\n"
	"dso 2 kernel path=\"[kernel.kallsyms]\" name=\"[kernel]\" file=NONE symbols=PENDING\n"
	"dso 3 unknown path=\"[unknown]\" name=\"[unknown]\" file=NONE symbols=PENDING\n"
	"function 1 dso=1 name=\"[prog]\" address=? size=0 file=\"\" at=0:0\n"
	"function 2 dso=2 name=\"[kernel]\" address=? size=0 file=\"\" at=0:0\n"
	"function 3 dso=3 name=\"[unknown]\" address=? size=0 file=\"\" at=0:0\n"
	"location 1 dso=1 user address=0x410 elf=? process=0\n"
	"  line function=1 file=\"\" at=0:0\n"
	"location 2 dso=2 kernel address=0xffffffff81000100 elf=? process=0\n"
	"  line function=2 file=\"\" at=0:0\n"
	"location 3 dso=3 other address=0x99000 elf=? process=2\n"
	"  line function=3 file=\"\" at=0:0\n"
	"stack 1 parent=0 location=1 depth=1\n"
	"stack 2 parent=1 location=2 depth=2\n"
	"stack 3 parent=0 location=3 depth=1\n"
	"stack 4 parent=3 location=1 depth=2\n"
	"process 1 pid=10 ppid=1 name=\"prog\" start=1000000000 end=0 target\n"
	"process 2 pid=11 ppid=10 name=\"prog\" start=1000000000 end=1001000000 target\n"
	"thread 1 process=1 tid=10 name=\"prog\" start=1000000000 end=0 tail=0 main\n"
	"  sample 1001000000 stack=2 cpu=1000000 comm=\"prog\"\n"
	"thread 2 process=2 tid=11 name=\"prog\" start=1000000000 end=1001000000 tail=0 main\n"
	"  sample 1001000000 stack=4 cpu=1000000 comm=\"prog\"\n";

static void same_events_same_profile(void **state)
{
	char *one = story(), *two = story();

	(void)state;
	assert_string_equal(one, story_dump);
	assert_string_equal(two, one);
	free(one);
	free(two);
}

/* ---- any order at all ------------------------------------------------------------------------ */

static uint64_t seed;

static uint64_t random_below(uint64_t limit)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 33) % limit;
}

/* One event about few tasks, with no regard to whether it makes sense. */
static void random_event(void)
{
	static const char *const names[] = {"a", "b", "c", ""};
	static const char *const paths[] = {"/bin/x", "/lib/y.so", "//anon", "[vdso]"};
	uint32_t pid = 1 + random_below(4), tid = 1 + random_below(8), other = 1 + random_below(4);
	const char *name = names[random_below(4)];
	uint64_t start = 0x10000 + random_below(4) * 0x800;

	switch (random_below(14)) {
	case 0:
		process(pid, random_below(3) * S / 2, random_below(2), name);
		break;
	case 1:
		thread(pid, random_below(2) ? pid : tid, random_below(3) * S / 2,
		       random_below(5 * MS), name);
		break;
	case 2:
		fork_(pid, tid, other, random_below(2) ? other : tid);
		break;
	case 3:
		exit_(pid, random_below(2) ? pid : tid);
		break;
	case 4:
		comm(pid, random_below(2) ? pid : tid, name, random_below(2) * EVENT_COMM_EXEC);
		break;
	case 5:
		map(pid, start, 0x800 * random_below(4), random_below(2) * 0x1000,
		    paths[random_below(4)], random_below(2) * EVENT_FROM_PROC);
		break;
	case 6:
		maps_read(pid);
		break;
	case 7:
		thread_cpu(pid, tid, random_below(5 * MS), random_below(2) * EVENT_EXITED);
		break;
	default:
		sample(pid, random_below(2) ? pid : tid, random_below(5 * MS), IP(start + 0x10),
		       RET(0x10020 + random_below(4) * 0x800), RET(0x10000), END);
	}
}

static void any_order_keeps_the_invariants(void **state)
{
	(void)state;
	for (int round = 0; round < 300; round++) {
		set_up(NULL);
		seed = round;
		ev.now = S / 2;
		for (int i = 0; i < 400; i++) {
			random_event();
			ev.now += random_below(20) ? random_below(MS) : random_below(3 * S);
			if (i == 50)
				start_sampling();
		}
		if (random_below(2))
			stop();
		assert_true(finish()->sample_count > 0);
		tear_down(NULL);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(kernel_and_user_frames),
		TEST(return_address_at_a_boundary),
		TEST(frames_without_mapping),
		TEST(no_frames_at_all),
		TEST(run_time_code_by_name),
		TEST(dlopen_over_an_old_mapping),
		TEST(munmap_is_seen_by_a_reading),
		TEST(flips_of_a_jit_page_cost_nothing),
		TEST(fork_storm),
		TEST(exec_replaces_names_and_maps),
		TEST(exec_by_another_thread),
		TEST(leader_exits_first),
		TEST(a_sample_after_the_exit_record),
		TEST(a_sign_of_life_after_the_end),
		TEST(pid_reuse),
		TEST(tid_reuse_in_another_process),
		TEST(told_before_its_fork_record),
		TEST(ended_lives_are_forgotten),
		TEST(names_as_they_were),
		TEST(cpu_deltas),
		TEST(cpu_before_the_start_does_not_count),
		TEST(an_empty_profile_has_its_threads),
		TEST(the_whole_system_has_what_ran),
		TEST(clocks_books_and_losses),
		TEST(samples_before_the_start_are_kept),
		TEST(symbols_from_the_stream),
		TEST(damaged_symbol_events),
		cmocka_unit_test(same_events_same_profile),
		cmocka_unit_test(any_order_keeps_the_invariants),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
