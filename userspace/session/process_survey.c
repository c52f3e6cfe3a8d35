/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/process_survey.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/order.h"
#include "base/proc_task.h"
#include "base/suffix.h"
#include "elf/elf_file.h"
#include "elf/elf_sections.h"
#include "files/owner_copy.h"
#include "jit/follow/jit_file.h"
#include "jit/follow/jit_find.h"
#include "jit/follow/jit_tail.h"
#include "live/capture/target.h"
#include "live/proc/proc_maps.h"
#include "runtimes/ask/runtime_reader.h"
#include "runtimes/table.h"
#include "symbolize/debug_file.h"
#include "symbolize/link_crc.h"
#include "tenants/owner.h"
#include "tenants/tenant_open.h"

#define S	 1000000000ull
#define DEADLINE (2 * S) /* of one request */
#define PATIENCE (8 * S) /* for all requests */
#define READERS	 4u
#define HANGS	 4u /* files without an answer after which no more are requested */

_Static_assert(sizeof(struct survey_mapping) <= MESSAGE_SIZE_MAX, "it is one request");

#define FILE_MAX     (16ull << 30) /* bytes; larger files are not read */
#define COPY_MAX     (256ull << 20)
#define BUILD_ID_MAX 64u

/* ---- in a reader: what a file has ------------------------------------------------------------ */

/* 0 or -EPROTO. Terminates the path. */
static int take_request(const struct helper_job *job, struct survey_mapping *mapping)
{
	if (job->request_size != sizeof(*mapping))
		return -EPROTO;
	memcpy(mapping, job->request, sizeof(*mapping));
	mapping->path[sizeof(mapping->path) - 1] = '\0';
	return 0;
}

static bool has_section(struct elf_file *file, const char *name)
{
	struct elf_section section;

	return !elf_file__find_section(file, name, &section) && section.type != SHT_NOBITS &&
	       section.size > 4; /* more than the terminator of an .eh_frame */
}

/* Compilers write 8 to 20 % of the size of their code. */
static bool describes_little(struct elf_file *file)
{
	struct elf_section frames, text;

	return !elf_file__find_section(file, ".eh_frame", &frames) &&
	       !elf_file__find_section(file, ".text", &text) && frames.size < text.size / 64;
}

static enum survey_cfi cfi_of(struct elf_file *file)
{
	struct elf_section section;

	if (has_section(file, ".eh_frame") && !describes_little(file))
		return SURVEY_CFI_EH_FRAME;
	if (!elf_file__find_section(file, ".gopclntab", &section) ||
	    !elf_file__find_section(file, ".data.rel.ro.gopclntab", &section))
		return SURVEY_CFI_GO;
	if (has_section(file, ".debug_frame"))
		return SURVEY_CFI_DEBUG_FRAME;
	return has_section(file, ".eh_frame") ? SURVEY_CFI_LITTLE : SURVEY_CFI_NONE;
}

static bool has_debug_info(struct elf_file *file)
{
	return has_section(file, ".debug_info") || has_section(file, ".zdebug_info");
}

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2 /* of the ELF specification; elf.h of glibc 2.37 has it */
#endif

static bool is_zstd(struct elf_file *file)
{
	struct elf_section section;
	uint32_t method; /* the first field of both Elf32_Chdr and Elf64_Chdr */

	return !elf_file__find_section(file, ".debug_info", &section) &&
	       section.flags & SHF_COMPRESSED &&
	       elf_file__read_section(file, &section, 0, &method, sizeof(method)) ==
		       sizeof(method) &&
	       method == ELFCOMPRESS_ZSTD;
}

static enum survey_debug find_debug(const struct survey_mapping *mapping, int fd,
				    struct elf_file *file)
{
	_cleanup_close_ int root = tenant_root((pid_t)mapping->pid), debug = -1, alt = -1;
	uint8_t build_id[BUILD_ID_MAX];
	struct debug_file_counts counts = {};
	char path[PATH_MAX];
	int size;

