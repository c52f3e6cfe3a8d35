/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cpython_oracle PID: what userspace/runtimes/ reads of a CPython that is stopped, for runtime_cpython.py.
 *
 * The first line that it prints is what was found of the interpreter. Then it executes one line of its input after the other
 * and answers each with one line of JSON:
 *   stop TID    stops the thread by ptrace, walks its Python stack, names it, and merges it with the native frames of libdwfl
 *   dump TID    the same, and then lets the thread run its handler of SIGUSR1 (faulthandler's) before any other
 *               instruction, to the handler's end
 *   gil         stops all threads: which one holds the GIL, which ones wait
 *   again       reads the code objects of the last stop again, while the process runs: how many are still what they were
 */
#include <sys/syscall.h>
#include <time.h>

#include "base/json_writer.h"
#include "base/vec.h"
#include "elf/elf_file.h"
#include "runtimes/python/code.h"
#include "runtimes/python/cpython.h"
#include "models/cpython_merge.h"
#include "models/cpython_walk.h"
#include "runtimes/python/find.h"
#include "runtimes/python/layout.h"
#include "runtimes/python/thread.h"
#include "stopped.h"

#define FRAMES_MAX	2000u
#define GROUPS_MAX	500u
#define NATIVES_MAX	4000u
#define NOWHERE		0x10u /* nothing is mapped there */
#define RSP		7
#define HANDLER_SECONDS 3

static Dwfl *dwfl;
static struct cpython py;
static struct cpython_thread_word word;
static struct json_writer json;

static struct target_memory new_memory(void)
{
	return (struct target_memory){
		.read = read_process, .bytes_left = 64u << 20, .reads_left = 1u << 20};
}

/* ---- the interpreter ------------------------------------------------------------------------- */

struct mapping {
	uint64_t start, end, offset;
	unsigned long long inode;
};

static VEC(struct mapping) mappings;

static void read_mappings(void)
{
	_cleanup_free_ char *line = NULL;
	_cleanup_fclose_ FILE *f = open_proc("maps");
	size_t size = 0;

	mappings.count = 0;
	while (getline(&line, &size, f) > 0) {
		struct mapping m;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %llu", &m.start,
			   &m.end, &m.offset, &m.inode) != 4)
			continue;
		if (vec_push(&mappings, m))
			die("memory");
	}
}

static enum cpython_verdict try_file(size_t i, int fd)
{
	struct target_memory m = new_memory();
	struct cpython_symbols symbols;
	struct cpython_image image = {.symbols = &symbols};
	enum cpython_verdict verdict = CPYTHON_ABSENT;
	struct elf_file *file;
	uint64_t address;

	if (elf_file__open(fd, &file))
		return CPYTHON_ABSENT;
	if (!cpython_symbols__read(file, &symbols) &&
	    !elf_file__address_of_offset(file, mappings.data[i].offset, &address)) {
		image.bias = mappings.data[i].start - (address & ~UINT64_C(4095));
		verdict = cpython__find(&image, &m, &py);
		if (verdict == CPYTHON_OK)
			verdict = cpython_thread_word__find(&py, &image, &m, &word);
	}
	elf_file__free(file);
	return verdict;
}

static enum cpython_verdict find_interpreter(void)
{
	enum cpython_verdict worst = CPYTHON_ABSENT;
	unsigned long long last = 0;

	read_mappings();
	for (size_t i = 0; i < mappings.count; i++) {
		enum cpython_verdict verdict;
		int fd;

		if (!mappings.data[i].inode || mappings.data[i].inode == last)
			continue;
		last = mappings.data[i].inode;
		fd = open_map_file(mappings.data[i].start, mappings.data[i].end);
		verdict = fd < 0 ? CPYTHON_ABSENT : try_file(i, fd);
		if (fd >= 0)
			close(fd);
		if (verdict == CPYTHON_OK)
			return verdict;
		if (verdict != CPYTHON_ABSENT)
			worst = verdict;
	}
	return worst;
}

/* ---- native frames --------------------------------------------------------------------------- */

struct natives {
	struct cpython_native frames[NATIVES_MAX];
	bool is_loop[NATIVES_MAX]; /* by its symbol */
	size_t count;
	bool root;
};

static bool is_loop_at(uint64_t pc)
{
	Dwfl_Module *module = dwfl_addrmodule(dwfl, pc);
	const char *name = module ? dwfl_module_addrname(module, pc) : NULL;

	return name && !strncmp(name, "_PyEval_EvalFrameDefault", 24);
}

