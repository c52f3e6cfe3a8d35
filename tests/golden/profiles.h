/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Named profiles, made through the builder, for tests of everything that reads profiles. Each stands
 * for a kind of input that is easy to get wrong; the numbers are arbitrary but fixed.
 */
#ifndef TESTS_GOLDEN_PROFILES_H
#define TESTS_GOLDEN_PROFILES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sysprof/profile_builder.h>

#define MS	  1000000ULL
#define START	  1000000500ULL /* no whole microsecond, so that rounding shows */
#define AT(ms)	  (START + (uint64_t)((ms)*1e6))
#define REALTIME  1700000000123456789ULL
#define HOSTILE_C "co\nmm;\"x\"\xff"

struct fixture {
	struct profile_builder *b;
	struct dso_id program, libc, kernel, jit, unknown;
	struct process_id process;
	uint64_t next_address;
};

/* What the tests of a location need to know: its function and where in the source it is. */
struct place {
	const char *function, *file;
	uint32_t line, definition_line, definition_column;
	uint64_t function_address, function_size;
	const char *definition_file; /* NULL: the same file */
};

static inline struct string_id text(struct fixture *f, const char *s)
{
	return profile_builder__string(f->b, s);
}

static inline struct dso_id add_dso(struct fixture *f, enum dso_kind kind, const char *path,
				    unsigned int build_id_size)
{
	const char *slash = strrchr(path, '/');
	struct profile_dso dso = {
		.kind = kind,
		.path = text(f, path),
		.name = text(f, slash ? slash + 1 : path),
		.is_library = strstr(path, ".so") != NULL,
		.file_state = FILE_STATE_RIGHT,
		.symbol_state = SYMBOL_STATE_RESOLVED,
		.build_id_size = (uint8_t)build_id_size,
		.inode = (uint64_t)strlen(path),
	};

	for (unsigned int i = 0; i < build_id_size; i++)
		dso.build_id[i] = (uint8_t)(0x10 + i);
	return profile_builder__dso(f->b, &dso);
}

static inline void fixture__init(struct fixture *f, double ms)
{
	struct profile *session;

	*f = (struct fixture){.b = profile_builder__new(), .next_address = 0x1000};
	session = profile_builder__session(f->b);
	session->start = START;
	session->end = AT(ms);
	session->start_realtime = REALTIME;
	session->period = MS;
	session->tsc_khz = 2400000;
	session->clock_error_ns = 310;
	session->clock_epochs = 1;
	session->finished_symbols = true;
	profile_builder__meta(f->b, "product", "sysprof 0.1.0");
	profile_builder__meta(f->b, "hostname", "golden");
	profile_builder__meta(f->b, "kernel", "Linux 6.1.0");
	profile_builder__meta(f->b, "architecture", "x86_64");
	profile_builder__meta(f->b, "cpu", "A CPU");
	profile_builder__meta(f->b, "cpus", "2");
	profile_builder__meta(f->b, "command", "./fixture \"quoted\"");
	profile_builder__meta(f->b, "clock_reason", "constant_tsc and nonstop_tsc");
	f->program = add_dso(f, DSO_FILE, "/opt/bin/fixture", 20);
	f->libc = add_dso(f, DSO_FILE, "/lib/libc.so.6", 0);
	f->kernel = add_dso(f, DSO_KERNEL, "[kernel.kallsyms]", 0);
	f->jit = add_dso(f, DSO_JIT, "//anon", 0);
	f->unknown = add_dso(f, DSO_UNKNOWN, "", 0);
}

static inline void add_books(struct fixture *f, uint32_t cpu, uint64_t delivered, uint64_t idle,
			     uint64_t ring_full)
{
	struct profile_cpu_books books = {
		.cpu = cpu,
		.period = MS,
		.time_enabled = (delivered + idle + ring_full) * MS + 17,
		.received = delivered,
	};

	books.time_running = books.time_enabled;
	books.due = books.time_running / books.period;
	books.count[BOOK_DELIVERED] = delivered;
	books.count[BOOK_IDLE] = idle;
	books.count[BOOK_RING_FULL] = ring_full;
	profile_builder__books(f->b, &books);
}

static inline struct process_id add_process(struct fixture *f, uint32_t pid, const char *name,
					    double start, double end)
{
	struct profile_process process = {
		.pid = pid,
		.ppid = 1,
		.name = text(f, name),
		.start = AT(start),
		.end = end ? AT(end) : 0,
		.is_target = true,
	};

	return profile_builder__process(f->b, &process);
}

