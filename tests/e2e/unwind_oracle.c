/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_oracle PID STOPS SEED: our walk against libdwfl's.
 *
 * Stops a random thread of the process (by ptrace) at a random time, so many times, and walks its
 * stack by both. Prints "differs …" with both stacks for the first ones that are not equal, and at the end
 * "total NAME COUNT": stops; equal_root (the same frames, both to the root); prologue (both to the root, and ours
 * has the innermost caller, which libdwfl left out); both_short; longer (ours reaches the root,
 * libdwfl does not); different (all else).
 */
#include <dirent.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/vec.h"
#include "elf/elf_file.h"
#include "unwind/unwind.h"
#include "unwind/unwind_table.h"

#define FRAMES_MAX  512
#define TABLE_LIMIT (1u << 30)
#define PAUSE_MAX   4000 /* us between stops */
#define SHOWN_MAX   5

struct known_file {
	dev_t device;
	ino_t inode;
	struct elf_file *file; /* NULL: not ELF */
	struct unwind_table_image image;
	int fd;
};

static pid_t pid;
static VEC(struct known_file *) files;
static VEC(struct unwind_range) ranges;
static uint64_t our_frames_by[16];

static void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(2);
}

static int read_process(void *context, void *to, size_t size, uint64_t address)
{
	struct iovec local = {to, size}, remote = {(void *)(uintptr_t)address, size};

	(void)context;
	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)size ? 0 : -1;
}

/* ---- its mappings ---------------------------------------------------------------------------- */

static struct known_file *new_file(int fd)
{
	struct known_file *f = calloc(1, sizeof(*f));
	struct stat st;

	if (!f || fstat(fd, &st))
		die("a mapped file");
	f->device = st.st_dev;
	f->inode = st.st_ino;
	f->fd = fd;
	if (!elf_file__open(fd, &f->file))
		unwind_table__build(f->file, TABLE_LIMIT, &f->image);
	if (vec_push(&files, f))
		die("memory");
	return f;
}

static struct known_file *file_of(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		die("a mapped file");
	for (size_t i = 0; i < files.count; i++) {
		if (files.data[i]->device == st.st_dev && files.data[i]->inode == st.st_ino) {
			close(fd);
			return files.data[i];
		}
	}
	return new_file(fd);
}

static int open_vdso(uint64_t start, uint64_t end)
{
	_cleanup_free_ void *bytes = malloc(end - start);
	int fd = memfd_create("vdso", MFD_CLOEXEC);

	if (!bytes || fd < 0 || read_process(NULL, bytes, end - start, start) ||
	    write_full(fd, bytes, end - start))
		die("vdso");
	return fd;
}

/* Each run of a mapping that belongs to a segment of its own. */
static void add_runs(struct unwind_range range, const struct known_file *file, uint64_t offset)
{
	uint64_t end = range.end, file_end = offset + (end - range.start);
	struct elf_code code;

	while (file && file->file && !elf_file__code_at(file->file, offset, file_end, &code)) {
		range.bias = range.start - code.address;
		range.table = file->image.bytes ? &file->image.table : NULL;
		range.segment = file->image.bytes;
		if (code.end == file_end)
			break;
		range.end = range.start + (code.end - offset);
		if (vec_push(&ranges, range))
			die("memory");
		range.start = range.end;
		range.end = end;
		offset = code.end;
	}
	if (vec_push(&ranges, range))
		die("memory");
}

static void add_mapping(const char *line)
{
	struct unwind_range range = {};
	char protection[8], path[4096] = "", link[128];
	unsigned long long offset, inode;
	struct known_file *file = NULL;
	int fd = -1;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %llx %*s %llu %4095[^\n]", &range.start,
		   &range.end, protection, &offset, &inode, path) < 5 ||
	    protection[2] != 'x' || !strcmp(path, "[vsyscall]"))
		return;
	if (!strcmp(path, "[vdso]")) {
		static struct known_file *vdso;

		if (!vdso)
			vdso = new_file(open_vdso(range.start, range.end));
		file = vdso;
		offset = 0;
	} else if (inode) {
		snprintf(link, sizeof(link), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid,
			 range.start, range.end);
		fd = open(link, O_RDONLY | O_CLOEXEC);
		file = fd < 0 ? NULL : file_of(fd);
	}
	add_runs(range, file, offset);
}

