/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hotspot_oracle layout PID: what it publishes.
 *
 * hotspot_oracle names PID: "code ADDRESS NAME" of each compiled method.
 *
 * hotspot_oracle inlined PID COUNT: the methods at so many sampled addresses of a JVM with -XX:+DebugNonSafepoints, with and
 *	without what this flag adds (hotspot_inlined.h).
 *
 * hotspot_oracle stops PID COUNT SEED THREAD ROWS [TRACE [MS]]: stops a thread (one of those whose name is THREAD, "" any) at random times
 *	and walks its stack: frames of HotSpot's by userspace/runtimes/, all others by our own tables. With a TRACE
 *	file of trace_agent.c the JVM then walks the same stack itself. With MS the words of the frames are noted at the stop, and
 *	what they mean is read so long after it, as for a recording.
 *
 * hotspot_oracle steps PID COUNT SEED THREAD ROWS: the same after each of so many instructions: a stack follows from the one before.
 *
 * ROWS: "fresh": those of all code that there is at each stop; "none": frame sizes alone.
 *
 * Prints the first of what is wrong, and at the end "total NAME COUNT".
 */
/* the walk of native frames is driven from here, frame by frame */
#include "elf/x86_code.h"
#include "runtimes/hotspot/answers.h"
#include "runtimes/hotspot/heap.h"
#include "runtimes/hotspot/layout.h"
#include "runtimes/hotspot/names.h"
#include "runtimes/hotspot/scopes.h"
#include "unwind/unwind.c"

#include <sys/syscall.h>
#include <time.h>

#include "../fixtures/java/trace_agent.h"
#include "runtimes/hotspot/hotspot.h"
#include "models/hotspot_walk.h"
#include "hotspot_inlined.h"
#include "hotspot_jvm.h"
#include "hotspot_notes.h"

#define PAUSE_MAX     4000 /* us between stops */
#define SHOWN_MAX     6
#define STEPS_AT_ONCE 400
#define TRAP_FLAG     0x100
#define STRAIGHT_MAX  4096 /* bytes of code to the next place */

static struct trace *trace;
static const char *thread_name = "";
static uint64_t stops, in_java, whole, broken, shown;
static uint64_t marked_callers;

/* ---- the walk -------------------------------------------------------------------------------- */

struct java_frame {
	uint64_t method;
	int32_t index;
	size_t frame;	/* of the stack */
	bool is_unsure; /* it is inlined there, or another one is */
	bool is_apart;	/* what the compiler has described next in memory is not next to be run */
};

struct stack {
	uint64_t ips[FRAMES_MAX];
	struct hotspot_seen seen[FRAMES_MAX];
	bool is_java[FRAMES_MAX];
	size_t count, java_count;
	int end; /* enum stack_end, or -errno of a frame of HotSpot's */
};

static void begin_walk(struct unwind_state *s, const struct user_regs_struct *r)
{
	uint64_t registers[UNWIND_REGISTERS];

	take_registers(r, registers);
	unwind_begin(s, r->orig_rax != (unsigned long long)-1);
	memcpy(s->general, registers, sizeof(s->general));
	s->ip = r->rip;
	s->sp = r->rsp;
	s->fp = r->rbp;
}

/* One frame of HotSpot's: as hotspot_walk__step(). */
static int step_java(struct unwind_state *s, struct target_memory *memory, struct stack *stack)
{
	static const uint8_t BY_NUMBER[HOTSPOT_REGISTERS] = {0, 2, 1,  3,  7,  6,  4,  5,
							     8, 9, 10, 11, 12, 13, 14, 15};
	struct hotspot_frame f = {.ip = s->ip, .is_innermost = s->all_known && !s->after_call};
	int err;

	for (int i = 0; i < HOTSPOT_REGISTERS; i++)
		f.general[i] = s->general[BY_NUMBER[i]];
	f.general[4] = s->sp;
	f.general[5] = s->fp;
	err = hotspot_walk__step(&code, has_rows ? &table : NULL, memory, &f,
				 &stack->seen[stack->count - 1]);
	if (err == -ENOENT)
		return err;
	stack->is_java[stack->count - 1] = true;
	stack->java_count++;
	if (err)
		return err;
	s->ip = f.ip;
	s->sp = f.general[4];
	s->fp = f.general[5];
	s->kind = FRAME_TABLE;
	s->after_call = true;
	s->all_known = s->fp_lost = s->rbx_known = false;
	return 0;
}

