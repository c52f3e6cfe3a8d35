/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * v8_oracle PID FILE: what userspace/runtimes/ reads of the V8 that is in FILE and runs in that process, from the words that
 * a walk of its stack would note.
 *
 * Prints one line of JSON for what is in the file, and one for each line "stop TID" of standard input: that thread is
 * stopped wherever it is, its frames are walked by frame pointer, and named. Functions are read once and checked again at
 * each later stop, as a recorder does. Ends with a line of counts.
 */
#include "base/clocks.h"
#include "base/json_writer.h"
#include "elf/elf_file.h"
#include "runtimes/answers.h"
#include "runtimes/v8/code.h"
#include "runtimes/v8/function.h"
#include "runtimes/v8/heap.h"
#include "runtimes/v8/layout.h"
#include "runtimes/v8/lines.h"
#include "runtimes/v8/script.h"
#include "runtimes/v8/v8.h"
#include "stopped.h"

#define FRAMES_MAX    256
#define FUNCTIONS_MAX 16384
#define STACK_STEP    (1u << 20) /* between two frames, at most */
#define READS	      4000
#define BYTES	      (64u << 20)

static struct v8_layout layout;
static struct v8_reader reader;
static struct v8_bytecodes bytecodes;
static struct v8_trust trust;
static struct json_writer out;
static uint64_t reads_done;

struct known {
	uint64_t sfi;
	struct v8_function about;
	struct managed_function f;
	bool has_rows;
};

static struct known *functions;
static size_t function_count;

static struct {
	uint64_t named, failed, reads, ns, reads_of_rows, ns_of_rows, rows_read, without_rows;
	uint64_t confirmed, stale, read_anew, checks_ns;
	uint64_t codes, code_reads, code_ns, no_code;
} total;

static int read_counted(void *context, void *to, size_t size, uint64_t address)
{
	reads_done++;
	return read_process(context, to, size, address);
}

static struct target_memory memory;

static void begin_request(void)
{
	memory = (struct target_memory){
		.read = read_counted, .bytes_left = BYTES, .reads_left = READS};
	reader.memory = &memory;
}

static uint64_t word_at(uint64_t address)
{
	uint64_t word = 0;

	begin_request();
	target_memory__word(&memory, &word, address);
	return word;
}

/* ---- functions ------------------------------------------------------------------------------- */

static void read_rows(struct known *k)
{
	uint64_t begin = monotonic_ns(), before = reads_done;

	begin_request();
	k->has_rows = !v8_lines__read(&reader, k->sfi, &k->f) && k->f.rows.count;
	total.rows_read += k->has_rows;
	total.without_rows += !k->has_rows;
	total.ns_of_rows += monotonic_ns() - begin;
	total.reads_of_rows += reads_done - before;
}

static bool read_function(struct known *k, uint64_t sfi)
{
	uint64_t begin = monotonic_ns(), before = reads_done;
	int err;

	begin_request();
	err = v8_function__read(&reader, sfi, &k->f, &k->about);
	total.ns += monotonic_ns() - begin;
	total.reads += reads_done - before;
	total.named += !err;
	total.failed += err != 0;
	k->sfi = sfi;
	return !err;
}

static bool is_current(struct known *k)
{
	uint64_t number, begin = monotonic_ns();
	bool is_same;

	begin_request();
	is_same = k->about.number && !v8_function__number(&reader, k->sfi, &number) &&
		  number == k->about.number;
	total.checks_ns += monotonic_ns() - begin;
	total.confirmed += is_same;
	total.stale += !is_same;
	return is_same;
}

/* The function, read now or confirmed now; NULL: there is none. */
static struct known *find_function(uint64_t sfi)
{
	struct known *k = NULL;

