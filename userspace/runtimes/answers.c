/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/answers.h"

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
#include "base/order.h"
#include "base/proc_task.h"
#include "base/suffix.h"
#include "elf/elf_file.h"
#include "runtimes/table.h"
#include "tenants/tenant_user.h"

_Static_assert(MANAGED_NAME_MAX <= CODE_NAME_MAX && MANAGED_FILE_MAX <= EVENT_PATH_MAX,
	       "what is read fits into an event");

/* ---- events ---------------------------------------------------------------------------------- */

static int append(struct code_answers *answers, const void *data, size_t size)
{
	if (answers->bytes.count + size > answers->limit)
		return -E2BIG;
	return vec_append(&answers->bytes, data, size);
}

/*
 * Rows ascend in an event; of two at one offset the last one counts. Code behind those that fit has
 * no line. Not all are copied: *is_cut.
 */
static size_t copy_rows(struct code_row *to, const struct managed_function *f, bool *is_cut)
{
	size_t count = 0;

	for (size_t i = 0; i < f->rows.count; i++) {
		const struct managed_row *row = &f->rows.data[i];

		if (count && row->offset <= to[count - 1].offset)
			count--;
		if (count == CODE_ROWS_MAX) {
			to[count - 1].line = to[count - 1].column = 0;
			*is_cut = true;
			break;
		}
		to[count++] = (struct code_row){row->offset, row->line, row->column};
	}
	return count;
}

const struct code_function_event *code_answers__event(struct code_answers *answers,
						      const struct code_question *q,
						      enum code_state state, uint32_t base,
						      const struct managed_function *f)
{
	static union {
		struct code_function_event event;
		char bytes[sizeof(struct code_function_event) +
			   CODE_ROWS_MAX * sizeof(struct code_row) + CODE_NAME_MAX +
			   EVENT_PATH_MAX + EVENT_ALIGN];
	} e; /* a reader has one thread; in the collector one thread reads copies */
	struct code_function_event *event = &e.event;
	const char *name = f ? f->name : "", *file = f ? f->file : "";
	size_t size;
	char *text;

	*event = (struct code_function_event){
		.header = {.type = EVENT_CODE_FUNCTION},
		.pid = answers->pid,
		.kind = q->kind,
		.state = state,
		.name_size = strlen(name) + 1,
		.file_size = strlen(file) + 1,
		.function = q->function,
		.check = q->check,
		.line = f ? f->line : 0,
		.column = f ? f->column : 0,
		.base = base,
	};
	event->row_count = f ? copy_rows(event->rows, f, &answers->is_cut) : 0;
	text = (char *)&event->rows[event->row_count];
	size = (size_t)(text - e.bytes) + event->name_size + event->file_size;
	memset(text, 0, event_aligned(size) - (size_t)(text - e.bytes));
	memcpy(text, name, event->name_size);
	memcpy(text + event->name_size, file, event->file_size);
	event->header.size = event_aligned(size);
	return event;
}

int code_answers__add_event(struct code_answers *answers, const struct code_function_event *event,
			    uint16_t flags)
{
	size_t at = answers->bytes.count;
	int err = append(answers, event, event->header.size);

	if (!err)
		((struct event_header *)(answers->bytes.data + at))->flags = flags;
	return err;
}

int code_answers__function(struct code_answers *answers, const struct code_question *q,
			   enum code_state state, uint32_t base, const struct managed_function *f,
			   uint16_t flags)
{
	return code_answers__add_event(answers, code_answers__event(answers, q, state, base, f),
				       flags);
}

int code_answers__chain(struct code_answers *answers, const struct code_question *q,
			enum code_state state, const struct code_call *calls, unsigned int count)
{
	struct {
		struct code_chain_event event;
		struct code_call calls[CODE_CALLS_MAX];
	} e;
	size_t size = count * sizeof(*calls);

	e.event = (struct code_chain_event){
		.header = {.type = EVENT_CODE_CHAIN, .size = (uint32_t)(sizeof(e.event) + size)},
		.pid = answers->pid,
		.kind = q->kind,
		.state = state,
		.call_count = count,
		.function = q->function,
		.address = q->address,
	};
	memcpy(e.calls, calls, size);
	return append(answers, &e, e.event.header.size);
}