static void walk_all(const struct user_regs_struct *r, struct stack *stack)
{
	const struct unwind_space space = {
		.ranges = ranges.data, .count = ranges.count, .read = read_process};
	struct walk w = {.space = &space};
	struct target_memory memory = memory_of();

	begin_walk(&w.state, r);
	stack->count = stack->java_count = 0;
	for (stack->end = UNWIND_STEP_ON; stack->end == UNWIND_STEP_ON;) {
		int err;

		if (stack->count == FRAMES_MAX) {
			stack->end = STACK_END_DEPTH;
			return;
		}
		stack->is_java[stack->count] = false;
		stack->ips[stack->count++] = w.state.ip;
		err = step_java(&w.state, &memory, stack);
		if (err == -ENOENT)
			stack->end = unwind_to_caller(&w.state);
		else if (err)
			stack->end = err;
	}
}

/* ---- names ----------------------------------------------------------------------------------- */

/* The bytecode index of an address; -1: it is in another method. */
static int32_t index_of(const struct hotspot_method *m, uint64_t bytecode)
{
	uint64_t index = bytecode - m->const_method - layout.at[HOTSPOT_CONST_METHOD_SIZE];

	return index < m->code_size ? (int32_t)index : -1;
}

static int read_chain(struct target_memory *memory, const struct hotspot_blob *blob,
		      uint64_t address, struct hotspot_chain *chain)
{
	struct hotspot_debug debug = {};
	int err = hotspot_chain__read(&code, memory, blob, &debug, address, chain);

	hotspot_debug__fini(&debug);
	return err;
}

/*
 * Is the JVM's next place in memory the next one behind this address, unless a branch is taken? A check that it has no place of
 * can be in between, by a branch or by a load that may fault: what runs is then the method that is checked for.
 */
static bool leads_to_next_place(struct target_memory *memory, const struct hotspot_blob *blob,
				uint64_t pc)
{
	static struct hotspot_chain chain;
	struct hotspot_debug debug = {};
	struct x86_instruction instruction;
	uint8_t bytes[STRAIGHT_MAX];
	size_t size = 0, at = 0;

	hotspot_chain__read(&code, memory, blob, &debug, pc, &chain);
	for (size_t i = 0; i < debug.place_count && !size; i++) {
		if (debug.places[i].pc_offset <= (int64_t)(pc - blob->code))
			continue;
		if (debug.places[i].flags >= HOTSPOT_PLACE_CHECK)
			break;
		size = blob->code + debug.places[i].pc_offset - pc;
	}
	hotspot_debug__fini(&debug);
	if (!size || size > sizeof(bytes) || read_process(NULL, bytes, size, pc))
		return false;
	for (; at < size && x86_decode(bytes + at, size - at, &instruction); at += instruction.size)
		if (instruction.effect >= X86_JUMP)
			return false;
	return at == size;
}

