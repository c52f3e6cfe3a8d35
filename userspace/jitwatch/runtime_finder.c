/* SPDX-License-Identifier: BSD-2-Clause */
#include "jitwatch/runtime_finder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/proc_parse.h"
#include "base/tenant_user.h"
#include "base/vec.h"
#include "elf/elf_exports.h"
#include "elf/elf_file.h"
#include "jitwatch/process_memory.h"
#include "jitwatch/v8_files.h"
#include "runtimes/cpython_walk.h"
#include "runtimes/hotspot_words.h"
#include "runtimes/v8_script.h"
#include "runtimes/v8_wasm.h"

#define MAPPINGS_MAX 65536u
#define FILES_MAX    16u /* that are opened: by their names, */
#define PROGRAMS_MAX 1u	 /* … and because it is the program */
#define RANGES_MAX   16u
#define IN_PAGE	     UINT64_C(4095)
#define READS_MAX    (1u << 16) /* of one request */
#define BYTES_MAX    (64u << 20)

struct area {
	uint64_t start, end, offset, inode;
	uint32_t major, minor;
	bool writable, executable, candidate, program;
};

struct areas {
	VEC(struct area) list;
};

static bool begins(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

/* Not the modules that Python loads. */
bool runtime_finder__is_candidate(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	if (strstr(name, ".cpython-"))
		return false;
	return begins(name, "python") || begins(name, "libpython") || begins(name, "node") ||
	       begins(name, "libnode") || begins(name, "nsolid") || !strcmp(name, "libjvm.so");
}

bool runtime_finder__is_program(const char *path)
{
	const char *slash = strrchr(path, '/');

	return *path == '/' && !begins(path, "//") && slash[1] && !strstr(slash, ".so") &&
	       !strstr(slash, ".dump");
}

/*
 * The program that a process executes, by its path; "": by that of a file which is no library, since it was started by the
 * dynamic linker. Asks no file system.
 */
static void read_program(pid_t pid, char *path, size_t size)
{
	char link[32];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	length = readlink(link, path, size - 1);
	path[length > 0 ? length : 0] = '\0';
	if (strstr(path, ".so"))
		*path = '\0';
}

static bool is_program(const struct proc_mapping *m, const char *program)
{
	if (!m->inode)
		return false;
	return *program ? !strcmp(m->path, program) : runtime_finder__is_program(m->path);
}

static int read_areas(pid_t pid, struct areas *areas)
{
	_cleanup_fclose_ FILE *f = NULL;
	_cleanup_free_ char *line = NULL;
	size_t room = 0;
	ssize_t size;
	char path[32], program[PATH_MAX];
	int err = 0;

	read_program(pid, program, sizeof(program));
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (!err && areas->list.count < MAPPINGS_MAX && (size = getline(&line, &room, f)) > 0) {
		struct proc_mapping m;

		if (proc_parse_mapping(line, line[size - 1] == '\n' ? size - 1 : size, &m))
			continue;
		err = vec_push(
			&areas->list,
			((struct area){.start = m.start,
				       .end = m.end,
				       .offset = m.offset,
				       .inode = m.inode,
				       .major = m.major,
				       .minor = m.minor,
				       .writable = m.protection & PROT_WRITE,
				       .executable = m.protection & PROT_EXEC,
				       .candidate = m.inode && runtime_finder__is_candidate(m.path),
				       .program = is_program(&m, program)}));
	}
	return err;
}

/* Writable mappings of the same file, and what has none directly behind them. */
static size_t writable_of(const struct areas *areas, size_t first, struct cpython_range *ranges)
{
	size_t count = 0;

	for (size_t i = 0; i < areas->list.count && count < RANGES_MAX; i++) {
		const struct area *a = &areas->list.data[i];
		bool own = a->inode == areas->list.data[first].inode;
		bool behind = !a->inode && count && ranges[count - 1].end == a->start;

		if (a->writable && (own || behind))
			ranges[count++] = (struct cpython_range){a->start, a->end};
	}
	return count;
}

static void look_for_python(struct found_runtimes *found, const struct areas *areas, size_t first,
			    struct elf_file *file)
{
	struct target_memory memory = found_runtimes__memory(found);
	struct cpython_range ranges[RANGES_MAX];
	struct cpython_symbols symbols;
	struct cpython_image image = {.symbols = &symbols, .writable = ranges};
	uint64_t address;

	if (found->has_python || cpython_symbols__read(file, &symbols) ||
	    elf_file__address_of_offset(file, areas->list.data[first].offset, &address))
		return;
	image.bias = areas->list.data[first].start - (address & ~IN_PAGE);
	image.writable_count = writable_of(areas, first, ranges);
	found->python_verdict = cpython__find(&image, &memory, &found->python);
	if (found->python_verdict == CPYTHON_OK)
		found->python_verdict = cpython_thread_word__find(&found->python, &image, &memory,
								  &found->python_word);
	found->has_python = found->python_verdict == CPYTHON_OK;
	if (found->has_python)
		cpython_gil__of_main(&found->python, &memory, &found->python_gil);
	found->may_come |= found->python_verdict == CPYTHON_NOT_STARTED;
}

/* What a JVM says of itself. 0; -ENODATA: this is none. */
static int read_exports(const struct elf_file *file, uint64_t bias,
			uint64_t exports[HOTSPOT_EXPORTS])
{
	struct elf_exports x;
	int err = elf_exports__init(&x, file);

	for (size_t i = 0; i < HOTSPOT_EXPORTS && !err; i++) {
		err = elf_exports__find(&x, hotspot_export_names[i], &exports[i]);
		exports[i] += bias;
	}
	return err;
}

/* Its heaps and its interpreter come with its first thread; until then they cannot be read. */
static void look_for_hotspot(struct found_runtimes *found, const struct areas *areas, size_t first,
			     const struct elf_file *file)
{
	struct target_memory memory = found_runtimes__memory(found);
	uint64_t exports[HOTSPOT_EXPORTS], address;
	int err;

	if (found->hotspot.header_size ||
	    elf_file__address_of_offset(file, areas->list.data[first].offset, &address) ||
	    read_exports(file, areas->list.data[first].start - (address & ~IN_PAGE), exports) ||
	    hotspot_layout__read(&found->hotspot, &memory, exports))
		return;
	if (!found->hotspot.can[HOTSPOT_CAN_UNWIND]) {
		/* the flag may not be parsed yet, and nothing here says when it is */
		found->may_come |= found->hotspot.frame_pointers == HOTSPOT_FLAG_OFF;
		return;
	}
	err = hotspot_code__read(&found->hotspot_code, &found->hotspot, &memory);
	if (!err && found->hotspot_code.bytecode_start == found->hotspot_code.bytecode_end)
		err = -ENODATA;
	found->may_come |= err != 0;
	found->has_hotspot = !err &&
			     !hotspot_words__make(&found->hotspot_words, &found->hotspot_code);
}

static void look_for_v8(struct found_runtimes *found, struct elf_file *file, const struct stat *st)
{
	bool readable;

	if (found->has_v8)
		return;
	readable = v8_files__read(file, st, found->user, &found->v8, &found->v8_bytecodes);
	if (found->v8.verdict != V8_ABSENT)
		found->v8_verdict = found->v8.verdict;
	if (!readable)
		return;
	found->scripts = v8_scripts__new();
	found->v8_told = calloc(V8_FUNCTIONS_TOLD, sizeof(*found->v8_told));
	if (!found->scripts || !found->v8_told)
		return;
	v8_reader__init(&found->v8_reader, &found->v8, found->scripts);
	found->has_v8 = true;
}

static void look_at_file(struct found_runtimes *found, const struct areas *areas, size_t i)
{
	const struct area *a = &areas->list.data[i];
	_cleanup_close_ int fd = -1;
	struct elf_file *file;
	struct stat st;
	char path[80];

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, found->pid,
		 a->start, a->end);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || elf_file__open(fd, &file))
		return;
	look_for_v8(found, file, &st);
	look_for_python(found, areas, i, file);
	look_for_hotspot(found, areas, i, file);
	elf_file__free(file);
}