static inline struct thread_id add_thread(struct fixture *f, struct process_id process,
					  uint32_t tid, bool is_main, const char *name,
					  double start)
{
	return profile_builder__thread(f->b, process, tid, is_main, text(f, name), AT(start));
}

/* Anonymous code belongs to a process; which one is f->process. */
static inline struct location_id add_location(struct fixture *f, struct dso_id dso,
					      uint64_t address)
{
	enum dso_kind kind = profile_builder__get_dso(f->b, dso)->kind;
	bool is_private = kind == DSO_JIT || kind == DSO_UNKNOWN;
	enum profile_category category = kind == DSO_KERNEL   ? CATEGORY_KERNEL
					 : kind == DSO_JIT    ? CATEGORY_JIT
					 : dso.v == f->libc.v ? CATEGORY_LIBRARY
					 : is_private	      ? CATEGORY_OTHER
							      : CATEGORY_USER;

	return profile_builder__location(
		f->b, dso, address, is_private ? f->process : (struct process_id){0}, category);
}

/* A stack from its root on; the list ends with {0}. */
static inline struct stack_id add_stack(struct fixture *f, const struct location_id *locations)
{
	struct stack_id stack = {0};

	for (; locations->v; locations++)
		stack = profile_builder__stack(f->b, stack, *locations);
	return stack;
}
#define STACK(f, ...) add_stack(f, (struct location_id[]){__VA_ARGS__, {0}})

static inline void add_cut_sample(struct fixture *f, struct thread_id thread, double ms,
				  struct stack_id stack, double cpu_ms, const char *comm,
				  enum stack_end end)
{
	const struct profile_sample sample = {
		.kind = SAMPLE_CPU,
		.time = AT(ms),
		.weight = (uint64_t)(cpu_ms * 1e6),
		.stack = stack,
		.comm = text(f, comm),
		.end = end,
	};

	profile_builder__sample(f->b, thread, &sample);
}

static inline void add_sample(struct fixture *f, struct thread_id thread, double ms,
			      struct stack_id stack, double cpu_ms, const char *comm)
{
	add_cut_sample(f, thread, ms, stack, cpu_ms, comm, STACK_END_ROOT);
}

/* The places of a location, innermost first; the list ends with a function that is NULL. */
static inline void name_location(struct fixture *f, struct location_id id,
				 const struct place *places)
{
	const struct profile_location *location = profile_builder__get_location(f->b, id);
	struct dso_id dso = location->dso;
	uint64_t address = location->address;
	struct profile_line lines[8];
	size_t count = 0;

	for (; places->function && count < 8; places++, count++) {
		struct profile_function function = {
			.name = text(f, places->function),
			.dso = dso,
			.address = places->function_address ? places->function_address
							    : PROFILE_UNKNOWN_ADDRESS,
			.size = places->function_size,
			.definition_file = places->definition_line
						   ? text(f, places->definition_file
								     ? places->definition_file
								     : places->file)
						   : (struct string_id){0},
			.definition_line = places->definition_line,
			.definition_column = places->definition_column,
		};

		lines[count] = (struct profile_line){
			.function = profile_builder__function(f->b, &function),
			.file = text(f, places->file),
			.line = places->line,
		};
	}
	profile_builder__resolve(f->b, id, address + 0x400000, lines, count);
}
#define NAME(f, location, ...) name_location(f, location, (struct place[]){__VA_ARGS__, {0}})

/* ---- the profiles ---------------------------------------------------------------------------- */

/* Nothing at all: no process was ever seen. */
static inline void build_empty(struct fixture *f)
{
	fixture__init(f, 100);
	add_books(f, 0, 0, 100, 0);
}

/* A target that slept: processes and threads, but no sample. */
static inline void build_silent(struct fixture *f)
{
	struct thread_id main_thread;

	fixture__init(f, 100);
	f->process = add_process(f, 100, "sleeper", 0, 0);
	main_thread = add_thread(f, f->process, 100, true, "sleeper", 0);
	add_thread(f, add_process(f, 200, "other", 0, 0), 200, true, "other", 0);
	profile_builder__thread_cpu_tail(f->b, main_thread, 123456);
	add_books(f, 0, 0, 100, 0);
}

/*
 * fib calls itself from two places, a helper is inlined into it, and its definition is known. Some
 * samples are in the kernel. Equal call paths have different return addresses.
 */