static int keep_native(Dwfl_Frame *frame, void *context)
{
	struct natives *n = context;
	bool activation;
	Dwarf_Addr pc;
	Dwarf_Word sp;

	if (n->count == NATIVES_MAX || !dwfl_frame_pc(frame, &pc, &activation) ||
	    dwfl_frame_reg(frame, RSP, &sp))
		return DWARF_CB_ABORT;
	if (n->count)
		n->frames[n->count - 1].cfa = sp;
	n->is_loop[n->count] = is_loop_at(activation ? pc : pc - 1);
	n->frames[n->count++] = (struct cpython_native){.sp = sp, .cfa = sp};
	return DWARF_CB_OK;
}

/* Modules are reported again where the executable ones have changed. */
static void report_modules(void)
{
	static uint64_t known;
	uint64_t sum = 1;

	read_mappings();
	for (size_t i = 0; i < mappings.count; i++)
		if (mappings.data[i].inode)
			sum = sum * 31 + mappings.data[i].start + mappings.data[i].inode;
	if (sum == known)
		return;
	known = sum;
	dwfl_report_begin(dwfl);
	if (report_to(dwfl))
		die("libdwfl");
}

static void walk_natives(pid_t tid, struct natives *n)
{
	report_modules();
	n->count = 0;
	n->root = !dwfl_getthread_frames(dwfl, tid, keep_native, n);
}

/* ---- output ---------------------------------------------------------------------------------- */

static void begin_line(const char *key, const char *value)
{
	json_writer__init(&json, stdout);
	json_begin_object(&json);
	json_key_string(&json, key, value);
}

static void end_line(void)
{
	json_end_object(&json);
	if (json_writer__finish(&json) || putchar('\n') == EOF || fflush(stdout))
		die("output");
}

/* ---- one stop -------------------------------------------------------------------------------- */

static struct cpython_frame frames[FRAMES_MAX];
static struct cpython_group groups[GROUPS_MAX];
static struct cpython_place places[GROUPS_MAX];
static struct natives natives;
static struct managed_function functions[FRAMES_MAX]; /* of the last stop's frames */
static size_t frame_count;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}

static enum code_state read_function(const struct cpython_frame *f,
				     struct managed_function *function, uint64_t *reads)
{
	struct target_memory m = {.read = read_process,
				  .bytes_left = CPYTHON_CODE_SPENT,
				  .reads_left = CPYTHON_CODE_READS};
	enum code_state sure = cpython_code__read(&py, &m, f->code, &f->identity, function);

	*reads += CPYTHON_CODE_READS - m.reads_left;
	return sure;
}

/* Of a place in the function; where there is none that of its definition. 0: unknown. */
static uint32_t line_of(const struct managed_function *f, uint32_t instruction)
{
	const struct managed_row *row = NULL;

	if (instruction != CPYTHON_NO_INSTRUCTION && instruction >= py.layout.code_bytecode)
		row = managed_function__row(f, instruction - py.layout.code_bytecode);
	return row && row->line ? row->line : f->line;
}

static void put_frame(size_t i, uint64_t *reads, uint64_t *ns)
{
	static const char *const words[] = {"unknown", "confirmed", "stale"};
	struct managed_function *function = &functions[i];
	uint64_t begin = now();
	enum code_state sure;

	managed_function__fini(function);
	sure = read_function(&frames[i], function, reads);
	*ns += now() - begin;
	json_begin_object(&json);
	json_key_string(&json, "sure", words[sure]);
	json_key_string(&json, "name", function->name);
	json_key_string(&json, "file", function->file);
	json_key_uint(&json, "line", line_of(function, frames[i].instruction));
	json_key_uint(&json, "first", function->line);
	json_end_object(&json);
}

static bool is_equal(const struct managed_function *a, const struct managed_function *b)
{
	return !strcmp(a->name, b->name) && !strcmp(a->file, b->file) && a->line == b->line &&
	       a->rows.count == b->rows.count &&
	       !memcmp(a->rows.data, b->rows.data, a->rows.count * sizeof(*a->rows.data));
}

static void on_again(void)
{
	uint64_t reads = 0, right = 0, wrong = 0, flagged = 0;

	for (size_t i = 0; i < frame_count; i++) {
		struct managed_function again = {};

		if (read_function(&frames[i], &again, &reads) != CODE_STATE_CONFIRMED)
			flagged++;
		else if (is_equal(&again, &functions[i]))
			right++;
		else
			wrong++;
		managed_function__fini(&again);
	}
	begin_line("command", "again");
	json_key_uint(&json, "right", right);
	json_key_uint(&json, "wrong", wrong);
	json_key_uint(&json, "flagged", flagged);
	end_line();
}