	if (has_debug_info(file))
		return is_zstd(file) ? SURVEY_DEBUG_ZSTD : SURVEY_DEBUG_INSIDE;
	crc_ledger__init(&counts.crcs);
	size = elf_file__build_id(file, build_id, sizeof(build_id));
	snprintf(path, sizeof(path), "%.*s", (int)mapping_path_length(mapping->path),
		 mapping->path);
	debug_file_find(
		&(struct debug_file_request){
			.elf_fd = fd,
			.root_fd = root,
			.path = path,
			.build_id = build_id,
			.build_id_size = size > 0 ? (uint8_t)size : 0,
		},
		&debug, &alt, &counts);
	return debug >= 0 ? SURVEY_DEBUG_SEPARATE : SURVEY_DEBUG_NONE;
}

static void look_at(const struct survey_mapping *mapping, int fd, struct elf_file *file,
		    struct survey_file *answer)
{
	const char *slash = strrchr(mapping->path, '/');
	const struct runtime *runtime = slash ? runtime_like_file(slash + 1) : NULL;

	answer->wide = elf_file__is_x86_64(file);
	answer->cfi = cfi_of(file);
	answer->symbols = has_section(file, ".symtab") ? 1 : has_section(file, ".dynsym") ? 2 : 0;
	answer->debug = find_debug(mapping, fd, file);
	if (runtime && runtime->read_version)
		runtime->read_version((pid_t)mapping->pid, mapping->path, answer->version,
				      sizeof(answer->version));
}

void survey_file__serve(struct helper_job *job)
{
	struct survey_file *answer = job->answer;
	struct survey_mapping mapping;
	_cleanup_close_ int fd = -1;
	struct elf_file *file;
	uint64_t copied;
	struct stat st;

	job->answer_size = sizeof(*answer);
	answer->error = take_request(job, &mapping);
	if (answer->error)
		return;
	fd = tenant_open_mapped((pid_t)mapping.pid, mapping.start, mapping.end, FILE_MAX, &st);
	if (fd == -EACCES)
		fd = owner_copy__of_mapping((pid_t)mapping.pid, mapping.start, mapping.end,
					    COPY_MAX, &st, &copied);
	answer->error = fd < 0 ? fd : elf_file__open(fd, &file);
	if (answer->error)
		return;
	look_at(&mapping, fd, file, answer);
	elf_file__free(file);
}

/* ---- the pool -------------------------------------------------------------------------------- */

enum { SERVICE_MAPS, SERVICE_FILE, SERVICE_RUNTIMES, SERVICE_COUNT };

static int new_pool(struct helper_pool **pool)
{
	static const helper_serve_fn services[SERVICE_COUNT] = {
		[SERVICE_MAPS] = proc_maps__serve,
		[SERVICE_FILE] = survey_file__serve,
		[SERVICE_RUNTIMES] = code_reader__serve,
	};
	const struct helper_pool_options options = {
		.class = HELPER_READER,
		.keeper = HELPER_READER_KEEPER,
		.services = services,
		.service_count = SERVICE_COUNT,
		.at_once = READERS,
		.silence = DEADLINE,
		.hangs = HANGS,
		.credit = PATIENCE,
	};

	return helper_pool__new(&options, pool);
}

/* ---- its mappings ---------------------------------------------------------------------------- */

static bool is_known(const struct process_survey *s, const struct proc_mapping *m)
{
	return any_of(s->files.data, s->files.count, file,
		      file->inode == m->inode &&
			      file->major_minor == ((uint64_t)m->major << 32 | m->minor));
}

/* A maps_line_fn. */
static int take_mapping(void *context, const struct proc_mapping *m)
{
	struct process_survey *s = context;
	struct surveyed_file file = {
		.inode = m->inode,
		.major_minor = (uint64_t)m->major << 32 | m->minor,
		.at = {.pid = (uint32_t)s->pid, .start = m->start, .end = m->end},
	};

	if (mapping_is_run_time_code(m->path, false, true)) {
		s->made += m->end - m->start;
		return 0;
	}
	if (*m->path != '/' || is_known(s, m))
		return 0;
	if (s->files.count >= SURVEY_FILES_MAX) {
		s->left_out++;
		return 0;
	}
	file.path = strdup(m->path);
	if (!file.path || vec_push(&s->files, file)) {
		free(file.path);
		return -ENOMEM;
	}
	return 0;
}