	for (size_t i = 0; i < function_count && !k; i++) {
		if (functions[i].sfi == sfi)
			k = &functions[i];
	}
	if (k && is_current(k))
		return k;
	if (k) {
		total.read_anew++;
	} else {
		if (function_count == FUNCTIONS_MAX)
			return NULL;
		begin_request();
		v8_trust__see(&trust, &reader, sfi);
		k = &functions[function_count];
	}
	if (!read_function(k, sfi)) {
		k->sfi = k == &functions[function_count] ? 0 : 1;
		return NULL;
	}
	if (k == &functions[function_count])
		function_count++;
	if (!k->about.is_builtin)
		read_rows(k);
	return k;
}

/* ---- frames ---------------------------------------------------------------------------------- */

struct frame {
	uint64_t pc, fp, sfi, raw;
	bool is_leaf;
};

static bool is_function_frame(uint64_t fp, struct frame *frame)
{
	uint64_t words[5], function; /* [fp - 40] … [fp - 8] */

	begin_request();
	if (target_memory__read(&memory, words, sizeof(words), fp - 40))
		return false;
	function = words[3];
	if (!v8_is_object(words[4]) || !v8_is_object(function))
		return false;
	frame->raw = words[0];
	frame->sfi = word_at(function - 1 + layout.off_shared);
	return v8_is_object(frame->sfi);
}

/* What kind of code is at an address. */
enum place { NATIVE, BLOB, MADE };

/*
 * V8's own code is in no file. Its builtins are in the executable, of which it maps them once more: native code of this file is
 * in the first executable mapping of it.
 */
static enum place place_of(uint64_t pc)
{
	_cleanup_fclose_ FILE *maps = open_proc("maps");
	enum place result = NATIVE;
	uint64_t first_inode = 0;
	char line[512];

	while (fgets(line, sizeof(line), maps)) {
		uint64_t start, end, inode;
		bool is_first;
		char x;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*2c%c%*c %*s %*s %" SCNu64, &start, &end,
			   &x, &inode) != 4 ||
		    x != 'x')
			continue;
		is_first = inode && !first_inode;
		if (is_first)
			first_inode = inode;
		if (pc >= start && pc < end)
			result = !inode ? MADE : !is_first && inode == first_inode ? BLOB : NATIVE;
	}
	return result;
}

/* Where V8 was called by native code, beyond which frame pointers lead nowhere. */
static bool is_entry(uint64_t fp)
{
	uint64_t type = word_at(fp - 8);

	return !(type & 1) && type / 2 < V8_FRAME_TYPES && layout.frame_types[type / 2] &&
	       !strcmp(layout.frame_types[type / 2], "entry");
}

static size_t walk(const struct user_regs_struct *r, struct frame *frames)
{
	uint64_t fp = r->rbp, pc = r->rip, lowest = r->rsp;
	size_t count = 0;

	while (fp >= lowest && fp - lowest < STACK_STEP && !(fp & 7) && count < FRAMES_MAX &&
	       !is_entry(fp)) {
		struct frame frame = {.pc = pc, .fp = fp, .is_leaf = fp == r->rbp};

		if (is_function_frame(fp, &frame))
			frames[count++] = frame;
		lowest = fp + 16;
		pc = word_at(fp + 8);
		fp = word_at(fp);
	}
	return count;
}

/* ---- what is reported ---------------------------------------------------------------------------- */

static void report_place(const char *line_key, const char *column_key, uint32_t line,
			 uint32_t column)
{
	json_key_uint(&out, line_key, line);
	json_key_uint(&out, column_key, column);
}

static void report_function(const struct known *k)
{
	json_key_string(&out, "name", k->f.name);
	json_key_string(&out, "file", k->f.file);
	report_place("line", "column", k->f.line, k->f.column);
	json_key_bool(&out, "builtin", k->about.is_builtin);
	json_key_bool(&out, "lost", k->about.lost_script);
}

static void report_bytecode_line(const struct known *k, uint64_t raw)
{
	int64_t offset = (int64_t)(raw >> 32) - v8_layout__bytecode_bias(&layout);
	const struct managed_row *row;

	json_key_bool(&out, "rows", k->has_rows);
	if ((uint32_t)raw || offset < 0)
		return;
	row = managed_function__row(&k->f, offset);
	if (row)
		report_place("run_line", "run_column", row->line, row->column);
}