static bool same_file(const struct area *a, const struct area *b)
{
	return a->inode == b->inode && a->major == b->major && a->minor == b->minor;
}

/* The first mapping of the file of this one: what is told of addresses is told by it. */
static size_t first_of_file(const struct areas *areas, size_t i)
{
	size_t first = 0;

	while (!same_file(&areas->list.data[first], &areas->list.data[i]))
		first++;
	return first;
}

static void note_file_code(struct found_runtimes *found, const struct areas *areas)
{
	for (size_t i = 0; i < areas->list.count && found->file_code_count < FOUND_FILE_CODE; i++) {
		const struct area *a = &areas->list.data[i];

		if (a->inode && a->executable)
			found->file_code[found->file_code_count++] = (struct found_range){a->start,
											  a->end};
	}
}

bool found_runtimes__is_file_code(const struct found_runtimes *found, uint64_t address)
{
	for (uint32_t i = 0; i < found->file_code_count; i++)
		if (address >= found->file_code[i].start && address < found->file_code[i].end)
			return true;
	return false;
}

struct looked_files {
	size_t files[FILES_MAX + PROGRAMS_MAX], count;
};

static bool was_looked_at(const struct areas *areas, const struct looked_files *looked, size_t i)
{
	for (size_t k = 0; k < looked->count; k++)
		if (same_file(&areas->list.data[i], &areas->list.data[looked->files[k]]))
			return true;
	return false;
}

