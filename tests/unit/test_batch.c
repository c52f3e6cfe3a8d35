/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many dsos at once, in sealed processes: the same answers as one by one in this process, in the order
 * of the jobs, whatever of them there is.
 */
#include "unit.h"

#include <sysprof/symbolizer.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "elf/elf_file.h"
#include "elf/elf_sections.h"
#include "elf/elf_symbols.h"
#include "tenants/outside_books.h"
#include "tools.h"

#define ADDRESSES	 400
#define KERNEL_ADDRESSES 3

/* All results of a sink, as text. */
struct reported {
	char *text;
	size_t size;
	FILE *stream;
	size_t count;
	bool done;
	unsigned int *turn, came;
};

static void reported__init(struct reported *t)
{
	*t = (struct reported){};
	t->stream = open_memstream(&t->text, &t->size);
	assert_non_null(t->stream);
}

static void reported__fini(struct reported *t)
{
	fclose(t->stream);
	free(t->text);
}

static int report(void *context, size_t index, const struct symbol_result *result)
{
	struct reported *t = context;

	assert_int_equal(index, t->count);
	assert_false(t->done);
	t->count++;
	fprintf(t->stream, "%zu %llx\n", index, (unsigned long long)result->elf_address);
	for (size_t i = 0; i < result->frame_count; i++) {
		const struct symbol_frame *f = &result->frames[i];

		fprintf(t->stream, "  %s %llx+%llx %s:%u:%u %s:%u:%u\n", f->function,
			(unsigned long long)f->function_address,
			(unsigned long long)f->function_size, f->file ? f->file : "-", f->line,
			f->column, f->definition_file ? f->definition_file : "-",
			f->definition_line, f->definition_column);
	}
	return 0;
}

static int on_done(void *context, const struct symbolizer_job *job)
{
	struct reported *t = context;

	assert_int_equal(t->count, job->count);
	assert_false(t->done);
	t->done = true;
	if (t->turn)
		t->came = ++*t->turn;
	return 0;
}

