/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The doors to libdw and liblzma, as a sealed child uses them: module_resolve() on a file that is
 * its own debug file and its own dwz file.
 *
 * libdw itself is the system's, is not instrumented, and is known to die of some inputs. That is what
 * children are sealed for: it costs a module's lines. Nothing can be said of this process then, so
 * it ends with an exit status of its own and run.sh starts it again. A death counts as libdw's where
 * libdw is on the stack, as nothing of ours is ever called by it. All else is ours.
 */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "elf/elf_symbols.h"
#include "fuzz.h"
#include "symbolize/module.h"
#include "symbolize/module_index.h"
#include "symbolize/symbol_index.h"

#define MEMORY_LIMIT  (64u << 20)
#define ADDRESSES     128 /* of symbols, and as many others */
#define FIRST_ADDRESS 0x1000
#define ADDRESS_STEP  12
#define STACK_FRAMES  64
#define DIED_IN_LIBDW 75 /* run.sh has it as well */

int LLVMFuzzerInitialize(int *argc, char ***argv);
const char *__asan_default_options(void);
void __asan_on_error(void);
int open(const char *path, int flags, ...);
int open64(const char *path, int flags, ...);

/* libdw opens .dwo files by names that are in the input; none of this machine's is to be read. */
int open(const char *path, int flags, ...)
{
	(void)path;
	(void)flags;
	errno = ENOENT;
	return -1;
}

int open64(const char *path, int flags, ...)
{
	return open(path, flags);
}

/* ---- deaths in libdw ------------------------------------------------------------------------- */

/* So that there is a handler to hand our own deaths to, which keeps the input. */
const char *__asan_default_options(void)
{
	return "handle_abort=1:handle_sigfpe=1:handle_sigbus=1:use_sigaltstack=1";
}

static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGABRT};
static struct sigaction others[COUNT(SIGNALS)];

/* Ends the process if the death is libdw's. */
static void check_whose_death(void)
{
	static const char message[] = "died inside libdw:\n";
	void *frames[STACK_FRAMES];
	int count = backtrace(frames, STACK_FRAMES);

	for (int i = 0; i < count; i++) {
		Dl_info place;

		if (!dladdr(frames[i], &place) || !strstr(place.dli_fname, "/libdw"))
			continue;
		if (write(STDERR_FILENO, message, sizeof(message) - 1) > 0)
			backtrace_symbols_fd(frames + i, 1, STDERR_FILENO);
		_exit(DIED_IN_LIBDW);
	}
}

/* What the sanitizer saw in memcpy() and the like, when libdw called it. */
void __asan_on_error(void)
{
	check_whose_death();
}

static void on_death(int number, siginfo_t *info, void *context)
{
	check_whose_death();
	for (size_t i = 0; i < COUNT(SIGNALS); i++) {
		if (SIGNALS[i] == number && others[i].sa_flags & SA_SIGINFO)
			others[i].sa_sigaction(number, info, context);
	}
	_exit(1);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct sigaction action = {.sa_sigaction = on_death, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	void *frame;

	(void)argc;
	(void)argv;
	backtrace(&frame, 1); /* the first call loads a library */
	for (size_t i = 0; i < COUNT(SIGNALS); i++)
		MUST(!sigaction(SIGNALS[i], &action, &others[i]));
	return 0;
}

/* ---- mutations ------------------------------------------------------------------------------- */

static const char *const SECTIONS[] = {
	".debug_info",	   ".debug_abbrev", ".debug_line", ".debug_line_str", ".debug_str",
	".debug_rnglists", ".debug_ranges", ".debug_addr", ".gnu_debugdata",
};

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	return fuzz_mutate_section(SECTIONS, COUNT(SECTIONS), data, size, max_size, seed);
}

/* ---- the target ------------------------------------------------------------------------------ */

struct addresses {
	uint64_t data[2 * ADDRESSES];
	size_t count;
};