static inline void build_recursion(struct fixture *f)
{
	const char *file = "/src/a dir/fib.c";
	struct thread_id thread;
	struct location_id start, main_, call_a, call_b, leaf, inlined, sys, tick;

	fixture__init(f, 50);
	f->process = add_process(f, 42, "fixture", 0, 0);
	thread = add_thread(f, f->process, 42, true, "fixture", 0);
	start = add_location(f, f->libc, 0x27000);
	main_ = add_location(f, f->program, 0x1100);
	call_a = add_location(f, f->program, 0x1210);
	call_b = add_location(f, f->program, 0x1230);
	leaf = add_location(f, f->program, 0x1204);
	inlined = add_location(f, f->program, 0x1240);
	sys = add_location(f, f->kernel, 0xffffffff81000010);
	tick = add_location(f, f->kernel, 0xffffffff81200020);
	add_sample(f, thread, 1, STACK(f, start, main_, leaf), 0.9, "fixture");
	add_sample(f, thread, 2, STACK(f, start, main_, call_a, leaf), 1, "fixture");
	add_sample(f, thread, 3, STACK(f, start, main_, call_b, leaf), 1, "fixture");
	add_sample(f, thread, 4, STACK(f, start, main_, call_a, call_b, call_a, leaf), 1,
		   "fixture");
	add_sample(f, thread, 5, STACK(f, start, main_, call_b, call_b, call_b, leaf), 1,
		   "fixture");
	add_sample(f, thread, 6, STACK(f, start, main_, call_a, inlined), 1, "fixture");
	add_sample(f, thread, 7, STACK(f, start, main_, call_b, inlined), 1, "fixture");
	add_sample(f, thread, 8, STACK(f, start, main_, call_a, sys, tick), 1, "fixture");
	add_cut_sample(f, thread, 9, STACK(f, sys, tick), 1, "fixture", STACK_END_FAULT);
	profile_builder__thread_end(f->b, thread, AT(9.25));
	profile_builder__thread_cpu_tail(f->b, thread, 250000);
	NAME(f, start, {.function = "__libc_start_call_main"});
	NAME(f, main_, {"main", file, 40, 38, 5, 0x401100, 64, NULL});
	NAME(f, call_a, {"fib", file, 12, 10, 12, 0x401200, 96, NULL});
	NAME(f, call_b, {"fib", file, 13, 10, 12, 0x401200, 96, NULL});
	NAME(f, leaf, {"fib", file, 11, 10, 12, 0x401200, 96, NULL});
	NAME(f, inlined, {"min", "/src/a dir/min.h", 3, 2, 1, 0, 0, NULL},
	     {"clamp", file, 7, 5, 1, 0, 0, NULL}, {"fib", file, 14, 10, 12, 0x401200, 96, NULL});
	NAME(f, sys, {.function = "do_syscall_64", .function_address = 0xffffffff81000000});
	NAME(f, tick, {.function = "schedule", .function_address = 0xffffffff81200000});
	add_books(f, 0, 5, 45, 0);
	add_books(f, 1, 4, 44, 2);
}

/*
 * A pid that calls execve and is used again later, threads that change their name, a thread that
 * comes late, one without samples, JIT code, and code outside every mapping.
 */