static size_t java_frames(const struct stack *stack, struct java_frame *frames, size_t max)
{
	static struct hotspot_chain chain;
	struct target_memory memory = memory_of();
	size_t count = 0;

	for (size_t i = 0; i < stack->count; i++) {
		const struct hotspot_seen *seen = &stack->seen[i];
		struct hotspot_method m;
		bool is_apart;

		if (!stack->is_java[i] || seen->what == HOTSPOT_FRAME_STUB)
			continue;
		if (seen->what == HOTSPOT_FRAME_UNMOUNTED) {
			if (count < max) /* what it will return to at last */
				frames[count++] =
					(struct java_frame){.method = table.stubs.enter_special,
							    .index = -1,
							    .frame = i};
			continue;
		}
		if (seen->what == HOTSPOT_FRAME_INTERPRETED) {
			if (count < max &&
			    !hotspot_method__read(&layout, &memory, seen->method, &m))
				frames[count++] =
					(struct java_frame){.method = seen->method,
							    .index = index_of(&m, seen->bytecode),
							    .frame = i};
			continue;
		}
		if (!seen->blob.frame_size || /* linkToStatic() and others are no methods */
		    read_chain(&memory, &seen->blob, seen->pc - (i > 0), &chain))
			continue;
		/* a caller's address is that of a call, which is described */
		marked_callers += count && frames[0].frame != i && chain.sure < chain.count;
		/* AsyncGetCallTrace takes a poll in the JVM for what comes behind it, too */
		is_apart = !count && (i || !leads_to_next_place(&memory, &seen->blob, seen->pc));
		for (unsigned int k = 0; k < chain.count && count < max; k++)
			frames[count++] = (struct java_frame){.method = chain.scopes[k].method,
							      .index = chain.scopes[k].index,
							      .frame = i,
							      .is_unsure = k + chain.sure <
									   chain.count,
							      .is_apart = is_apart};
	}
	return count;
}

static void print_method(uint64_t method, int32_t index)
{
	struct target_memory memory = memory_of();
	struct managed_function f = {};
	struct hotspot_method m;

	if (method && !hotspot_method__read(&layout, &memory, method, &m))
		hotspot_method__describe(&layout, &memory, &m, &f);
	printf(" %s@%d", *f.name ? f.name : "-", index);
	managed_function__fini(&f);
}

static void show_stack(const char *what, const struct stack *stack)
{
	if (shown++ >= SHOWN_MAX)
		return;
	printf("%s: %zu frames, end %d\n", what, stack->count, stack->end);
	for (size_t i = 0; i < stack->count; i++) {
		const struct hotspot_seen *seen = &stack->seen[i];
		struct target_memory memory = memory_of();
		struct hotspot_blob blob;
		char name[64] = "";
		uint64_t address;

		if (i > 8 && i + 8 < stack->count)
			continue;
		printf("  %2zu %#" PRIx64, i, stack->ips[i]);
		if (stack->is_java[i] &&
		    !hotspot_code__find(&code, &memory, stack->ips[i], &address) &&
		    !hotspot_code__blob(&code, &memory, address, &blob)) {
			hotspot_blob__name(&blob, &memory, name, sizeof(name));
			printf(" %s+%#" PRIx64 " of %" PRIu64
			       " kind %d frame %u complete %u id %u row %d",
			       name, stack->ips[i] - blob.code, blob.code_end - blob.code,
			       blob.kind, blob.frame_size, blob.frame_complete, blob.compile_id,
			       seen->by_row);
			if (seen->what == HOTSPOT_FRAME_INTERPRETED)
				print_method(seen->method, 0);
			else if (blob.method)
				print_method(blob.method, 0);
		}
		printf("\n");
	}
}

/* ---- against AsyncGetCallTrace --------------------------------------------------------------- */

static uint64_t requested, answered, equal, equal_callers, equal_marked, equal_apart, equal_inlined,
	differing, marked, indices, equal_indices, names, equal_names, lines, equal_lines,
	file_names, equal_files;

/* "La/b/C;.name" as "a.b.C.name"; of hidden classes without the address. */
static void normalize(char *to, const char *from)
{
	const char *end = strchr(from, ';');
	size_t length = end ? (size_t)(end - from) : 0;
	char *address;

	snprintf(to, TRACE_TEXT, "%.*s", (int)(length ? length - 1 : 0), length ? from + 1 : "");
	address = strstr(to, "Lambda");
	address = address ? strpbrk(address, "+./") : strstr(to, ".0x");
	if (address)
		*address = '\0';
	for (char *c = to; *c; c++)
		if (*c == '/')
			*c = '.';
	if (end)
		strncat(to, end + 1, TRACE_TEXT - strlen(to) - 1);
}