static void put_groups(const struct cpython_stack *s)
{
	cpython__merge(natives.frames, natives.count, groups, s->group_count, places);
	json_key_array(&json, "groups");
	for (size_t i = 0; i < s->group_count; i++) {
		json_begin_object(&json);
		json_key_uint(&json, "count", groups[i].count);
		json_key_bool(&json, "anchor", groups[i].anchor != 0);
		json_key_uint(&json, "native", places[i].frame);
		json_key_bool(&json, "is_loop", places[i].is_loop);
		if (places[i].is_loop)
			json_key_uint(&json, "to_cfa",
				      natives.frames[places[i].frame].cfa - groups[i].anchor);
		json_end_object(&json);
	}
	json_end_array(&json);
	json_key_array(&json, "loops"); /* native frames that are loops by their symbol */
	for (size_t i = 0; i < natives.count; i++)
		if (natives.is_loop[i])
			json_uint(&json, i);
	json_end_array(&json);
	json_key_uint(&json, "natives", natives.count);
	json_key_bool(&json, "native_root", natives.root);
	json_key_string(&json, "native_end", natives.root ? NULL : dwfl_errmsg(-1));
}

static void put_stack(pid_t tid, uint64_t fs)
{
	static const char *const ends[CPYTHON_ENDS] = {"root", "limit", "unreadable", "cut",
						       "torn"};
	struct cpython_stack s = {.frames = frames,
				  .frames_max = FRAMES_MAX,
				  .groups = groups,
				  .groups_max = GROUPS_MAX,
				  .passed_max = 1000};
	struct target_memory m = new_memory();
	uint64_t state, reads = 0, ns = 0, begin = now();

	if (cpython_thread_word__state(&word, &m, fs, &state))
		state = 0;
	s.end = CPYTHON_END_ROOT;
	if (state)
		cpython__walk(&py, &m, state, &s);
	json_key_uint(&json, "walk_ns", now() - begin);
	json_key_uint(&json, "walk_reads", (1u << 20) - m.reads_left);
	json_key_bool(&json, "state", state != 0);
	json_key_string(&json, "end", ends[s.end]);
	json_key_bool(&json, "restarted", s.restarted);
	json_key_array(&json, "frames");
	for (size_t i = 0; i < s.frame_count; i++)
		put_frame(i, &reads, &ns);
	frame_count = s.frame_count;
	json_end_array(&json);
	json_key_uint(&json, "reads", reads);
	json_key_uint(&json, "ns", ns);
	walk_natives(tid, &natives);
	put_groups(&s);
}

/* On until this signal is about to be delivered; others are passed on. */
static bool run_to_signal(pid_t tid, int wanted, int sig)
{
	for (int tries = 0; tries < 50; tries++) {
		int status;

		if (ptrace(PTRACE_CONT, tid, NULL, sig) || waitpid(tid, &status, __WALL) < 0 ||
		    !WIFSTOPPED(status))
			return false;
		sig = status >> 16 ? 0 : WSTOPSIG(status);
		if (sig == wanted)
			return true;
		if (sig == SIGSEGV)
			return false;
	}
	return false;
}

static void on_alarm(int number)
{
	(void)number;
}

/*
 * The handler's return address is replaced by one where nothing is, so that its end is seen; then it returns after all.
 * False: it died in the handler, or does not come to its end.
 */
static bool run_handler(pid_t tid)
{
	struct user_regs_struct r;
	uint64_t back, nowhere = NOWHERE;
	int status;

	if (syscall(SYS_tgkill, pid, tid, SIGUSR1) || !run_to_signal(tid, SIGUSR1, 0) ||
	    ptrace(PTRACE_SINGLESTEP, tid, NULL, SIGUSR1) || waitpid(tid, &status, __WALL) < 0 ||
	    !WIFSTOPPED(status) || ptrace(PTRACE_GETREGS, tid, NULL, &r))
		return false;
	back = ptrace(PTRACE_PEEKDATA, tid, r.rsp, NULL);
	if (ptrace(PTRACE_POKEDATA, tid, r.rsp, nowhere) || !run_to_signal(tid, SIGSEGV, 0) ||
	    ptrace(PTRACE_GETREGS, tid, NULL, &r) || r.rip != NOWHERE)
		return false;
	r.rip = back;
	return !ptrace(PTRACE_SETREGS, tid, NULL, &r);
}