static inline void build_processes(struct fixture *f)
{
	struct process_id shell, program, again;
	struct thread_id shell_main, program_main, worker, idle_worker, again_main, kthread;
	struct profile_process kernel_process = {.pid = 2, .is_kernel = true, .start = AT(0)};
	struct location_id code, libcall, jitted, stray, other_main, kernel_code;

	fixture__init(f, 60);
	shell = add_process(f, 300, "sh", 0, 10);
	shell_main = add_thread(f, shell, 300, true, "sh", 0);
	kernel_process.name = text(f, "kworker/0:1");
	kthread = add_thread(f, profile_builder__process(f->b, &kernel_process), 2, true,
			     "kworker/0:1", 0);
	program = add_process(f, 300, "fixture", 10, 30);
	worker = add_thread(f, program, 301, false, "worker-1", 12);
	program_main = add_thread(f, program, 300, true, "fixture", 10);
	idle_worker = add_thread(f, program, 302, false, "idle", 12);
	again = add_process(f, 300, "again", 40, 0);
	again_main = add_thread(f, again, 300, true, "again", 40);
	f->process = program;
	code = add_location(f, f->program, 0x2000);
	libcall = add_location(f, f->libc, 0x30000);
	jitted = add_location(f, f->jit, 0x7f0000001000);
	stray = add_location(f, f->unknown, 0xdead0000);
	other_main = add_location(f, f->libc, 0x31000);
	kernel_code = add_location(f, f->kernel, 0xffffffffc0100000);
	for (int i = 1; i <= 5; i++)
		add_sample(f, shell_main, i, STACK(f, libcall), 1, "sh");
	for (int i = 3; i <= 6; i++)
		add_cut_sample(f, kthread, i, STACK(f, kernel_code), 1, "kworker/0:1",
			       STACK_END_NO_USER);
	for (int i = 13; i <= 20; i++)
		add_sample(f, worker, i, STACK(f, code, jitted, i % 2 ? libcall : stray), 0.99,
			   i < 16 ? "fixture" : "worker-1");
	for (int i = 14; i <= 16; i++)
		add_sample(f, program_main, i, STACK(f, code, other_main), 0.5, "fixture");
	for (int i = 50; i <= 58; i++)
		add_sample(f, again_main, i, STACK(f, other_main), 1, "again");
	profile_builder__thread_cpu_tail(f->b, worker, 777);
	profile_builder__thread_cpu_tail(f->b, idle_worker, 4321);
	profile_builder__thread_end(f->b, shell_main, AT(10));
	profile_builder__thread_end(f->b, worker, AT(30));
	profile_builder__thread_end(f->b, program_main, AT(30));
	NAME(f, code, {.function = "main", .function_address = 0x402000, .function_size = 32});
	NAME(f, libcall, {.function = "write"});
	NAME(f, other_main, {.function = "main"});
	NAME(f, kernel_code, {.function = "process_one_work"});
	add_books(f, 0, 29, 31, 0);
	profile_builder__lost(f->b, LOST_SIDEBAND, 3, AT(20), AT(21));
}

/* Threads that are off CPU: before their first sample, between samples, and after the last one. */
static inline void build_gaps(struct fixture *f)
{
	struct thread_id thread, ticker;
	struct location_id work;

	fixture__init(f, 1000);
	f->process = add_process(f, 77, "gaps", 0, 0);
	thread = add_thread(f, f->process, 77, true, "gaps", 0);
	ticker = add_thread(f, f->process, 78, false, "ticker", 5);
	work = add_location(f, f->program, 0x1000);
	for (int i = 0; i < 100; i++)
		add_sample(f, thread, 100 + i, STACK(f, work), i ? 1 : 0.7, "gaps");
	add_sample(f, thread, 700, STACK(f, work), 1.25, "gaps");
	for (int i = 1; i < 20; i++)
		add_sample(f, ticker, 50 * i + 0.0007, STACK(f, work), 0.1, "ticker");
	profile_builder__thread_cpu_tail(f->b, thread, 300000);
	NAME(f, work, {"work", "/src/work.c", 8, 5, 0, 0x401000, 48, NULL});
	add_books(f, 0, 120, 880, 0);
}

/* Names as bad as they come. */
static inline void build_hostile(struct fixture *f)
{
	static char long_name[6001];
	struct thread_id thread;
	struct location_id a, b, c, d, e;

	memset(long_name, 'L', sizeof(long_name) - 1);
	fixture__init(f, 10);
	f->process = add_process(f, 66, HOSTILE_C, 0, 0);
	thread = add_thread(f, f->process, 66, true, HOSTILE_C, 0);
	a = add_location(f, f->program, 0x10);
	b = add_location(f, f->program, 0x20);
	c = add_location(f, f->program, 0x30);
	d = add_location(f, f->program, 0x40);
	e = add_location(f, add_dso(f, DSO_FILE, "/tmp/a\nb;\"\x01\x80.so", 5), 0x50);
	add_sample(f, thread, 1, STACK(f, a, b, c), 1, HOSTILE_C);
	add_sample(f, thread, 2, STACK(f, a, d), 1, "");
	add_sample(f, thread, 3, STACK(f, a, e), 1, "trailing  ");
	add_sample(f, thread, 4, STACK(f, e), 1, "\xc3\xa9t\xc3\xa9");
	add_sample(f, thread, 5, STACK(f, b, c), 1, "__proto__");
	NAME(f, a, {"operator\"\" _x; \\ \t\x1b[31m", "relative/path.c", 9, 1, 1, 0, 0, NULL});
	NAME(f, b,
	     {"new\nline\r and \xff\xfe\xc0\xaf  ", "/src/\xff \"#?%.c", 5, 4, 3, 0, 0, NULL});
	NAME(f, c, {.function = long_name});
	NAME(f, d, {.function = "   "});
	add_books(f, 0, 5, 5, 0);
}