/* "void a.b.C.name(int)" without its types. */
static const char *without_types(char *name)
{
	char *open = strchr(name, '('), *space;

	if (!open)
		return name;
	*open = '\0';
	space = strrchr(name, ' ');
	return space ? space + 1 : name;
}

static void compare_names(const struct java_frame *ours, const struct trace_frame *theirs)
{
	struct target_memory memory = memory_of();
	char name[TRACE_TEXT];
	struct managed_function f = {};
	const struct managed_row *row;
	struct hotspot_method m;
	const char *file, *our_name;

	if (hotspot_method__read(&layout, &memory, ours->method, &m) ||
	    hotspot_method__describe(&layout, &memory, &m, &f))
		return;
	normalize(name, theirs->name);
	our_name = without_types(f.name);
	names++;
	equal_names += !strcmp(name, our_name);
	if (strcmp(name, our_name) && shown++ < SHOWN_MAX)
		printf("name: ours %s, theirs %s (%s)\n", our_name, name, theirs->name);
	file = strrchr(f.file, '/') ? strrchr(f.file, '/') + 1 : f.file;
	file_names++;
	equal_files += !strcmp(file, theirs->file) || (!*theirs->file && !*file);
	if (ours->index >= 0 && ours->index == theirs->index && theirs->line >= 0) {
		row = managed_function__row(&f, ours->index);
		lines++;
		equal_lines += row && row->line == (uint32_t)theirs->line;
		if ((!row || row->line != (uint32_t)theirs->line) && shown++ < SHOWN_MAX)
			printf("line: ours %s:%u, theirs %d, index %d\n", f.name,
			       row ? row->line : 0, theirs->line, ours->index);
	}
	managed_function__fini(&f);
}

static size_t count_equal(const struct java_frame *ours, const struct trace_frame *theirs,
			  size_t count)
{
	size_t i = 0;

	while (i < count && ours[i].method == theirs[i].method)
		i++;
	return i;
}

/*
 * Between two places that the compiler has described AsyncGetCallTrace reports what is inlined at the next one in memory, whatever
 * runs next. If that place is not run next, or ours are marked, only the nmethod itself and its callers are compared: what is
 * inlined is compared by hotspot_inlined.h.
 */
static bool are_callers_equal(const struct java_frame *ours, size_t count,
			      const struct trace_frame *theirs, size_t their_count)
{
	size_t own = 0, callers;

	while (own + 1 < count && ours[own + 1].frame == ours[0].frame)
		own++;
	callers = count - own;
	return count && callers <= their_count &&
	       count_equal(ours + own, theirs + their_count - callers, callers) == callers;
}

/*
 * AsyncGetCallTrace does not see what is inlined where the compiler has described nothing: loops that do not stop. Ours then has
 * more innermost methods, all of them in the code of its innermost one.
 */
static bool are_more_inlined(const struct java_frame *ours, size_t count,
			     const struct trace_frame *theirs, size_t their_count)
{
	size_t more = count - their_count;

	if (!their_count || count <= their_count)
		return false;
	for (size_t i = 0; i < more; i++)
		if (ours[i].frame != ours[more].frame)
			return false;
	return count_equal(ours + more, theirs, their_count) == their_count;
}

/* AsyncGetCallTrace gets a method wrong that is entered or left, and leaves the interpreter's out. */
static bool are_all_others_equal(const struct java_frame *ours, size_t count,
				 const struct trace_frame *theirs, size_t their_count)
{
	bool is_left_out = count > 1 && count == their_count + 1 && ours[0].index < 0 &&
			   ours[0].frame != ours[1].frame;

	return count && (count == their_count || is_left_out) &&
	       count_equal(ours + 1, theirs + !is_left_out, count - 1) == count - 1;
}