/* From here on pages are read once. If there is no memory for them, each object is. */
void code_answers__keep_pages(struct code_answers *answers, struct target_memory *memory)
{
	if (!answers->pages)
		answers->pages = calloc(1, sizeof(*answers->pages));
	memory->pages = answers->pages;
	target_memory__forget(memory);
}

bool code_answers__has(const struct code_answers *answers, const struct code_question *q)
{
	return any_of(answers->methods.data, answers->methods.count, m,
		      m->kind == q->kind && m->function == q->function && m->check == q->check);
}

/* ---- questions ------------------------------------------------------------------------------- */

void code_answers__begin(struct found_runtimes *found)
{
	const struct runtime_memory *memory;

	for (unsigned int i = 0; (memory = runtime_memory(i)); i++)
		if (memory->begin && found->state[i])
			memory->begin(found->state[i], &found->memory);
}

static int add_answer(struct code_answers *answers, struct found_runtimes *found,
		      const struct code_question *question)
{
	const struct runtime_memory *memory;

	if (!found->memory.reads_left)
		return -EDQUOT;
	answers->found = found;
	for (unsigned int i = 0; (memory = runtime_memory(i)); i++)
		for (size_t k = 0; found->state[i] && k < memory->note_count; k++)
			if (memory->notes[k].kind == question->kind)
				return memory->answer(found->state[i], answers, &found->memory,
						      question);
	return 0;
}

int code_answers__add(struct code_answers *answers, struct found_runtimes *found,
		      const struct code_question *question)
{
	int err;

	found->memory.left = answers->is_cut = false;
	err = add_answer(answers, found, question);
	answers->left += err || found->memory.left || answers->is_cut;
	return err;
}

void code_answers__fini(struct code_answers *answers)
{
	vec_free(&answers->bytes);
	vec_free(&answers->methods);
	free(answers->pages);
	answers->pages = NULL;
}

/* ---- runtimes of a process ------------------------------------------------------------------- */

#define MAPPINGS_MAX 65536u
#define FILES_MAX    16u /* that are opened: by their names, */
#define PROGRAMS_MAX 1u	 /* … and because it is the program */
#define IN_PAGE	     UINT64_C(4095)
#define READS_MAX    (1u << 16) /* of one request */
#define BYTES_MAX    (64u << 20)

struct area {
	uint64_t start, end, offset, inode;
	uint32_t major, minor;
	bool executable, candidate, program;
	bool was_looked_at; /* the file, of its first mapping */
};

struct areas {
	VEC(struct area) list;
};

bool runtime_finder__is_program(const char *path)
{
	const char *slash = strrchr(path, '/');

	return *path == '/' && path[1] != '/' && slash[1] && !is_library_path(path) &&
	       !strstr(slash, ".dump");
}

/*
 * The path of the program that a process executes. "": the dynamic linker was executed; the program
 * is then a file that is no library. Makes no call to a file system.
 */
static void read_program(pid_t pid, char *path, size_t size)
{
	ssize_t length = readlink(proc_path(pid, "exe").text, path, size - 1);

	path[length > 0 ? length : 0] = '\0';
	if (is_library_path(path))
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
	char program[PATH_MAX];
	int err = 0;

	read_program(pid, program, sizeof(program));
	f = fopen(proc_path(pid, "maps").text, "re");
	if (!f)
		return -errno;
	while (!err && (size = getline(&line, &room, f)) > 0) {
		struct proc_mapping m;

		if (proc_parse_mapping(line, line[size - 1] == '\n' ? size - 1 : size, &m))
			continue;
		if (areas->list.count == MAPPINGS_MAX)
			return -EFBIG;
		err = vec_push(&areas->list,
			       ((struct area){.start = m.start,
					      .end = m.end,
					      .offset = m.offset,
					      .inode = m.inode,
					      .major = m.major,
					      .minor = m.minor,
					      .executable = m.protection & PROT_EXEC,
					      .candidate = m.inode && runtime_may_be_in(m.path),
					      .program = is_program(&m, program)}));
	}
	return err;
}

static void look_for_each(struct found_runtimes *found, const struct areas *areas, size_t first,
			  struct elf_file *file, const struct file_stamp *stamp)
{
	const struct area *a = &areas->list.data[first];
	struct runtime_lookup lookup = {.file = file, .stamp = *stamp, .user = found->user};
	const struct runtime_memory *memory;
	uint64_t address;