/* A process that is forked, calls execve and exits at the given times: what came of its fork. */
static inline struct process_id add_child(struct fixture *f, uint32_t pid, const char *name,
					  double start, double end, enum process_begin began,
					  bool execs)
{
	struct profile_process process = {
		.pid = pid,
		.ppid = 500,
		.name = text(f, name),
		.start = AT(start),
		.began = began,
		.is_target = true,
		.cgroup = text(f, "/jobs/one"),
	};
	struct process_id id = profile_builder__process(f->b, &process);

	profile_builder__process_end(f->b, id, AT(end), execs);
	return id;
}

/*
 * Things that happen beside the samples: processes that begin and end, names, cut stacks in runs, code with
 * ambiguous names and a source, losses, a clock epoch, memory, also of a recorder that was not sampled.
 */
static inline void build_events(struct fixture *f)
{
	static const char ends[] = "..DDDF.D..DF..";
	struct process_id parent, child, tool, silent;
	struct thread_id main_thread, worker, child_main, tool_main;
	struct location_id code, kernel_code, jitted, other;

	fixture__init(f, 100);
	profile_builder__meta(f->b, "kernel_build_id", "00112233445566778899aabbccddeeff01234567");
	profile_builder__session(f->b)->clock_epochs = 2;
	profile_builder__epoch(f->b, AT(55));
	parent = f->process = add_process(f, 500, "parent", 0, 0);
	profile_builder__get_process(f->b, parent)->cgroup = text(f, "/jobs/\xff");
	main_thread = add_thread(f, parent, 500, true, "parent", 0);
	worker = add_thread(f, parent, 502, false, "second", 5);
	profile_builder__thread_renamed(f->b, worker, AT(6), text(f, "first"));
	profile_builder__thread_renamed(f->b, worker, AT(70), text(f, "second"));
	child = add_child(f, 501, "parent", 10, 12, PROCESS_FORKED, true);
	child_main = add_thread(f, child, 501, true, "parent", 10);
	tool = add_child(f, 501, "tool", 12, 60, PROCESS_EXECED, false);
	tool_main = add_thread(f, tool, 501, true, "tool", 12);
	silent = add_child(f, 503, "silent", 20, 30, PROCESS_FORKED, false);
	code = add_location(f, f->program, 0x1000);
	kernel_code = add_location(f, f->kernel, 0xffffffff81000010);
	jitted = add_location(f, f->jit, 0x7f0000001000);
	other = add_location(f, f->jit, 0x7f0000002000);
	for (int i = 0; ends[i]; i++)
		add_cut_sample(f, main_thread, i + 1, STACK(f, code, kernel_code), 1, "parent",
			       ends[i] == 'D'	? STACK_END_DEPTH
			       : ends[i] == 'F' ? STACK_END_FAULT
						: STACK_END_ROOT);
	for (int i = 10; i < 20; i++)
		add_sample(f, worker, i, STACK(f, code, i < 13 ? other : jitted), 1, "first");
	add_sample(f, worker, 80, STACK(f, code, jitted, kernel_code), 1, "second");
	add_sample(f, child_main, 11, STACK(f, code), 0.75, "parent");
	for (int i = 20; i < 25; i++)
		add_sample(f, tool_main, i, STACK(f, code), 1, "tool");
	NAME(f, code, {"main", "/src/main.c", 9, 5, 1, 0x401000, 48, NULL});
	NAME(f, kernel_code, {.function = "do_syscall_64"});
	NAME(f, jitted, {"render", "file:///srv/an%20app/x.js", 7, 5, 3, 0, 0, NULL});
	NAME(f, other, {"other", "node:fs", 3, 2, 3, 0, 0, NULL});
	profile_builder__code(f->b, jitted, CODE_TIER_OPTIMIZED, true);
	profile_builder__lost(f->b, LOST_SAMPLES, 3, AT(30), AT(32));
	profile_builder__lost(f->b, LOST_LATE, 1, 0, AT(40));
	profile_builder__memory(f->b, parent, 500, false, AT(0), 10 << 20);
	profile_builder__memory(f->b, (struct process_id){0}, 9, true, AT(0), 30 << 20);
	profile_builder__memory(f->b, parent, 500, false, AT(50), 12 << 20);
	profile_builder__memory(f->b, tool, 501, false, AT(50), 1 << 20);
	profile_builder__memory(f->b, silent, 503, false, AT(25), 1 << 20);
	profile_builder__memory(f->b, parent, 500, false, AT(100), 11 << 20);
	add_books(f, 0, 31, 69, 0);
}