/* A helper_answer_fn. */
static void take_maps(void *context, const struct helper_answer *answer)
{
	struct process_survey *s = context;
	struct proc_maps_result result = {};
	pid_t tid = s->pid;

	if (!answer->refusal && !proc_maps__take(answer, 0, &tid, take_mapping, s, &result))
		s->maps_read = result.lines > 0;
}

static int read_maps(struct process_survey *s, struct helper_pool *pool)
{
	_cleanup_close_ int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), dir = -1;
	int err;

	dir = proc < 0 ? -errno : proc_open_process(proc, s->pid);
	if (dir < 0)
		return dir;
	err = proc_maps__request(pool, SERVICE_MAPS, s->pid, dir, take_maps, s);
	if (!err)
		helper_pool__settle(pool, PATIENCE);
	return err;
}

/* ---- what is in them ------------------------------------------------------------------------- */

static void take_file(void *context, const struct helper_answer *answer)
{
	struct surveyed_file *file = context;

	file->answered = !answer->refusal && answer->size == sizeof(file->file);
	if (file->answered)
		memcpy(&file->file, answer->data, sizeof(file->file));
}

static void take_runtimes(void *context, const struct helper_answer *answer)
{
	struct process_survey *s = context;

	s->memory_answered = !code_reader__take_info(answer, &s->found);
}

static int request_files(struct process_survey *s, struct helper_pool *pool)
{
	int err = 0;

	for (size_t i = 0; i < s->files.count && !err; i++) {
		struct survey_mapping at = s->files.data[i].at;

		snprintf(at.path, sizeof(at.path), "%s", s->files.data[i].path);
		err = helper_pool__request(pool, &(struct helper_request){
							 .service = SERVICE_FILE,
							 .owner = helper_owner(s->pid),
							 .data = &at,
							 .size = sizeof(at),
							 .answer = take_file,
							 .context = &s->files.data[i],
						 });
	}
	return err;
}

/* ---- its perf map and jitdumps --------------------------------------------------------------- */

static struct surveyed_map *map_of(struct process_survey *s, const struct jit_file_event *e)
{
	for (size_t i = 0; i < s->maps.count; i++)
		if (s->maps.data[i].number == e->file)
			return &s->maps.data[i];
	if (s->maps.count >= SURVEY_MAPS_MAX ||
	    vec_push(&s->maps, ((struct surveyed_map){.kind = e->kind, .number = e->file})))
		return NULL;
	return &s->maps.data[s->maps.count - 1];
}

static void handle_map_event(struct process_survey *s, uint32_t number)
{
	for (size_t i = 0; i < s->maps.count; i++)
		s->maps.data[i].was_read |= s->maps.data[i].number == number;
}

/* An event_push_fn. */
static int take_map(void *context, struct event_header *event)
{
	const struct jit_file_event *e = (const struct jit_file_event *)event;
	struct process_survey *s = context;
	struct surveyed_map *map;

	if (event->type == EVENT_JIT_BYTES && ((const struct jit_bytes_event *)event)->size)
		handle_map_event(s, ((const struct jit_bytes_event *)event)->file);
	if (event->type != EVENT_JIT_FILE || e->pid != (uint32_t)s->pid ||
	    e->kind >= JIT_FILE_KIND_COUNT || e->state >= JIT_FILE_STATE_COUNT)
		return 0;
	map = map_of(s, e);
	if (!map)
		return 0;
	map->state = e->state;
	if (!map->path && *e->path)
		map->path = strdup(e->path);
	return 0;
}

static bool has_unread_map(const struct process_survey *s)
{
	return any_of(s->maps.data, s->maps.count, map,
		      map->state == JIT_FILE_STATE_FOLLOWED && !map->was_read);
}