	lookup.has_bias = !elf_file__address_of_offset(file, a->offset, &address);
	lookup.bias = lookup.has_bias ? a->start - (address & ~IN_PAGE) : 0;
	for (unsigned int i = 0; (memory = runtime_memory(i)); i++) {
		lookup.memory = found_runtimes__memory(found);
		memory->find(found->state[i], &lookup);
		found->left |= lookup.memory.left;
	}
	found->may_come |= lookup.may_come;
	found->left |= elf_file__left(file);
}

static void look_at_file(struct found_runtimes *found, const struct areas *areas, size_t i)
{
	const struct area *a = &areas->list.data[i];
	_cleanup_close_ int fd = -1;
	struct elf_file *file;
	struct file_stamp stamp;
	struct stat st;
	char path[80];

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, found->pid,
		 a->start, a->end);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	/* its mappings have changed since they were listed: the loader is still at work */
	found->may_come |= fd < 0 && errno == ENOENT;
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return;
	if (a->program) {
		found->device = st.st_dev;
		found->inode = st.st_ino;
	}
	if (file_stamp__read(fd, &stamp) || elf_file__open(fd, &file))
		return;
	look_for_each(found, areas, i, file, &stamp);
	elf_file__free(file);
}

static bool same_file(const struct area *a, const struct area *b)
{
	return a->inode == b->inode && a->major == b->major && a->minor == b->minor;
}

/* The first mapping of the same file, which reported addresses are relative to. */
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
			found->file_code[found->file_code_count++] = (struct target_range){a->start,
											   a->end};
	}
}

bool found_runtimes__is_file_code(const struct found_runtimes *found, uint64_t address)
{
	return any_of(found->file_code, found->file_code_count, code,
		      address >= code->start && address < code->end);
}

static void look_at_files(struct found_runtimes *found, struct areas *areas, bool programs,
			  size_t room)
{
	for (size_t i = 0; i < areas->list.count; i++) {
		const struct area *a = &areas->list.data[i];
		size_t first;

		if (!a->executable || !(programs ? a->program : a->candidate))
			continue;
		first = first_of_file(areas, i);
		if (areas->list.data[first].was_looked_at)
			continue;
		if (!room--) {
			found->left = true;
			return;
		}
		areas->list.data[first].was_looked_at = true;
		look_at_file(found, areas, first);
	}
}

static int make_states(struct found_runtimes *found)
{
	const struct runtime_memory *memory;

	for (unsigned int i = 0; (memory = runtime_memory(i)); i++) {
		found->state[i] = calloc(1, memory->state_size);
		if (!found->state[i])
			return -ENOMEM;
	}
	return 0;
}

int runtime_finder__look(pid_t pid, struct found_runtimes *found)
{
	struct areas areas = {};
	int err, mem;

	*found = (struct found_runtimes){.pid = pid};
	err = make_states(found);
	if (err)
		return err;
	mem = process_memory__open(pid);
	found->mem = mem > 0 ? mem : 0;
	found->user = tenant_user(pid);
	err = read_areas(pid, &areas);
	found->left = err == -EFBIG;
	err = found->left ? 0 : err;
	note_file_code(found, &areas);
	if (!err) {
		look_at_files(found, &areas, false, FILES_MAX);
		look_at_files(found, &areas, true, PROGRAMS_MAX);
	}
	vec_free(&areas.list);
	return err;
}

void found_runtimes__fini(struct found_runtimes *found)
{
	const struct runtime_memory *memory;

	for (unsigned int i = 0; (memory = runtime_memory(i)); i++) {
		if (found->state[i] && memory->fini)
			memory->fini(found->state[i]);
		free(found->state[i]);
	}
	if (found->mem)
		close(found->mem);
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

void found_runtimes__describe(const struct found_runtimes *found, struct runtime_findings *findings)
{
	const struct runtime_memory *memory;

	*findings = (struct runtime_findings){.may_come = found->may_come,
					      .left = found->left,
					      .device = found->device,
					      .inode = found->inode};
	for (unsigned int i = 0; (memory = runtime_memory(i)); i++)
		if (found->state[i])
			memory->describe(found->state[i], findings, &findings->of[i]);
}