static void read_maps(void)
{
	_cleanup_free_ char *line = NULL;
	_cleanup_fclose_ FILE *f = NULL;
	char path[64];
	size_t size = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	if (!f)
		die(path);
	ranges.count = 0;
	while (getline(&line, &size, f) > 0)
		add_mapping(line);
}

/* ---- both walks ------------------------------------------------------------------------------ */

struct stack {
	uint64_t frames[FRAMES_MAX];
	size_t count;
	bool root, by_prologue;
	enum stack_end end;
};

static void walk_ours(const struct user_regs_struct *r, struct stack *stack)
{
	const uint64_t registers[UNWIND_REGISTERS] = {
		r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8,
		r->r9,	r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip,
	};
	const struct unwind_space space = {
		.ranges = ranges.data, .count = ranges.count, .read = read_process};

	stack->end = unwind_stack(&space, registers, false, stack->frames, FRAMES_MAX,
				  &stack->count);
	stack->root = stack->end == STACK_END_ROOT;
	stack->by_prologue = stack->count > 1 && frame_kind(stack->frames[1]) == FRAME_LEAF_PEEK;
	for (size_t i = 0; i < stack->count; i++) {
		our_frames_by[frame_kind(stack->frames[i]) & 15]++;
		stack->frames[i] = frame_address(stack->frames[i]);
	}
}

static int keep_frame(Dwfl_Frame *frame, void *context)
{
	struct stack *stack = context;
	Dwarf_Addr pc;

	if (stack->count == FRAMES_MAX || !dwfl_frame_pc(frame, &pc, NULL))
		return DWARF_CB_ABORT;
	stack->frames[stack->count++] = pc;
	return DWARF_CB_OK;
}

static void walk_libdwfls(Dwfl *dwfl, pid_t tid, struct stack *stack)
{
	stack->count = 0;
	stack->root = !dwfl_getthread_frames(dwfl, tid, keep_frame, stack);
	/* it goes on to a frame at address 0 where a return address is 0 */
	if (stack->count > 1 && !stack->frames[stack->count - 1]) {
		stack->count--;
		stack->root = true;
	}
}

/* ---- stops ----------------------------------------------------------------------------------- */

static uint64_t stops, equal_root, prologue, both_short, no_rule, longer, different, failed;

static void show(const char *what, const struct stack *a, const struct stack *b)
{
	static int shown;

	if (shown++ >= SHOWN_MAX)
		return;
	printf("%s: ours %zu frames, end %d; libdwfl %zu, root %d: %s\n", what, a->count, a->end,
	       b->count, b->root, b->root ? "" : dwfl_errmsg(-1));
	for (size_t i = 0; i < a->count || i < b->count; i++) {
		uint64_t x = i < a->count ? a->frames[i] : 0, y = i < b->count ? b->frames[i] : 0;
		const struct unwind_range *range = NULL;

		for (size_t k = 0; k < ranges.count; k++)
			if (y >= ranges.data[k].start && y < ranges.data[k].end)
				range = &ranges.data[k];
		printf("  %2zu %#18" PRIx64 " %#18" PRIx64 " %#" PRIx64 " %s\n", i, x, y,
		       range ? y - range->bias : 0, x == y ? "" : "<--");
	}
}

/* Where the innermost caller was found by a prologue: libdwfl leaves it out. */
static bool equal_but_for_prologue(const struct stack *a, const struct stack *b)
{
	return a->by_prologue && a->root && b->root && a->count == b->count + 1 &&
	       a->frames[0] == b->frames[0] &&
	       !memcmp(a->frames + 2, b->frames + 1, (b->count - 1) * sizeof(*b->frames));
}

/*
 * Where both stop short of the root, libdwfl may have gone on to what is no code. A frame that is
 * found from a register other than the stack's and the frame's, and is not the innermost one, has
 * no rule: of glibc, the one that binds a function at its first call.
 */