static void look_at_files(struct found_runtimes *found, const struct areas *areas,
			  struct looked_files *looked, bool programs, size_t left)
{
	for (size_t i = 0; i < areas->list.count && left; i++) {
		const struct area *a = &areas->list.data[i];

		if (!a->executable || !(programs ? a->program : a->candidate) ||
		    was_looked_at(areas, looked, i))
			continue;
		looked->files[looked->count] = first_of_file(areas, i);
		look_at_file(found, areas, looked->files[looked->count++]);
		left--;
	}
}

int runtime_finder__look(pid_t pid, struct found_runtimes *found)
{
	struct looked_files looked = {};
	struct areas areas = {};
	int err, mem;

	*found = (struct found_runtimes){
		.pid = pid, .python_verdict = CPYTHON_ABSENT, .v8_verdict = V8_ABSENT};
	mem = process_memory__open(pid);
	found->mem = mem > 0 ? mem : 0;
	found->user = tenant_user(pid);
	err = read_areas(pid, &areas);
	note_file_code(found, &areas);
	if (!err) {
		look_at_files(found, &areas, &looked, false, FILES_MAX);
		look_at_files(found, &areas, &looked, true, PROGRAMS_MAX);
	}
	vec_free(&areas.list);
	return err;
}

void found_runtimes__fini(struct found_runtimes *found)
{
	v8_scripts__free(found->scripts);
	free(found->v8_told);
	v8_wasm__free(found->v8_wasm);
	if (found->mem)
		close(found->mem);
	hotspot_layout__fini(&found->hotspot);
	*found = (struct found_runtimes){};
}

static int read_memory(void *context, void *to, size_t size, uint64_t address)
{
	const struct found_runtimes *found = context;

	return found->mem ? process_memory__read_at(found->mem, to, size, address)
			  : process_memory__read(found->pid, to, size, address);
}

struct target_memory found_runtimes__memory(const struct found_runtimes *found)
{
	return (struct target_memory){
		.read = read_memory,
		.context = (void *)found,
		.bytes_left = BYTES_MAX,
		.reads_left = READS_MAX,
	};
}

enum code_runtime_state found_runtimes__python(const struct found_runtimes *found, bool *there)
{
	static const enum code_runtime_state states[CPYTHON_VERDICTS] = {
		[CPYTHON_OK] = CODE_RUNTIME_READ,
		[CPYTHON_TOO_OLD] = CODE_RUNTIME_TOO_OLD,
		[CPYTHON_NO_VERSION] = CODE_RUNTIME_UNKNOWN,
		[CPYTHON_FREE_THREADED] = CODE_RUNTIME_FREE_THREADED,
		[CPYTHON_UNKNOWN_VERSION] = CODE_RUNTIME_UNKNOWN,
		[CPYTHON_BAD_TABLE] = CODE_RUNTIME_UNKNOWN,
		[CPYTHON_OTHER_LIBC] = CODE_RUNTIME_OTHER_LIBC,
		[CPYTHON_THREADS_UNKNOWN] = CODE_RUNTIME_UNKNOWN,
		[CPYTHON_UNREADABLE] = CODE_RUNTIME_UNREADABLE,
	};

	*there = found->python_verdict != CPYTHON_ABSENT &&
		 found->python_verdict != CPYTHON_NOT_STARTED;
	return *there ? states[found->python_verdict] : CODE_RUNTIME_READ;
}

/* ---- for the kernel -------------------------------------------------------------------------- */

#define CLOSURE 24 /* of a JSFunction: what is behind what it has as an object */

static struct runtime_v8 v8_info(const struct v8_layout *v8)
{
	struct runtime_v8 info = {
		.context = v8->off_context,
		.function = v8->off_function,
		.bytecode_offset = v8->off_bytecode_offset,
		.shared = v8->off_shared - 1, /* less the tag */
		.typed = v8->frames_made,
		.typed_leaf = v8->frames_made_leaf,
		.wasm = v8->frame_wasm > 0 && v8->frame_wasm < V8_FRAME_TYPES
				? (uint32_t)v8->frame_wasm
				: 0,
	};