static void mark_unanswered(struct process_survey *s)
{
	for (size_t i = 0; i < s->maps.count; i++)
		if (s->maps.data[i].state == JIT_FILE_STATE_FOLLOWED && !s->maps.data[i].was_read)
			s->maps.data[i].state = JIT_FILE_STATE_HUNG;
}

/* A map that is being written is read a little later, so waits once for that. */
static int handle_map_events(struct process_survey *s, struct jit_tail *tail)
{
	const struct timespec patience = {.tv_nsec = (long)JIT_FILE_REWRITE_PATIENCE};
	bool settled = jit_tail__settle(tail, DEADLINE);
	int err = jit_tail__take(tail, monotonic_ns(), take_map, s);

	if (!err && settled && has_unread_map(s)) {
		nanosleep(&patience, NULL);
		settled = jit_tail__settle(tail, DEADLINE);
		err = jit_tail__take(tail, monotonic_ns(), take_map, s);
	}
	if (settled || err)
		return err;
	mark_unanswered(s);
	return s->maps.count ? 0
			     : vec_push(&s->maps, ((struct surveyed_map){.kind = JIT_FILE_MAP}));
}

static int look_for_maps(struct process_survey *s, struct jit_tail *tail)
{
	int err = jit_tail__follow(tail, s->pid);

	for (size_t i = 0; i < s->files.count && !err; i++)
		if (jit_is_dump(s->files.data[i].path))
			err = jit_tail__follow_dump(tail, s->pid, s->files.data[i].path,
						    s->files.data[i].at.start,
						    s->files.data[i].at.end);
	return err ? err : handle_map_events(s, tail);
}

/* Jitdumps are mapped as a signal for profilers; they have no code. */
static void drop_dumps(struct process_survey *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->files.count; i++) {
		if (jit_is_dump(s->files.data[i].path))
			free(s->files.data[i].path);
		else
			s->files.data[kept++] = s->files.data[i];
	}
	s->files.count = kept;
}

/* ---- judging its runtimes by the findings: one line for each --------------------------------- */

/* A map or dump of which something was read: an empty one names nothing. */
static const struct surveyed_map *followed_map(const struct process_survey *s)
{
	return find_first(s->maps.data, s->maps.count, map,
			  map->state == JIT_FILE_STATE_FOLLOWED
				  ? map->was_read
				  : jit_file_state_is_followed(map->state));
}

/* A recording reads no memory of a process with a map, except to unwind. */
static void judge_map(struct surveyed_runtime *runtime, const struct runtime *known,
		      const struct surveyed_map *map)
{
	bool whole = map->state == JIT_FILE_STATE_FOLLOWED;

	if (known->memory && known->memory->needs_walk) {
		if (runtime->mark != SURVEY_BAD && whole) {
			surveyed_runtime__judge(runtime, SURVEY_GOOD,
						"whole stacks, methods named by its perf map");
			runtime->remedy = NULL;
		}
		return;
	}
	surveyed_runtime__judge(runtime, whole ? SURVEY_GOOD : SURVEY_PARTLY,
				"its functions are named by its %s%s",
				map->kind == JIT_FILE_MAP ? "perf map" : "jitdump",
				whole ? "" : ", which is not read as a whole");
	runtime->remedy = NULL;
}

static const struct runtime_finding *finding_of(const struct process_survey *s,
						const struct runtime_memory *memory)
{
	unsigned int number = 0;

	while (runtime_memory(number) != memory)
		number++;
	return &s->found.of[number];
}