static int take_symbol(void *context, const struct elf_symbol *symbol)
{
	struct addresses *a = context;

	a->data[a->count++] = symbol->address + symbol->size / 2;
	return a->count == ADDRESSES;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Sorted and distinct; symbols are where the code is. */
static void choose_addresses(int fd, struct addresses *a)
{
	struct elf_file *file;
	size_t kept = 0;

	if (!elf_file__open(fd, &file)) {
		elf_file__each_symbol(file, take_symbol, a);
		elf_file__free(file);
	}
	for (size_t i = 0; i < ADDRESSES; i++)
		a->data[a->count++] = FIRST_ADDRESS + i * ADDRESS_STEP;
	qsort(a->data, a->count, sizeof(*a->data), compare);
	for (size_t i = 0; i < a->count; i++) {
		if (!kept || a->data[i] != a->data[kept - 1])
			a->data[kept++] = a->data[i];
	}
	a->count = kept;
}

static void read_text(const char *text)
{
	if (text)
		fuzz_read(text, strlen(text));
}

static int read_result(void *context, size_t index, const struct symbol_result *result)
{
	size_t *next = context;

	MUST(index == (*next)++);
	for (size_t i = 0; i < result->frame_count; i++) {
		const struct symbol_frame *frame = &result->frames[i];

		MUST(frame->function);
		read_text(frame->function);
		read_text(frame->file);
		read_text(frame->definition_file);
	}
	return 0;
}

static void resolve(const struct module_files *files, const struct addresses *a)
{
	struct module_report report;
	size_t reported = 0;

	if (module_resolve(files, a->data, a->count, read_result, &reported, &report))
		return;
	MUST(reported == a->count && report.addresses == reported);
	MUST(report.with_symbol <= reported && report.with_lines <= reported);
	MUST(report.state < SYMBOL_STATE_COUNT && report.dwarf < DWARF_STATE_COUNT);
}

static bool is_same_text(const char *a, const char *b)
{
	return !strcmp(a ? a : "", b ? b : "");
}

/* What the index and the module answer for one address. */
struct indexed {
	const struct symbol_index *index;
	const struct addresses *addresses;
};

static int compare_with_index(void *context, size_t i, const struct symbol_result *result)
{
	static struct symbol_answer answer;
	const struct indexed *x = context;

	if (!symbol_index__find(x->index, x->addresses->data[i], &answer))
		return 0;
	MUST(answer.result.elf_address == result->elf_address);
	MUST(answer.result.frame_count == result->frame_count ||
	     answer.result.frame_count == SYMBOL_CHAIN_MAX);
	for (size_t k = 0; k < answer.result.frame_count; k++) {
		const struct symbol_frame *f = &answer.frames[k], *g = &result->frames[k];

		MUST(is_same_text(f->function, g->function) && is_same_text(f->file, g->file) &&
		     is_same_text(f->definition_file, g->definition_file));
		MUST(f->function_address == g->function_address && f->line == g->line &&
		     f->function_size == g->function_size && f->column == g->column &&
		     f->definition_line == g->definition_line &&
		     f->definition_column == g->definition_column);
	}
	return 0;
}

/* Whatever the file says: an index can be opened, and has the module's answers. */
static void make_index(const struct module_files *files, const struct addresses *a)
{
	struct indexed indexed = {.addresses = a};
	struct symbol_index *index = NULL;
	struct module_report report;
	struct module *module;
	size_t size;
	void *data;

	if (module__open(files, &module))
		return;
	if (!module__index(module, a->data, a->count, &data, &size)) {
		MUST(!symbol_index__open(data, size, &index));
		indexed.index = index;
		module__resolve(module, a->data, a->count, compare_with_index, &indexed, &report);
	}
	symbol_index__free(index);
	module__free(module);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = fuzz_file(data, size);
	/* requests by ELF address, which any symbol's is; and by file offset */
	struct module_files kernel = {.kind = DSO_KERNEL,
				      .elf_fd = -1,
				      .debug_fd = fd,
				      .alt_fd = -1,
				      .memory_limit = MEMORY_LIMIT};
	struct module_files mapped = {.kind = DSO_FILE,
				      .elf_fd = fd,
				      .debug_fd = -1,
				      .alt_fd = fd,
				      .memory_limit = MEMORY_LIMIT};
	struct addresses a = {};

	choose_addresses(fd, &a);
	resolve(&kernel, &a);
	resolve(&mapped, &a);
	make_index(&mapped, &a);
	close(fd);
	return 0;
}