static void compare_indices(const struct java_frame *ours, const struct trace_frame *theirs,
			    size_t count)
{
	for (size_t i = 0; i < count; i++) {
		compare_names(&ours[i], &theirs[i]);
		if (theirs[i].index < 0 || ours[i].is_unsure ||
		    (ours[i].is_apart && !ours[i].frame))
			continue;
		indices++;
		/* where no index is known it says 0 */
		equal_indices += ours[i].index == theirs[i].index ||
				 (ours[i].index < 0 && !theirs[i].index);
	}
}

static void compare_stacks(const struct stack *stack, const struct java_frame *ours, size_t count)
{
	const struct trace_frame *theirs = trace->frames;
	size_t their_count = trace->count;

	answered++;
	marked += count && ours[0].is_unsure;
	if (count == their_count && count_equal(ours, theirs, count) == count) {
		equal++;
	} else if (count && ours[0].is_unsure &&
		   are_callers_equal(ours, count, theirs, their_count)) {
		equal_marked++;
		return;
	} else if (are_all_others_equal(ours, count, theirs, their_count)) {
		equal_callers++;
		return;
	} else if (are_more_inlined(ours, count, theirs, their_count)) {
		equal_inlined++;
		compare_indices(ours + count - their_count + 1, theirs + 1, their_count - 1);
		return;
	} else if (count && ours[0].is_apart &&
		   are_callers_equal(ours, count, theirs, their_count)) {
		equal_apart++;
		return;
	} else {
		differing++;
		if (shown < SHOWN_MAX) {
			show_stack("differs", stack);
			for (size_t i = 0; i < count || i < their_count; i++) {
				bool same = i < count && i < their_count &&
					    ours[i].method == theirs[i].method;
				if (i > 12 && same)
					continue;
				printf("   %2zu %s%s", i, same ? " " : "*",
				       i < count && ours[i].is_unsure ? "?" : " ");
				print_method(i < count ? ours[i].method : 0,
					     i < count ? ours[i].index : 0);
				printf(" | %s@%d\n", i < their_count ? theirs[i].name : "-",
				       i < their_count ? theirs[i].index : 0);
			}
		}
		return;
	}
	compare_indices(ours, theirs, count);
}

/* Once the thread has gone on with a signal, whose handler walks. */
static void wait_and_compare(const struct stack *stack, const struct java_frame *ours, size_t count,
			     uint32_t before)
{
	for (int i = 0; i < 4000; i++) {
		if (__atomic_load_n(&trace->named, __ATOMIC_ACQUIRE) == before + 1) {
			if (trace->count > 0)
				compare_stacks(stack, ours, count);
			return;
		}
		usleep(250);
	}
	failed++;
}

/* ---- names of notes -------------------------------------------------------------------------- */

static struct naming naming;
static bool is_noted;
static unsigned int note_delay_ms;
static struct expected_frame expected[TRACE_FRAMES];

static void note_stack(const struct stack *stack, const struct java_frame *frames, size_t count)
{
	struct target_memory memory = memory_of();

	for (size_t k = 0; k < count; k++)
		expected_frame__read(&expected[k], &layout, &memory, frames[k].method,
				     frames[k].index, frames[k].frame);
	naming__sample(&naming, &memory, stack->ips, stack->seen, stack->is_java, stack->count);
}

static void judge_notes(const struct stack *stack, size_t count)
{
	usleep(1000 * note_delay_ms);
	naming__read(&naming, memory_of(), (uint64_t)now_ns());
	naming__judge(&naming, stack->seen, stack->count, expected, count);
	naming__end(&naming);
}