/* `file`: by which it was recognized; NULL: by its memory. */
static int add_runtime(struct process_survey *s, const struct runtime *known,
		       const struct surveyed_file *file)
{
	const struct surveyed_map *map = followed_map(s);
	struct surveyed_runtime runtime = {.name = known->name};

	for (size_t i = 0; i < s->runtimes.count; i++)
		if (s->runtimes.data[i].name == known->name)
			return 0;
	if (known->memory && !s->memory_answered) {
		surveyed_runtime__judge(&runtime, SURVEY_BAD,
					"its files or its memory do not answer");
	} else if (known->memory) {
		known->memory->judge(finding_of(s, known->memory), known,
				     file && file->answered ? file->file.version : "", &runtime);
	} else {
		surveyed_runtime__judge(&runtime, SURVEY_BAD, "%s", known->lacks);
		runtime.remedy = known->remedy;
	}
	if (map)
		judge_map(&runtime, known, map);
	return vec_push(&s->runtimes, runtime);
}

/* By the file name, as in summaries. */
static const struct runtime *runtime_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	char name[256];

	snprintf(name, sizeof(name), "%.*s", (int)mapping_path_length(slash + 1), slash + 1);
	return runtime_of_file(name);
}

/* The name is a runtime's, but no file has its interpreter. */
static bool is_absent(const struct process_survey *s, const struct runtime *known)
{
	return known->memory && known->memory->is_absent_unless_read && s->memory_answered &&
	       !finding_of(s, known->memory)->is_seen;
}

int process_survey__judge(struct process_survey *s)
{
	bool seen[RUNTIME_MEMORIES_MAX] = {};
	const struct runtime_memory *memory;
	int err = 0;

	for (size_t i = 0; i < s->files.count && !err; i++) {
		const struct runtime *known = runtime_of(s->files.data[i].path);

		if (!known || is_absent(s, known))
			continue;
		if (known->memory)
			seen[finding_of(s, known->memory) - s->found.of] = true;
		err = add_runtime(s, known, &s->files.data[i]);
	}
	for (unsigned int i = 0; !err && s->memory_answered && (memory = runtime_memory(i)); i++)
		if (!seen[i] && s->found.of[i].is_seen)
			err = add_runtime(s, memory->home, NULL);
	return err;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void see_program(struct process_survey *s)
{
	for (size_t i = 0; i < s->files.count; i++) {
		const struct surveyed_file *file = &s->files.data[i];

		if (is_library_path(file->path))
			continue;
		s->program = file->path;
		s->narrow = file->answered && !file->file.error && !file->file.wide;
		return;
	}
}

static int look_closer(struct process_survey *s, struct helper_pool *pool)
{
	/* first: the files of its runtimes may not answer later */
	int err = code_reader__request(pool, SERVICE_RUNTIMES, (uint32_t)s->pid,
				       helper_owner(s->pid), 0, NULL, 0, take_runtimes, s)
			  ?: request_files(s, pool);

	helper_pool__settle(pool, PATIENCE);
	helper_pool__end(pool); /* abandons readers without an answer */
	return err;
}

static int look(struct process_survey *s)
{
	struct helper_pool *pool = NULL;
	struct jit_tail *tail = NULL;
	int err = new_pool(&pool)
			?: jit_tail__new(false, &tail)
			?: read_maps(s, pool)
			?: look_for_maps(s, tail);

	drop_dumps(s);
	if (!err)
		err = look_closer(s, pool);
	jit_tail__free(tail);
	helper_pool__free(pool);
	if (err)
		return err;
	see_program(s);
	return process_survey__judge(s);
}

int process_survey__run(pid_t pid, struct process_survey *survey, struct failure *failure)
{
	struct proc_identity identity;
	struct proc_stat stat;
	int err;

	*survey = (struct process_survey){.pid = pid};
	err = target_check_process(pid, failure);
	if (err)
		return err;
	if (proc_process_state(pid, &identity) != PROC_HIDDEN)
		memcpy(survey->comm, identity.comm, sizeof(survey->comm));
	if (!proc_stat_of(pid, &stat))
		survey->state = stat.state;
	err = look(survey);
	return err ? fail(failure, err, "cannot inspect process %d: %s", pid, strerror(-err)) : 0;
}

void process_survey__fini(struct process_survey *survey)
{
	vec_free_with(&survey->files, file, free(file->path));
	vec_free_with(&survey->maps, map, free(map->path));
	vec_free(&survey->runtimes);
}