static void compare(const struct stack *a, const struct stack *b)
{
	size_t common = a->count < b->count ? a->count : b->count;
	bool equal = !memcmp(a->frames, b->frames, common * sizeof(*a->frames));

	stops++;
	if (equal && a->count == b->count && a->root && b->root) {
		equal_root++;
	} else if (equal_but_for_prologue(a, b)) {
		prologue++;
	} else if (equal && !a->root && !b->root) {
		both_short++;
		show("short", a, b);
	} else if (equal && a->end == STACK_END_NO_RULE && a->count < b->count) {
		no_rule++;
		show("no rule", a, b);
	} else if (equal && a->root && !b->root && a->count >= b->count) {
		longer++;
		show("longer", a, b);
	} else {
		different++;
		show("differs", a, b);
	}
}

static pid_t random_thread(void)
{
	_cleanup_closedir_ DIR *dir = NULL;
	struct dirent *entry;
	char path[64];
	pid_t chosen = 0;
	int seen = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		pid_t tid = atoi(entry->d_name);

		if (tid && random() % ++seen == 0)
			chosen = tid;
	}
	return chosen;
}

/* 0: stopped, with the signal to pass on in *sig; else it is gone. */
static int stop(pid_t tid, int *sig)
{
	int status;

	*sig = 0;
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) || ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) ||
	    waitpid(tid, &status, __WALL) < 0 || !WIFSTOPPED(status))
		return -1;
	if (status >> 16 == 0 && WSTOPSIG(status) != SIGTRAP)
		*sig = WSTOPSIG(status);
	return 0;
}

static bool one_stop(Dwfl *dwfl)
{
	static struct stack a, b;
	struct user_regs_struct registers;
	pid_t tid = random_thread();
	int sig;

	if (!tid)
		return false;
	if (stop(tid, &sig)) {
		failed++;
		return failed < 100;
	}
	if (!ptrace(PTRACE_GETREGS, tid, NULL, &registers)) {
		read_maps();
		if (dwfl_linux_proc_report(dwfl, pid) || dwfl_report_end(dwfl, NULL, NULL))
			failed++;
		walk_ours(&registers, &a);
		walk_libdwfls(dwfl, tid, &b);
		compare(&a, &b);
	}
	ptrace(PTRACE_DETACH, tid, NULL, sig);
	return true;
}

int main(int argc, char **argv)
{
	char *path = NULL;
	const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_linux_proc_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.debuginfo_path = &path,
	};
	Dwfl *dwfl = dwfl_begin(&callbacks);
	unsigned long wanted;

	if (argc != 4) {
		fprintf(stderr, "usage: %s PID STOPS SEED\n", argv[0]);
		return 2;
	}
	pid = atoi(argv[1]);
	wanted = strtoul(argv[2], NULL, 0);
	srandom(strtoul(argv[3], NULL, 0));
	if (dwfl_linux_proc_report(dwfl, pid) || dwfl_report_end(dwfl, NULL, NULL) ||
	    dwfl_linux_proc_attach(dwfl, pid, true)) {
		fprintf(stderr, "libdwfl: %s\n", dwfl_errmsg(-1));
		return 2;
	}
	while (stops < wanted && one_stop(dwfl))
		usleep(random() % PAUSE_MAX);
	dwfl_end(dwfl);
#define PRINT(name) printf("total " #name " %" PRIu64 "\n", name)
	PRINT(stops);
	PRINT(equal_root);
	PRINT(prologue);
	PRINT(both_short);
	PRINT(no_rule);
	PRINT(longer);
	PRINT(different);
	printf("total by_table %" PRIu64 "\n", our_frames_by[FRAME_TABLE]);
	printf("total by_frame_pointer %" PRIu64 "\n", our_frames_by[FRAME_POINTER]);
	printf("total by_prologue %" PRIu64 "\n", our_frames_by[FRAME_LEAF_PEEK]);
	printf("total signal_returns %" PRIu64 "\n", our_frames_by[FRAME_SIGNAL_RETURN]);
	printf("total after_signal %" PRIu64 "\n", our_frames_by[FRAME_AFTER_SIGNAL]);
	return different > 0;
}