/* Is a function of the chain inlined into itself? */
static bool is_recursive(const struct v8_chain *chain)
{
	for (unsigned int i = 0; i < chain->count; i++)
		for (unsigned int k = 0; k < i; k++)
			if (chain->at[i].sfi == chain->at[k].sfi)
				return true;
	return false;
}

/* A call may have the position of one before it: in Maglev's code, and where a function is inlined into itself. */
static void report_chain(const struct v8_code *code, const struct v8_chain *chain)
{
	json_key_bool(&out, "approximate", code->kind == V8_CODE_MAGLEV || is_recursive(chain));
	json_key_bool(&out, "blind", chain->is_blind);
	json_key_bool(&out, "deoptimized", chain->is_deoptimized);
	json_key_array(&out, "chain");
	for (unsigned int i = 0; i < chain->count; i++) {
		const struct known *k = find_function(chain->at[i].sfi);
		uint32_t line = 0, column = 0;

		begin_request();
		v8_lines__place(&reader, chain->at[i].sfi, chain->at[i].position, &line, &column);
		json_begin_object(&out);
		if (k)
			report_function(k);
		report_place("run_line", "run_column", line, column);
		json_end_object(&out);
	}
	json_end_array(&out);
}

/* false: it is not code that V8 made of this function. */
static bool report_code(const struct frame *frame)
{
	static const char *const kinds[] = {"other", "baseline", "maglev", "turbofan"};
	static const char *const owners[] = {"same", "other", "unknown"};
	uint64_t begin = monotonic_ns(), before = reads_done;
	enum v8_code_owner owner;
	struct v8_chain chain;
	struct v8_code code;
	int err;

	begin_request();
	err = v8_code__at(&reader, frame->is_leaf ? frame->pc : frame->pc - 1, &code);
	total.code_ns += monotonic_ns() - begin;
	total.code_reads += reads_done - before;
	total.codes += !err;
	total.no_code += err != 0;
	if (err)
		return false;
	begin_request();
	owner = v8_code__owner(&reader, &code, frame->sfi);
	json_key_string(&out, "kind", kinds[code.kind]);
	json_key_string(&out, "owner", owners[owner]);
	json_key_uint(&out, "inlined", code.inlined);
	if (owner == V8_OWNER_OTHER) {
		const struct known *k = code.sfi ? find_function(code.sfi) : NULL;

		json_key_string(&out, "owner_name", k ? k->f.name : "");
	}
	begin_request();
	if (!frame->is_leaf && owner == V8_OWNER_SAME &&
	    !v8_place__chain(&reader, &bytecodes, frame->sfi, frame->pc - 1, false, &chain))
		report_chain(&code, &chain);
	return code.kind != V8_CODE_OTHER;
}

static void report_frame(const struct frame *frame)
{
	const struct known *k = find_function(frame->sfi);
	bool anonymous = place_of(frame->is_leaf ? frame->pc : frame->pc - 1) == MADE;
	bool made = anonymous;

	json_begin_object(&out);
	json_key_uint(&out, "pc", frame->pc);
	json_key_bool(&out, "leaf", frame->is_leaf);
	json_key_bool(&out, "anonymous", anonymous);
	if (k) {
		report_function(k);
		if (anonymous && layout.has_code)
			made = report_code(frame);
		if (!made)
			report_bytecode_line(k, frame->raw);
	}
	json_end_object(&out);
}

static uint64_t map_size(void)
{
	char path[64];
	FILE *map;
	long size = 0;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
	map = fopen(path, "re");
	if (map && !fseek(map, 0, SEEK_END))
		size = ftell(map);
	if (map)
		fclose(map);
	return size > 0 ? size : 0;
}