static void on_stop(pid_t tid, bool dump)
{
	struct user_regs_struct r;
	bool stopped, handled = true;
	int sig;

	begin_line("command", dump ? "dump" : "stop");
	stopped = !stop(tid, &sig) && !ptrace(PTRACE_GETREGS, tid, NULL, &r);
	json_key_bool(&json, "stopped", stopped);
	if (stopped) {
		put_stack(tid, r.fs_base);
		/* some versions follow a torn chain for ever */
		alarm(HANDLER_SECONDS);
		handled = !dump || run_handler(tid);
		alarm(0);
		json_key_bool(&json, "handled", handled);
	}
	ptrace(PTRACE_DETACH, tid, NULL, sig);
	end_line();
}

/* ---- the GIL --------------------------------------------------------------------------------- */

struct stopped {
	pid_t tid;
	int sig;
	uint64_t fs, state;
};

static VEC(struct stopped) threads;

static void stop_all(void)
{
	_cleanup_closedir_ DIR *dir = NULL;
	struct dirent *entry;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	threads.count = 0;
	while (dir && (entry = readdir(dir))) {
		struct stopped t = {.tid = atoi(entry->d_name)};
		struct user_regs_struct r;

		if (!t.tid || stop(t.tid, &t.sig) || ptrace(PTRACE_GETREGS, t.tid, NULL, &r))
			continue;
		t.fs = r.fs_base;
		if (vec_push(&threads, t))
			die("memory");
	}
}

/* As the kernel reads it: {holder, is it locked?} of the main interpreter's. */
static uint64_t holder_of_gil(struct target_memory *m)
{
	struct cpython_main_gil gil;
	uint64_t holder;
	uint32_t locked;

	if (cpython_gil__of_main(&py, m, &gil) || target_memory__word(m, &holder, gil.address) ||
	    target_memory__u32(m, &locked, gil.address + sizeof(holder)))
		return 0;
	return locked == 1 ? holder : 0;
}

static void put_holder(uint64_t holder)
{
	json_key(&json, "holder");
	for (size_t i = 0; i < threads.count; i++) {
		if (holder && threads.data[i].state == holder) {
			json_uint(&json, threads.data[i].tid);
			return;
		}
	}
	json_null(&json);
}

/* A flag of a thread's state; `otherwise`: this version has none. */
static bool flag_of(struct target_memory *m, uint64_t state, uint32_t offset, bool otherwise)
{
	uint32_t flag = 0;

	if (!offset || !state)
		return state && otherwise;
	target_memory__u32(m, &flag, state + offset);
	return flag;
}

static void on_gil(void)
{
	const struct cpython_layout *l = &py.layout;
	struct target_memory m = new_memory();
	uint64_t holder;

	begin_line("command", "gil");
	stop_all();
	holder = holder_of_gil(&m);
	json_key_array(&json, "threads");
	for (size_t i = 0; i < threads.count; i++) {
		struct stopped *t = &threads.data[i];

		if (cpython_thread_word__state(&word, &m, t->fs, &t->state))
			t->state = 0;
		json_begin_object(&json);
		json_key_uint(&json, "tid", t->tid);
		json_key_bool(&json, "state", t->state != 0);
		json_key_bool(&json, "holds",
			      flag_of(&m, t->state, l->thread_holds_gil, t->state == holder));
		json_key(&json, "waits");
		if (l->thread_requests_gil)
			json_bool(&json, flag_of(&m, t->state, l->thread_requests_gil, false));
		else
			json_null(&json);
		json_end_object(&json);
	}
	json_end_array(&json);
	put_holder(holder);
	for (size_t i = 0; i < threads.count; i++)
		ptrace(PTRACE_DETACH, threads.data[i].tid, NULL, threads.data[i].sig);
	end_line();
}

int main(int argc, char **argv)
{
	enum cpython_verdict verdict;
	char line[64];

	if (argc < 2) {
		fprintf(stderr, "usage: %s PID\n", argv[0]);
		return 2;
	}
	pid = atoi(argv[1]);
	sigaction(SIGALRM, &(struct sigaction){.sa_handler = on_alarm}, NULL); /* waits end by it */
	verdict = find_interpreter();
	begin_line("verdict", cpython_verdict__text(verdict));
	json_key_uint(&json, "version", py.version);
	json_key_uint(&json, "hops", word.hops);
	json_key_int(&json, "offset", word.offset[word.hops ? word.hops - 1 : 0]);
	end_line();
	if (verdict)
		return 0;
	dwfl = attach_libdwfl();
	while (fgets(line, sizeof(line), stdin)) {
		if (!strncmp(line, "stop ", 5) || !strncmp(line, "dump ", 5))
			on_stop(atoi(line + 5), line[0] == 'd');
		else if (!strncmp(line, "gil", 3))
			on_gil();
		else if (!strncmp(line, "again", 5))
			on_again();
	}
	dwfl_end(dwfl);
	return 0;
}