static void begin_notes(unsigned int delay_ms)
{
	is_noted = true;
	note_delay_ms = delay_ms;
	if (naming__init(&naming, &layout, &code))
		die("memory");
}

/* ---- stops ----------------------------------------------------------------------------------- */

static bool has_name(pid_t tid)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[64], name[32] = "";

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", pid, tid);
	f = fopen(path, "re");
	if (!f || !fgets(name, sizeof(name), f))
		return false;
	name[strcspn(name, "\n")] = '\0';
	if (!*thread_name)
		return strncmp(name, "C1 Comp", 7) && strncmp(name, "C2 Comp", 7) &&
		       strcmp(name, "trace_agent");
	return !strncmp(name, thread_name, strlen(thread_name));
}

/* The thread that began the process waits for the one that runs main(), which has the same name. */
static pid_t next_thread(void)
{
	for (int i = 0; i < 200; i++) {
		pid_t tid = random_thread();

		if (!tid)
			return 0;
		if (tid != pid && has_name(tid))
			return tid;
	}
	return 0;
}

static void judge(const struct stack *stack)
{
	stops++;
	if (!stack->java_count)
		return;
	in_java++;
	if (stack->end == STACK_END_ROOT) {
		whole++;
		return;
	}
	broken++;
	show_stack("broken", stack);
}