static void report_stop(const struct user_regs_struct *r)
{
	struct frame frames[FRAMES_MAX];
	/* native code has no frame pointers, as a rule: its frames want other means */
	bool is_native = place_of(r->rip) == NATIVE;
	size_t count = is_native ? 0 : walk(r, frames);

	json_begin_object(&out);
	json_key_uint(&out, "map_size", map_size());
	json_key_bool(&out, "native", is_native);
	json_key_uint(&out, "ip", r->rip);
	json_key_array(&out, "frames");
	for (size_t i = 0; i < count; i++)
		report_frame(&frames[i]);
	json_end_array(&out);
	json_end_object(&out);
}

static void report_totals(void)
{
	json_begin_object(&out);
	json_key_uint(&out, "functions", total.named);
	json_key_uint(&out, "failed", total.failed);
	json_key_uint(&out, "reads", total.reads);
	json_key_uint(&out, "ns", total.ns);
	json_key_uint(&out, "rows", total.rows_read);
	json_key_uint(&out, "without_rows", total.without_rows);
	json_key_uint(&out, "reads_of_rows", total.reads_of_rows);
	json_key_uint(&out, "ns_of_rows", total.ns_of_rows);
	json_key_uint(&out, "confirmed", total.confirmed);
	json_key_uint(&out, "stale", total.stale);
	json_key_uint(&out, "ns_of_checks", total.checks_ns);
	json_key_uint(&out, "codes", total.codes);
	json_key_uint(&out, "no_code", total.no_code);
	json_key_uint(&out, "reads_of_code", total.code_reads);
	json_key_uint(&out, "ns_of_code", total.code_ns);
	json_key_uint(&out, "trust", trust.state);
	json_key_uint(&out, "candidates", trust.seen);
	json_key_uint(&out, "bad", trust.bad);
	json_end_object(&out);
}

static void end_line(void)
{
	if (json_writer__finish(&out))
		exit(1);
	putchar('\n');
	fflush(stdout);
	json_writer__init(&out, stdout);
}

/* ---- stops ----------------------------------------------------------------------------------- */

static bool stop_once(pid_t tid)
{
	struct user_regs_struct registers;
	int sig;

	if (stop(tid, &sig))
		return false;
	if (!ptrace(PTRACE_GETREGS, tid, NULL, &registers))
		report_stop(&registers);
	ptrace(PTRACE_DETACH, tid, NULL, sig);
	return true;
}

static void report_layout(void)
{
	json_begin_object(&out);
	json_key_uint(&out, "verdict", layout.verdict);
	json_key_string(&out, "text", v8_verdict__text(layout.verdict));
	json_key_uint(&out, "major", layout.major);
	json_key_uint(&out, "minor", layout.minor);
	json_key_bool(&out, "has_code", layout.has_code);
	json_key_int(&out, "off_shared", layout.off_shared);
	json_key_uint(&out, "bytecodes", bytecodes.count);
	json_end_object(&out);
	end_line();
}

int main(int argc, char **argv)
{
	struct elf_file *file = NULL;
	char line[64];
	int fd;

	if (argc != 3)
		return 2;
	pid = strtol(argv[1], NULL, 10);
	fd = open(argv[2], O_RDONLY | O_CLOEXEC);
	functions = calloc(FUNCTIONS_MAX + 1, sizeof(*functions));
	if (fd < 0 || !functions || elf_file__open(fd, &file))
		return 1;
	json_writer__init(&out, stdout);
	v8_layout__read(&layout, file);
	v8_bytecodes__read(file, &bytecodes);
	v8_reader__init(&reader, &layout, v8_scripts__new());
	report_layout();
	while (fgets(line, sizeof(line), stdin)) {
		pid_t tid;

		if (sscanf(line, "stop %d", &tid) != 1)
			continue;
		if (!stop_once(tid))
			json_null(&out);
		end_line();
	}
	report_totals();
	end_line();
	for (size_t i = 0; i < function_count; i++)
		managed_function__fini(&functions[i].f);
	v8_scripts__free(reader.scripts);
	elf_file__free(file);
	free(functions);
	close(fd);
	return 0;
}