static int own_file(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* Offsets of code of this program, some of its functions being longer than one step. */
static size_t own_offsets(int fd, uint64_t *offsets)
{
	struct elf_file *file;
	struct elf_section text;

	assert_int_equal(elf_file__open(fd, &file), 0);
	assert_int_equal(elf_file__find_section(file, ".text", &text), 0);
	elf_file__free(file);
	for (size_t i = 0; i < ADDRESSES; i++)
		offsets[i] = text.offset + i * (text.size / ADDRESSES);
	return ADDRESSES;
}

static struct symbolizer *symbolizer_of_kernel(void)
{
	static const char kallsyms[] = "ffffffff81000000 T one\nffffffff81000100 T two\n"
				       "ffffffff81000200 T end\n"
				       "ffffffffc0000000 t read_block\t[ext4]\n"
				       "ffffffffc0000100 t last\t[ext4]\n";
	struct symbolizer *s = symbolizer__new();

	assert_non_null(s);
	assert_int_equal(symbolizer__add_kallsyms(s, kallsyms, sizeof(kallsyms) - 1), 0);
	return s;
}

enum { KERNEL, OWN, MISSING, JIT, TEXT, EMPTY, OWN_AGAIN, JOBS };

struct world {
	struct symbolizer *symbolizer;
	uint64_t offsets[ADDRESSES], kernel[KERNEL_ADDRESSES];
	int own, text;
	struct symbolizer_job jobs[JOBS];
	struct reported reported[JOBS];
	unsigned int turn;
	size_t polls, cancel_at; /* the poll that does not wait any more; 0: none */
};

static void world__init(struct world *w)
{
	static const enum dso_kind kinds[JOBS] = {DSO_KERNEL, DSO_FILE, DSO_FILE, DSO_JIT,
						  DSO_FILE,   DSO_FILE, DSO_VDSO};

	*w = (struct world){.kernel = {0xffffffff81000010, 0xffffffff81000110, 0xffffffffc0000080}};
	w->symbolizer = symbolizer_of_kernel();
	w->own = own_file();
	w->text = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	own_offsets(w->own, w->offsets);
	for (size_t i = 0; i < JOBS; i++) {
		bool own = i == OWN || i == OWN_AGAIN || i == EMPTY;

		reported__init(&w->reported[i]);
		w->reported[i].turn = &w->turn;
		w->jobs[i] = (struct symbolizer_job){
			.dso = {.kind = kinds[i],
				.fd = own	  ? w->own
				      : i == TEXT ? w->text
						  : -1,
				.root_fd = -1,
				.path = "/nowhere/test"},
			.addresses = i == KERNEL ? w->kernel : w->offsets,
			.count = i == KERNEL  ? KERNEL_ADDRESSES
				 : i == EMPTY ? 0
					      : ADDRESSES,
			.sink = report,
			.done = on_done,
			.context = &w->reported[i],
		};
	}
}

static void world__fini(struct world *w)
{
	for (size_t i = 0; i < JOBS; i++)
		reported__fini(&w->reported[i]);
	close(w->own);
	close(w->text);
	symbolizer__free(w->symbolizer);
}

static int on_progress(void *context, const struct symbolizer_progress *progress)
{
	struct world *w = context;

	assert_true(progress->done <= progress->total);
	assert_int_equal(progress->total, 5 * ADDRESSES + KERNEL_ADDRESSES);
	return ++w->polls == w->cancel_at;
}

static void resolve_world(struct world *w, struct symbolizer_counts *counts)
{
	const struct symbolizer_options options = {.progress = on_progress, .context = w};

	*counts = (struct symbolizer_counts){};
	assert_int_equal(symbolizer__resolve_all(w->symbolizer, w->jobs, JOBS, &options, counts),
			 0);
	for (size_t i = 0; i < JOBS; i++) {
		assert_true(w->reported[i].done);
		assert_int_equal(w->reported[i].came, i + 1);
		fflush(w->reported[i].stream);
	}
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

TEST(a_batch_has_the_same_answers_as_single_jobs)
{
	struct symbolizer_counts counts;
	_cleanup_(world__fini) struct world w = {};

	world__init(&w);
	resolve_world(&w, &counts);
	for (size_t i = 0; i < JOBS; i++) {
		const struct symbolizer_job *job = &w.jobs[i];
		struct symbolizer_job alone = *job;
		struct symbolizer_counts one = {};
		struct reported reported;

		if (!job->count)
			continue;
		reported__init(&reported);
		alone.done = NULL;
		alone.context = &reported;
		assert_int_equal(symbolizer__resolve_all(w.symbolizer, &alone, 1,
							 &(struct symbolizer_options){}, &one),
				 0);
		fflush(reported.stream);
		assert_string_equal(w.reported[i].text, reported.text);
		assert_int_equal(job->state, alone.state);
		assert_null(job->lines_lost);
		reported__fini(&reported);
	}
	assert_non_null(strstr(w.reported[OWN].text, "test_batch.c:"));
	assert_non_null(strstr(w.reported[KERNEL].text, "  two "));
	assert_non_null(strstr(w.reported[KERNEL].text, "  read_block [ext4] "));
	assert_int_equal(w.jobs[OWN].state, SYMBOL_STATE_RESOLVED);
	assert_int_equal(w.jobs[MISSING].state, SYMBOL_STATE_NO_FILE);
	assert_int_equal(w.jobs[TEXT].state, SYMBOL_STATE_NOT_ELF);
	assert_int_equal(counts.modules, 3);
	assert_int_equal(counts.modules_cached, 0);
	assert_false(counts.cancelled);
	assert_true(counts.cpu_time > 0);
}

TEST(a_cancelled_batch_still_reports_every_address)
{
	for (size_t at = 1; at < 6; at++) {
		struct symbolizer_counts counts;
		_cleanup_(world__fini) struct world w = {};

		world__init(&w);
		w.cancel_at = at;
		resolve_world(&w, &counts);
		assert_true(counts.cancelled);
		assert_int_equal(w.jobs[KERNEL].state, SYMBOL_STATE_RESOLVED);
		assert_int_equal(w.jobs[MISSING].state, SYMBOL_STATE_NO_FILE);
		assert_int_equal(w.reported[OWN].count, ADDRESSES);
		if (at == 1) {
			assert_int_equal(w.jobs[OWN].state, SYMBOL_STATE_CANCELLED);
			assert_int_equal(w.jobs[OWN_AGAIN].state, SYMBOL_STATE_CANCELLED);
		}
	}
}

/* The names are there, from the symbol table, and the profile says why the lines are not. */
TEST(symbols_only_gives_names_without_lines)
{
	const struct symbolizer_options options = {.symbols_only = true};
	struct symbolizer_counts counts = {};
	size_t names = 0;
	struct world w;

	world__init(&w);
	assert_int_equal(symbolizer__resolve_all(w.symbolizer, w.jobs, JOBS, &options, &counts), 0);
	fflush(w.reported[OWN].stream);
	fflush(w.reported[KERNEL].stream);
	for (const char *at = w.reported[OWN].text; (at = strstr(at, "\n  ")); at++)
		names++;
	assert_true(names > ADDRESSES / 2);
	assert_null(strstr(w.reported[OWN].text, "test_batch.c:"));
	assert_non_null(strstr(w.reported[KERNEL].text, "  two "));
	assert_int_equal(w.jobs[OWN].state, SYMBOL_STATE_RESOLVED);
	assert_non_null(w.jobs[OWN].lines_lost);
	assert_non_null(strstr(w.jobs[OWN].lines_lost, "not read"));
	assert_null(w.jobs[KERNEL].lines_lost);
	world__fini(&w);
	/* it is that call alone */
	world__init(&w);
	resolve_world(&w, &counts);
	assert_non_null(strstr(w.reported[OWN].text, "test_batch.c:"));
	assert_null(w.jobs[OWN].lines_lost);
	world__fini(&w);
}

static int refuse(void *context, size_t index, const struct symbol_result *result)
{
	return -ENOSPC;
}

static int refuse_end(void *context, const struct symbolizer_job *job)
{
	return -EDQUOT;
}

TEST(errors_of_callbacks_are_returned)
{
	const struct symbolizer_options options = {.symbols_only = true}; /* takes less time */
	struct symbolizer_counts counts = {};

	for (size_t i = 0; i < JOBS; i++) {
		struct world w;

		world__init(&w);
		w.jobs[i].sink = refuse;
		assert_int_equal(
			symbolizer__resolve_all(w.symbolizer, w.jobs, JOBS, &options, &counts),
			i == EMPTY ? 0 : -ENOSPC);
		world__fini(&w);
		world__init(&w);
		w.jobs[i].done = refuse_end;
		assert_int_equal(
			symbolizer__resolve_all(w.symbolizer, w.jobs, JOBS, &options, &counts),
			-EDQUOT);
		world__fini(&w);
	}
}

/* ---- the kernel's lines ---------------------------------------------------------------------- */

#define SHIFT	0x3400000ull /* where the running kernel lies, beside its vmlinux */
#define VMLINUX 0xffffffff81000000ull

static const char kernel_source[] =
	"__asm__(\".text\\n.globl _stext\\n_stext: nop\\n\");\n"
	"static inline __attribute__((always_inline)) int inner(int x)\n"
	"{\n"
	"	return x * 77 + *(volatile int *)&x;\n" /* line 4 */
	"}\n"
	"__attribute__((noinline)) int outer(int x)\n"
	"{\n"
	"	return inner(x) + 1;\n" /* line 8 */
	"}\n";

static uint64_t address_of(const char *symbol)
{
	char path[128], line[128];

	run("nm vmlinux | sed -n 's/ [tT] %s$//p' >address", symbol);
	snprintf(path, sizeof(path), "%s/address", scratch);
	assert_int_equal(read_line(path, line, sizeof(line)), 0);
	return strtoull(line, NULL, 16);
}

/* A kernel that is moved as a whole; its vmlinux is found by build-id, on the host. */
TEST(lines_of_a_moved_kernel_come_from_its_vmlinux)
{
	/* the first half of a build-id; the second is this process's, since others may run this test */
	uint8_t id[20] = {0x59, 0x53, 0x50, 0x52, 0x4f, 0x46, 0x54, 0x45, 0x53, 0x54};
	const struct symbolizer_options options = {};
	struct symbolizer_counts counts = {};
	struct symbolizer *s = symbolizer__new();
	uint64_t outer, addresses[3];
	char kallsyms[256], path[128], hex[41], place[128];
	const uint32_t pid = getpid();
	struct symbolizer_job job;
	_cleanup_(reported__fini) struct reported reported = {};
	FILE *source;

	memcpy(id + 16, &pid, sizeof(pid));
	for (size_t i = 0; i < sizeof(id); i++)
		snprintf(hex + 2 * i, 3, "%02x", id[i]);
	snprintf(place, sizeof(place), "/usr/lib/debug/.build-id/%.2s/%s.debug", hex, hex + 2);
	if (geteuid() != 0) {
		symbolizer__free(s);
		print_message("needs root: a debug file has to lie below /usr/lib/debug\n");
		skip();
	}
	snprintf(path, sizeof(path), "%s/k.c", scratch);
	source = fopen(path, "w");
	assert_non_null(source);
	fputs(kernel_source, source);
	fclose(source);
	run("cc -O1 -g -mcmodel=kernel -fno-pic -no-pie -fno-asynchronous-unwind-tables -nostdlib "
	    "-static -Wl,-Ttext=0x%llx -Wl,--build-id=0x%s -Wl,-e,_stext -o vmlinux k.c",
	    (unsigned long long)VMLINUX, hex);
	run("mkdir -p $(dirname %s) && cp vmlinux %s", place, place);
	outer = address_of("outer");
	snprintf(
		kallsyms, sizeof(kallsyms),
		"%llx T _stext\n%llx T first\n%llx T outer\n%llx T past\nffffffffc0000000 t f\t[m]\n",
		VMLINUX + SHIFT, VMLINUX + SHIFT, outer + SHIFT, outer + SHIFT + 0x1000);
	assert_int_equal(symbolizer__add_kallsyms(s, kallsyms, strlen(kallsyms)), 0);
	addresses[0] = VMLINUX + SHIFT;
	addresses[1] = outer + SHIFT;
	addresses[2] = 0xffffffffc0000000;
	reported__init(&reported);
	job = (struct symbolizer_job){
		.dso = {.kind = DSO_KERNEL,
			.fd = -1,
			.root_fd = -1,
			.path = "[kernel]",
			.build_id = id,
			.build_id_size = sizeof(id),
			.release = "0.0.0-test"},
		.addresses = addresses,
		.count = 3,
		.sink = report,
		.done = on_done,
		.context = &reported,
	};
	assert_int_equal(symbolizer__resolve_all(s, &job, 1, &options, &counts), 0);
	unlink(place);
	fflush(reported.stream);
	assert_int_equal(counts.modules, 1);
	assert_int_equal(job.state, SYMBOL_STATE_RESOLVED);
	assert_non_null(strstr(reported.text, "  first "));
	assert_non_null(strstr(reported.text, "/k.c:8"));
	assert_non_null(strstr(reported.text, "/k.c:6:"));
	snprintf(path, sizeof(path), "  outer %llx+", outer + SHIFT);
	assert_non_null(strstr(reported.text, path));
	assert_non_null(strstr(reported.text, "  f [m] "));
	symbolizer__free(s);
}

TEST(too_many_kernel_modules_are_in_the_books)
{
	struct outside_books *books = outside_books__new();
	const struct symbolizer_options options = {.outside = books};
	struct symbolizer *s = symbolizer__new();
	struct symbolizer_counts counts = {};
	const uint64_t address = 0x2000;
	struct reported reported;
	struct symbolizer_job job = {
		.dso = {.kind = DSO_KERNEL, .fd = -1, .root_fd = -1, .path = "[kernel]"},
		.addresses = &address,
		.count = 1,
		.sink = report,
		.done = on_done,
		.context = &reported,
	};
	char line[64], text[OUTSIDE_TEXT_SIZE];
	struct outside_row row;

	reported__init(&reported);
	for (unsigned int i = 0; i < 1u << 16; i++) {
		snprintf(line, sizeof(line), "%x t f%u\t[m%u]\n", 0x2000 + i * 16, i, i);
		assert_int_equal(symbolizer__add_kallsyms(s, line, strlen(line)), 0);
		if (i != 1000)
			continue;
		assert_int_equal(symbolizer__resolve_all(s, &job, 1, &options, &counts), 0);
		reported__fini(&reported);
		reported__init(&reported);
	}
	assert_false(outside_books__take(books, &row));
	assert_int_equal(symbolizer__resolve_all(s, &job, 1, &options, &counts), 0);
	assert_int_equal(job.state, SYMBOL_STATE_RESOLVED);
	assert_true(outside_books__take(books, &row));
	outside_row__describe(text, sizeof(text), &row);
	assert_string_equal(text, "user 0: 1 files left (headers and symbol tables, read in part): "
				  "too much by itself");
	assert_false(outside_books__take(books, &row));
	reported__fini(&reported);
	symbolizer__free(s);
	outside_books__free(books);
}

#define WINDOWS (ADDRESSES / 4)

/* Four of the offsets, as text. */
static struct symbolizer_counts resolve_window(const struct world *w, size_t window,
					       const struct symbolizer_options *options,
					       char **text)
{
	struct symbolizer_counts counts = {};
	struct reported reported;
	struct symbolizer_job job = {
		.dso = {.kind = DSO_FILE, .fd = w->own, .root_fd = -1, .path = "own"},
		.addresses = w->offsets + window * (ADDRESSES / WINDOWS),
		.count = ADDRESSES / WINDOWS,
		.sink = report,
		.done = on_done,
		.context = &reported,
	};

	reported__init(&reported);
	assert_int_equal(symbolizer__resolve_all(w->symbolizer, &job, 1, options, &counts), 0);
	assert_int_equal(job.state, SYMBOL_STATE_RESOLVED);
	assert_null(job.lines_lost);
	assert_int_equal(counts.modules, 1);
	fflush(reported.stream);
	*text = strdup(reported.text);
	reported__fini(&reported);
	return counts;
}

/* When children have cost what an index does, one makes it; from then on none is needed, whatever the addresses. */
TEST(windows_after_the_index_need_no_child)
{
	const struct symbolizer_options keeping = {.cache = true, .remember = true}, plain = {};
	size_t with_child = 0, window;
	_cleanup_(world__fini) struct world w = {};

	world__init(&w);
	setenv("XDG_CACHE_HOME", scratch, 1);
	symbolizer__start_helpers(w.symbolizer, true);
	for (window = 0; window < WINDOWS; window++) {
		struct symbolizer_counts counts;
		char *text, *same;

		counts = resolve_window(&w, window, &keeping, &text);
		if (!counts.modules_cached)
			assert_int_equal(with_child++, window);
		assert_int_equal(counts.cpu_time == 0, counts.modules_cached);
		if (window % 10 == 9) {
			resolve_window(&w, window, &plain, &same);
			assert_string_equal(text, same);
			free(same);
		}
		free(text);
	}
	assert_in_range(with_child, 2, WINDOWS - 20);
}

#define ROWS                                                                                       \
	3000000 /* of the index of a function, each of one byte: more than the largest index has */

/*
 * A function of so many bytes, each of which is of another line than the one before. An assembler takes seconds for so many
 * lines of source, so that the DWARF is written out: special opcodes are one byte each.
 */
static const char large_source[] =
	"	.globl large, main\n"
	"	.type large, @function\n"
	"	.type main, @function\n"
	"large:	.fill ROWS, 1, 0x90\n"
	"	.size large, . - large\n"
	"main:	ret\n"
	"	.size main, . - main\n"
	"end:\n"
	"	.section .debug_abbrev, \"\", @progbits\n"
	"abbrev:\n"
	/* a compile unit with a name, lines and addresses; a subprogram with a name, a line and addresses */
	"	.byte 1, 0x11, 1, 3, 8, 0x10, 0x17, 0x11, 1, 0x12, 1, 0, 0\n"
	"	.byte 2, 0x2e, 0, 3, 8, 0x3a, 0xb, 0x3b, 0xb, 0x11, 1, 0x12, 1, 0, 0\n"
	"	.byte 0\n"
	"	.section .debug_info, \"\", @progbits\n"
	"	.long info_end - info\n"
	"info:	.short 4\n"
	"	.long abbrev\n"
	"	.byte 8, 1\n"
	"	.string \"large.c\"\n"
	"	.long lines\n"
	"	.quad large, end\n"
	"	.byte 2\n"
	"	.string \"large\"\n"
	"	.byte 1, 1\n"
	"	.quad large, main\n"
	"	.byte 0\n"
	"info_end:\n"
	"	.section .debug_line, \"\", @progbits\n"
	"lines:	.long lines_end - version\n"
	"version: .short 4\n"
	"	.long program - header\n"
	/* a special opcode is 15 + 2 + so many lines (-2 to 2), and one byte */
	"header: .byte 1, 1, 1, -2, 5, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1\n"
	"	.byte 0\n"
	"	.string \"large.c\"\n"
	"	.byte 0, 0, 0, 0\n"
	"program: .byte 0, 9, 2\n"
	"	.quad large\n"
	"	.byte 1\n"
	"	.fill ROWS / 4, 4, 0x0f130f13\n"
	"	.byte 2, 1, 0, 1, 1\n" /* it ends one byte further */
	"lines_end:\n";

/* A program with it, and the same with bytes beside its debug information that are not read. */
static void make_large(void)
{
	write_scratch("large.s", large_source, strlen(large_source));
	run("cc -Wa,--defsym,ROWS=%d -o large large.s; truncate -s 25M padding; "
	    "objcopy --add-section .padding=padding large larger",
	    ROWS);
}

static int is_large(void *context, const struct elf_symbol *symbol)
{
	uint64_t *address = context;

	if (!symbol->name || strcmp(symbol->name, "large"))
		return 0;
	*address = symbol->address;
	return 1;
}

/* Half of them begin where the function does, half shortly before its end. */
static void offsets_of_large(int fd, uint64_t *offsets)
{
	struct elf_section text;
	struct elf_file *file;
	uint64_t address;

	assert_int_equal(elf_file__open(fd, &file), 0);
	assert_int_equal(elf_file__find_section(file, ".text", &text), 0);
	assert_int_equal(elf_file__each_symbol(file, is_large, &address), 1);
	elf_file__free(file);
	for (size_t i = 0; i < ADDRESSES; i++)
		offsets[i] = address - text.address + text.offset +
			     (i < ADDRESSES / 2 ? i : ROWS - ADDRESSES + i);
}

/* The first window from this one on that needs no child. */
static size_t first_without_child(const struct world *w, size_t window)
{
	const struct symbolizer_options keeping = {.cache = true, .remember = true};
	struct symbolizer_counts counts;
	size_t end = window + WINDOWS / 4;

	for (; window < end; window++) {
		char *text;

		counts = resolve_window(w, window, &keeping, &text);
		free(text);
		if (counts.modules_cached)
			return window;
	}
	fail_msg("there is no index");
	return end;
}

static void assert_from_index(const struct world *w, size_t window)
{
	const struct symbolizer_options keeping = {.cache = true, .remember = true}, plain = {};
	struct symbolizer_counts counts;
	_cleanup_free_ char *text = NULL, *same = NULL;

	counts = resolve_window(w, window, &keeping, &text);
	assert_int_equal(counts.modules_cached, 1);
	assert_int_equal(counts.cpu_time, 0);
	counts = resolve_window(w, window, &plain, &same);
	assert_true(counts.cpu_time);
	assert_non_null(strstr(same, ".c:"));
	assert_string_equal(text, same);
}

static void assert_slices(const char *name)
{
	size_t middle = WINDOWS / 2, first, second;
	_cleanup_(world__fini) struct world w = {};

	world__init(&w);
	close(w.own);
	w.own = open_scratch(name, O_RDONLY | O_CLOEXEC);
	offsets_of_large(w.own, w.offsets);
	symbolizer__start_helpers(w.symbolizer, true);
	first = first_without_child(&w, 0);
	second = first_without_child(&w, middle);
	assert_true(first && second > middle);
	for (size_t i = 1; i < 4; i++) {
		assert_from_index(&w, first + i);
		assert_from_index(&w, second + i);
	}
}

/* A module whose index would be too large, or its debug information is, has one for each part that is requested. */
TEST(requested_parts_of_a_large_module_have_an_index)
{
	setenv("XDG_CACHE_HOME", scratch, 1);
	make_large();
	assert_slices("large");
	assert_slices("larger");
}

#define TRIES 10000 /* of a millisecond */

/* The only child of this thread with this name; 0: there is none. */
static pid_t child_named(const char *name)
{
	_cleanup_fclose_ FILE *children = NULL;
	char path[64], comm[32];
	pid_t pid, found = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	children = fopen(path, "re");
	assert_non_null(children);
	while (fscanf(children, "%d", &pid) == 1) {
		snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		if (read_line(path, comm, sizeof(comm)) || strcmp(comm, name))
			continue;
		assert_int_equal(found, 0);
		found = pid;
	}
	return found;
}

static size_t searches_of_window(const struct world *w)
{
	const struct symbolizer_options keeping = {.cache = true, .remember = true};
	struct symbolizer_counts counts;
	char *text;

	counts = resolve_window(w, 0, &keeping, &text);
	free(text);
	return counts.searched;
}

/* In a session one process searches debug files, and those of a module once, while it is the same and the cache has it. */
TEST(debug_files_are_searched_once_until_the_file_changes)
{
	struct world w;
	pid_t finder = 0;

	world__init(&w);
	setenv("XDG_CACHE_HOME", scratch, 1);
	run("cp /proc/%d/exe own", getpid());
	close(w.own);
	w.own = open_scratch("own", O_RDONLY | O_CLOEXEC);
	symbolizer__start_helpers(w.symbolizer, true);
	for (int i = 0; i < TRIES && !(finder = child_named("sysprof-files")); i++)
		usleep(1000); /* it takes its name after the fork */
	assert_true(finder > 0);
	assert_int_equal(searches_of_window(&w), 1);
	assert_int_equal(searches_of_window(&w), 0);
	assert_int_equal(searches_of_window(&w), 0);
	run("chmod 700 own");
	assert_int_equal(searches_of_window(&w), 1);
	assert_int_equal(searches_of_window(&w), 0);
	assert_int_equal(child_named("sysprof-files"), finder);
	world__fini(&w);
	assert_int_equal(child_named("sysprof-files"), 0);
}

/* ---- putting off ------------------------------------------------------------------------------ */

#define PART  100   /* addresses of a call */
#define TOTAL 10000 /* samples */

struct putting_off {
	struct symbolizer *symbolizer;
	uint64_t offsets[ADDRESSES];
	int own;
};

/* Addresses from `first` on, the first one in `most` samples. Returns how many have no name. */
static size_t resolve_part(struct putting_off *p, size_t first, uint32_t most,
			   struct symbolizer_options options)
{
	struct symbolizer_counts counts = {};
	struct reported reported;
	uint32_t samples[PART] = {most};
	struct symbolizer_job job = {
		.dso = {.kind = DSO_FILE, .fd = p->own, .root_fd = -1, .path = "/nowhere/test"},
		.addresses = p->offsets + first,
		.samples = samples,
		.count = PART,
		.sink = report,
		.done = on_done,
		.context = &reported,
	};

	for (size_t i = 1; i < PART; i++)
		samples[i] = 1;
	options.cache = options.remember = true;
	options.samples = TOTAL;
	reported__init(&reported);
	assert_int_equal(symbolizer__resolve_all(p->symbolizer, &job, 1, &options, &counts), 0);
	fflush(reported.stream);
	assert_true(reported.done);
	assert_int_equal(job.state, SYMBOL_STATE_RESOLVED);
	assert_int_equal(job.lines_lost != NULL, counts.put_off > 0);
	assert_int_equal(strchr(reported.text, '+') != NULL, counts.put_off < PART);
	reported__fini(&reported);
	return counts.put_off;
}

static void forget_all(struct putting_off *p)
{
	symbolizer__free(p->symbolizer);
	p->symbolizer = symbolizer__new();
	assert_non_null(p->symbolizer);
	symbolizer__start_helpers(p->symbolizer, true);
}

static void put_off_and_catch_up(struct putting_off *p)
{
	const struct symbolizer_options rare = {.put_off_rare = true};

	/* until it is much */
	assert_int_equal(resolve_part(p, 0, 1, rare), PART);
	assert_int_equal(resolve_part(p, 0, 1, rare), PART);
	assert_int_equal(resolve_part(p, 0, 1, rare), 0);
	/* it was read for an index, which has the others as well */
	assert_int_equal(resolve_part(p, PART, 1, rare), 0);
	assert_int_equal(resolve_part(p, 2 * PART, 1, rare), 0);
}

static void wait_for_importance(struct putting_off *p)
{
	const struct symbolizer_options rare = {.put_off_rare = true}, new = {.put_off_new = true};

	/* one in a hundred is enough for a new file, one in a thousand for one that was read */
	assert_int_equal(resolve_part(p, 0, TOTAL / 100 - 1, new), PART);
	assert_int_equal(resolve_part(p, 0, TOTAL / 100, new), 0);
	assert_int_equal(resolve_part(p, 2 * PART, TOTAL / 1000 - 1, rare), PART);
	assert_int_equal(resolve_part(p, 2 * PART, TOTAL / 1000, rare), 0);
	/* last: from the second reading on there may be an index, which has all */
	assert_int_equal(resolve_part(p, PART, 1, new), 0);
}

/* In a process and a directory of its own, whose cache is empty. */
static void with_own_cache(void (*test)(struct putting_off *p))
{
	char directory[] = "/tmp/test_batch.XXXXXX", command[64];
	int status;
	pid_t pid;

	assert_non_null(mkdtemp(directory));
	assert_int_equal(chmod(directory, 0777), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct putting_off p = {.own = own_file()};

		if (!geteuid() && (setgid(65534) || setuid(65534)))
			_exit(2);
		setenv("XDG_CACHE_HOME", directory, 1);
		own_offsets(p.own, p.offsets);
		forget_all(&p);
		test(&p);
		symbolizer__free(p.symbolizer);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	assert_int_equal(system(command), 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

TEST(rare_addresses_are_deferred_until_they_add_up)
{
	with_own_cache(put_off_and_catch_up);
}

TEST(addresses_with_many_samples_are_not_deferred)
{
	with_own_cache(wait_for_importance);
}

ALL_TESTS_WITH(make_scratch, remove_scratch);