	info.closure = info.shared - 16; /* the words on both sides */
	if (!v8->has_number)
		return info;
	info.closure = CLOSURE - 1;
	info.number = v8->sfi_literal_id - 1;
	if (v8->sfi_unique_id > 0)
		return info;
	info.script = v8->sfi_script - 1;
	info.script_id = v8->script_id + 4 - 1; /* the upper half of a Smi */
	return info;
}

/* Does the kernel read as much below the frame pointer? */
static bool are_near(const struct runtime_v8 *info)
{
	const int32_t offsets[] = {info->context, info->function, info->bytecode_offset};

	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++)
		if (offsets[i] >= 0 || offsets[i] < -(int32_t)RUNTIME_V8_FRAME || offsets[i] % 8)
			return false;
	return true;
}

/* What the kernel reads of a code object in one piece. False: it lies too far apart. */
static bool set_code_range(struct runtime_python *info)
{
	uint32_t first = min_u64(info->code_line, info->code_version);
	uint32_t end = max_u64(info->code_line, info->code_version) + sizeof(uint32_t);

	if (info->code_name != RUNTIME_NONE) {
		first = min_u64(first, min_u64(info->code_name, info->code_filename));
		end = max_u64(end,
			      max_u64(info->code_name, info->code_filename) + sizeof(uint64_t));
	}
	info->code_from = info->code_type ? RUNTIME_OBJECT_TYPE : first;
	if (info->code_from > first || end - info->code_from > RUNTIME_CODE_BYTES)
		return false;
	info->code_size = end - info->code_from;
	return true;
}

static struct runtime_python python_info(const struct found_runtimes *found)
{
	const struct cpython *py = &found->python;
	const struct cpython_thread_word *word = &found->python_word;
	const struct cpython_layout *l = &py->layout;
	struct runtime_python info = {
		.hops = word->hops,
		.state_frame = l->thread_frame,
		.cframe_frame = l->has_cframes ? l->cframe_frame : RUNTIME_NONE,
		.cframe_previous = l->has_cframes ? l->cframe_previous : RUNTIME_NONE,
		.frame_is_entry = l->has_own_anchors ? RUNTIME_NONE : l->frame_is_entry,
		.frame_previous = l->frame_previous,
		.frame_code = l->frame_code,
		.frame_instruction = l->frame_instruction,
		.frame_owner = l->frame_owner,
		.code_line = l->code_firstline,
		.code_version = l->code_version ? l->code_version : l->code_qualname,
		.code_name = l->code_version ? RUNTIME_NONE : l->code_name,
		.str_hash = l->str_hash,
		.str_length = l->str_length,
		.str_ascii = l->str_ascii,
		.head_size = cpython_layout__is_sound(l) ? cpython_head__size(py) : 0,
		.code_qualname = l->code_qualname,
		.code_filename = l->code_filename,
		.code_linetable = l->code_linetable,
		.bytes_size = l->bytes_size,
		.bytes_data = l->bytes_data,
		.code_type = l->has_cframes ? py->code_type : 0,
		.state_holds = l->thread_holds_gil ? l->thread_holds_gil : RUNTIME_NONE,
		.has_waits = l->thread_holds_gil &&
			     l->thread_requests_gil == l->thread_holds_gil + sizeof(uint32_t),
		.gil = found->python_gil.address,
		.gil_interpreter = found->python_gil.interpreter,
		.state_interpreter = l->thread_interp,
		.state_thread = l->has_own_anchors ? 0 : l->thread_id,
	};

	for (uint32_t i = 0; i < RUNTIME_HOPS && i < CPYTHON_HOPS; i++)
		info.hop[i] = word->offset[i];
	return info;
}

struct runtime_info found_runtimes__info(const struct found_runtimes *found)
{
	struct runtime_info info = {};

	if (found->has_v8) {
		info.v8 = v8_info(&found->v8);
		if (are_near(&info.v8))
			info.has |= RUNTIME_V8;
	}
	if (found->has_python) {
		info.python = python_info(found);
		if (set_code_range(&info.python))
			info.has |= RUNTIME_PYTHON;
	}
	if (found->has_hotspot) {
		info.has |= RUNTIME_HOTSPOT | RUNTIME_HOTSPOT_NOTES;
		info.hotspot = found->hotspot_words;
	}
	return info;
}