/* ---- waits ----------------------------------------------------------------------------------- */

static inline void add_wait(struct fixture *f, struct thread_id thread, double since, double until,
			    struct stack_id stack, enum wall_state state, double weight_ms,
			    struct thread_id holder)
{
	const struct profile_sample sample = {
		.kind = SAMPLE_WALL,
		.time = AT(until),
		.weight = (uint64_t)(weight_ms * 1e6),
		.stack = stack,
		.comm = text(f, "server"),
		.state = (uint8_t)state,
		.holder = holder,
		.since = AT(since),
		.until = AT(until),
	};

	profile_builder__sample(f->b, thread, &sample);
}

/*
 * record --wall: a thread that runs between its waits, and one that only waits. A function is called as a leaf of waits is, a
 * wait begins before the one before ended, one is at the end of its thread, and of one no time is known.
 */
static inline void build_waits(struct fixture *f)
{
	const struct thread_id none = {0};
	struct thread_id main_thread, worker;
	struct location_id start, serve, take, odd;
	struct profile *session;

	fixture__init(f, 100);
	session = profile_builder__session(f->b);
	session->visits = (struct profile_visits){
		.hz = 200, .cpu = 12345, .count = {[VISIT_LINE_DUE] = 20, [VISIT_LINE_MADE] = 19}};
	f->process = add_process(f, 500, "server", 0, 0);
	main_thread = add_thread(f, f->process, 500, true, "server", 0);
	worker = add_thread(f, f->process, 501, false, "server", 0);
	start = add_location(f, f->libc, 0x27000);
	serve = add_location(f, f->program, 0x1100);
	take = add_location(f, f->libc, 0x8000);
	odd = add_location(f, f->program, 0x1300);
	add_sample(f, main_thread, 1, STACK(f, start, serve), 1, "server");
	add_wait(f, main_thread, 1.5, 21.5, STACK(f, start, serve, take), WALL_LOCK, 20.25, worker);
	add_sample(f, main_thread, 23, STACK(f, start, serve), 2, "server");
	add_sample(f, main_thread, 24, STACK(f, start, serve, odd), 1, "server");
	add_wait(f, main_thread, 24.25, 24.5, STACK(f, start, serve), WALL_RUNNABLE, 0.25, none);
	add_wait(f, main_thread, 26, 60, STACK(f, start, serve, take), WALL_LOCK, 34, none);
	add_wait(f, main_thread, 59, 61, STACK(f, start, serve, odd), WALL_DISK, 1.75, none);
	add_sample(f, main_thread, 70, STACK(f, start, serve), 9, "server");
	add_wait(f, main_thread, 100, 100, STACK(f, odd), WALL_OTHER, 25, none);
	profile_builder__thread_cpu_tail(f->b, main_thread, 250000);
	profile_builder__thread_wall(f->b, main_thread,
				     &(struct profile_wall){.since = AT(0),
							    .until = AT(100),
							    .running = 13250000,
							    .runnable = 250000,
							    .blocked = 81000000,
							    .unvisited = 5500000});
	add_wait(f, worker, 0, 99, STACK(f, start, take), WALL_SLEEP, 100, none);
	profile_builder__thread_wall(
		f->b, worker,
		&(struct profile_wall){.since = AT(0), .until = AT(100), .blocked = 100000000});
	NAME(f, start, {.function = "start"});
	NAME(f, serve, {.function = "serve", .file = "/src/server.c", .line = 10});
	NAME(f, take, {.function = "take_lock"});
	NAME(f, odd, {.function = "[waiting: lock]"});
	add_books(f, 0, 4, 96, 0);
}

static const struct named_profile {
	const char *name;
	void (*build)(struct fixture *f);
} named_profiles[] = {
	{"empty", build_empty},		{"silent", build_silent}, {"recursion", build_recursion},
	{"processes", build_processes}, {"gaps", build_gaps},	  {"hostile", build_hostile},
	{"events", build_events},	{"waits", build_waits},
};
#define NAMED_PROFILES (sizeof(named_profiles) / sizeof(named_profiles[0]))

#endif