static bool one_stop(void)
{
	static struct java_frame frames[TRACE_FRAMES];
	static struct stack stack;
	struct user_regs_struct registers;
	pid_t tid = next_thread();
	uint32_t before = trace ? trace->named : 0;
	size_t count = 0;
	int sig;

	if (!tid)
		return false;
	refresh();
	if (stop(tid, &sig)) {
		failed++;
		return failed < 100;
	}
	if (!ptrace(PTRACE_GETREGS, tid, NULL, &registers)) {
		refresh();
		walk_all(&registers, &stack);
		if (stack.end == STACK_END_NO_FRAME || stack.end == STACK_END_NO_TABLE) {
			read_maps(); /* a library that was loaded since */
			walk_all(&registers, &stack);
		}
		judge(&stack);
		count = java_frames(&stack, frames, TRACE_FRAMES);
		if (is_noted && stack.java_count)
			note_stack(&stack, frames, count);
	}
	if (trace && !sig && stack.java_count) {
		requested++;
		/* it takes it before it goes on */
		syscall(SYS_tgkill, pid, tid, SIGPROF);
		ptrace(PTRACE_DETACH, tid, NULL, 0);
		wait_and_compare(&stack, frames, count, before);
	} else {
		ptrace(PTRACE_DETACH, tid, NULL, sig);
	}
	if (naming.builder)
		judge_notes(&stack, count);
	return true;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static uint64_t steps, steps_in_java, steps_broken, steps_other, steps_by_kind[16];

static bool is_system_call(const uint8_t *bytes)
{
	return bytes[0] == 0x0f && (bytes[1] == 0x05 || bytes[1] == 0x34);
}

static bool is_pushf(const uint8_t *bytes)
{
	return bytes[0] == 0x9c || (bytes[0] == 0x66 && bytes[1] == 0x9c);
}

/* The trap flag is ours. */
static void clear_pushed_flag(pid_t tid, const struct user_regs_struct *r)
{
	long flags = ptrace(PTRACE_PEEKDATA, tid, r->rsp, NULL);

	ptrace(PTRACE_POKEDATA, tid, r->rsp, flags & ~(long)TRAP_FLAG);
}

/* Of two stacks one instruction apart the callers are the same, but for one at the top. */
static bool follows(const struct stack *a, const struct stack *b)
{
	size_t common = a->count < b->count ? a->count : b->count;
	size_t difference = a->count + b->count - 2 * common;

	if (difference > 1 || !common)
		return false;
	return !memcmp(a->ips + a->count - common + 1, b->ips + b->count - common + 1,
		       (common - 1) * sizeof(*a->ips));
}

static void judge_step(const struct stack *now, const struct stack *before)
{
	struct target_memory memory = memory_of();
	struct hotspot_blob blob;
	uint64_t address;
	bool right;

	steps++;
	if (!now->is_java[0])
		return;
	steps_in_java++;
	right = now->end == STACK_END_ROOT &&
		(!before->count || before->end != STACK_END_ROOT || follows(before, now));
	if (right)
		return;
	if (now->end == STACK_END_ROOT)
		steps_other++;
	else
		steps_broken++;
	if (!hotspot_code__find(&code, &memory, now->ips[0], &address) &&
	    !hotspot_code__blob(&code, &memory, address, &blob))
		steps_by_kind[blob.kind & 15]++;
	if (before->count)
		show_stack("before", before);
	show_stack("step", now);
}

static bool some_steps(uint64_t wanted)
{
	static struct stack stacks[2];
	struct user_regs_struct registers;
	pid_t tid = next_thread();
	int sig, which = 0;

	if (!tid)
		return false;
	refresh();
	if (stop(tid, &sig)) {
		failed++;
		return failed < 100;
	}
	stacks[1].count = 0;
	for (int i = 0; i < STEPS_AT_ONCE && steps < wanted; i++, which ^= 1) {
		uint8_t bytes[2] = {};
		bool pushes;

		if (ptrace(PTRACE_GETREGS, tid, NULL, &registers) ||
		    read_process(NULL, bytes, sizeof(bytes), registers.rip))
			break;
		walk_all(&registers, &stacks[which]);
		if (has_rows && stacks[which].is_java[0] && !stacks[which].seen[0].by_row) {
			refresh(); /* it has been compiled since */
			walk_all(&registers, &stacks[which]);
		}
		judge_step(&stacks[which], &stacks[which ^ 1]);
		if (sig || is_system_call(bytes))
			break;
		pushes = is_pushf(bytes);
		if (step(tid, &sig, &registers))
			break;
		if (pushes)
			clear_pushed_flag(tid, &registers);
	}
	ptrace(PTRACE_DETACH, tid, NULL, sig);
	return true;
}

/* ---- what it publishes ----------------------------------------------------------------------- */

static const char *const PARTS[HOTSPOT_PARTS] = {"unwind", "name", "line", "count"};

static void print_names(void)
{
	uint64_t count = 0, named = 0;

	for (size_t i = 0; i < blobs.list.count; i++) {
		const struct hotspot_blob *b = &blobs.list.data[i];
		struct target_memory memory = memory_of();
		struct managed_function f = {};
		struct hotspot_method m;

		if (!b->method)
			continue;
		count++;
		if (!hotspot_method__read(&layout, &memory, b->method, &m) &&
		    !hotspot_method__describe(&layout, &memory, &m, &f))
			named += *f.name != '\0';
		managed_function__fini(&f);
	}
	printf("total methods %" PRIu64 "\ntotal named %" PRIu64 "\n", count, named);
}

static void print_layout(void)
{
	struct target_memory memory = memory_of();
	struct hotspot_layout again;
	struct runtime_hotspot words;
	uint64_t counter, compiles, nmethods = 0;

	reads = 0;
	if (hotspot_layout__read(&again, &memory, exports))
		die("layout");
	printf("total layout_reads %" PRIu64 "\n", reads);
	for (int i = 0; i < HOTSPOT_PARTS; i++)
		printf("can %s %d\n", PARTS[i], again.can[i]);
	printf("total knows_used %d\ntotal knows_signature %d\n",
	       again.known[HOTSPOT_HEAP_BLOCK_USED], again.known[HOTSPOT_SIGNATURE_INDEX]);
	printf("total words %d\n", hotspot_words__make(&words, &code));
	if (!hotspot_counter__find(&layout, &memory, "sun.ci.totalCompiles", &counter) &&
	    !target_memory__word(&memory, &compiles, counter))
		printf("total compiles %" PRIu64 "\n", compiles);
	has_rows = true;
	refresh();
	if (failed)
		die("blobs and rows");
	for (size_t i = 0; i < blobs.list.count; i++)
		nmethods += blobs.list.data[i].kind == HOTSPOT_NMETHOD;
	printf("total nmethods %" PRIu64 "\ntotal without_rows %" PRIu64 "\n", nmethods,
	       table.failed);
	print_names();
	hotspot_layout__fini(&again);
}

static void open_trace(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	trace = fd < 0 ? MAP_FAILED
		       : mmap(NULL, sizeof(*trace), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (trace == MAP_FAILED)
		die(path);
	close(fd);
	for (int i = 0; i < 2000 && !__atomic_load_n(&trace->ready, __ATOMIC_ACQUIRE); i++)
		usleep(5000);
}

static void print_totals(void)
{
	const struct {
		const char *name;
		uint64_t value;
	} totals[] = {
		{"stops", stops},
		{"in_java", in_java},
		{"whole", whole},
		{"broken", broken},
		{"failed", failed},
		{"asked", requested},
		{"answered", answered},
		{"equal", equal},
		{"equal_callers", equal_callers},
		{"equal_marked", equal_marked},
		{"equal_apart", equal_apart},
		{"equal_inlined", equal_inlined},
		{"differing", differing},
		{"marked", marked},
		{"marked_callers", marked_callers},
		{"indices", indices},
		{"equal_indices", equal_indices},
		{"names", names},
		{"equal_names", equal_names},
		{"files", file_names},
		{"equal_files", equal_files},
		{"lines", lines},
		{"equal_lines", equal_lines},
		{"steps", steps},
		{"steps_in_java", steps_in_java},
		{"steps_broken", steps_broken},
		{"steps_other", steps_other},
	};

	for (size_t i = 0; i < sizeof(totals) / sizeof(totals[0]); i++)
		if (totals[i].value)
			printf("total %s %" PRIu64 "\n", totals[i].name, totals[i].value);
	naming__print(&naming);
	for (int i = 0; i < 16; i++)
		if (steps_by_kind[i])
			printf("wrong steps in kind %d: %" PRIu64 "\n", i, steps_by_kind[i]);
}

int main(int argc, char **argv)
{
	struct target_memory memory;
	uint64_t wanted;

	if (argc == 3 && !strcmp(argv[1], "layout")) {
		pid = atoi(argv[2]);
		open_jvm();
		print_layout();
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "names")) {
		pid = atoi(argv[2]);
		open_jvm();
		memory = memory_of();
		if (hotspot_blobs__refresh(&blobs, &code, &memory, &changes))
			die("blobs");
		print_compiled(&blobs, &layout, &memory);
		return 0;
	}
	if (argc == 4 && !strcmp(argv[1], "inlined")) {
		pid = atoi(argv[2]);
		return compare_inlined(strtoul(argv[3], NULL, 0));
	}
	if (argc < 7 || argc > 9) {
		fprintf(stderr,
			"usage: %s layout|names PID | inlined PID COUNT | stops|steps PID COUNT SEED THREAD ROWS [TRACE [MS]]\n",
			argv[0]);
		return 2;
	}
	pid = atoi(argv[2]);
	wanted = strtoul(argv[3], NULL, 0);
	srandom(strtoul(argv[4], NULL, 0));
	thread_name = argv[5];
	has_rows = strcmp(argv[6], "none");
	open_jvm();
	read_maps();
	if (argc >= 8)
		open_trace(argv[7]);
	if (argc == 9)
		begin_notes(strtoul(argv[8], NULL, 0));
	if (!strcmp(argv[1], "steps"))
		while (steps < wanted && some_steps(wanted))
			usleep(random() % PAUSE_MAX);
	else
		while (stops < wanted && one_stop())
			usleep(random() % PAUSE_MAX);
	print_totals();
	return 0;
}
