/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Resolves many dsos at once: finds their debug files (file_finder.h), searches the cache and gives
 * the rest to sealed children. This process reads no file of another user.
 *
 * Answers come from this process (the kernel, files that cannot be opened), from the cache, and
 * from children, which answer in the order of their jobs. The caller gets them in the order of its
 * jobs and addresses. So the cache's answers are set aside; those that precede a child's answer are
 * passed on before it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/list_column.h"
#include "base/log.h"
#include "base/minmax.h"
#include "base/vec.h"
#include "elf/elf_file.h"
#include "elf/elf_symbols.h"
#include "stream/symbol_blob.h"
#include "symbolize/code_cache.h"
#include "symbolize/debug_file.h"
#include "symbolize/debuginfod.h"
#include "symbolize/dwarf.h"
#include "symbolize/file_finder.h"
#include "symbolize/kallsyms.h"
#include "symbolize/module_code.h"
#include "symbolize/sealed.h"
#include "symbolize/sources.h"
#include "symbolize/symbol_cache.h"
#include "symbolize/symbol_index.h"
#include "symbolize/symbolize.h"

struct batch;

/* One job's part of the work. */
struct part {
	struct batch *batch;
	struct symbolizer_job *job;
	struct found_files files;
	bool unreadable; /* its file system does not answer */
	enum debug_refusal refusal;
	struct symbol_key key;
	bool in_cache;		   /* its answers have a key, and a place */
	bool was_looked_up;	   /* was looked up in the cache: */
	struct symbol_blob cached; /* answers from there, by index … */
	size_t delivered;	   /* … of which this number of bytes was passed on */
	enum symbol_state known_state;
	bool known_without_lines;
	/* Addresses without an answer in the cache, and their indices in the job. */
	VEC(uint64_t) addresses;
	VEC(size_t) indices;
	bool is_put_off;	       /* there were such, but they wait */
	bool wants_index;	       /* because many have waited */
	struct sealed_job *sealed;     /* NULL: no child is needed */
	VEC(struct code_address) code; /* whose machine code is wanted */
	bool only_code;		       /* all answers are in the cache */
	char *known_code;	       /* events of the cache instead of a child's */
	size_t known_code_size;
	/* The kernel with a vmlinux: its distance from there, number of answers passed on. */
	bool has_vmlinux;
	uint64_t shift;
	size_t reported;
};

struct batch {
	struct symbolizer *symbolizer;
	const struct symbolizer_options *options;
	struct symbolizer_counts *counts;
	struct debug_file_counts files;
	struct file_finder *finder; /* NULL: none was needed yet */
	bool finder_began;
	struct symbol_cache *cache;
	struct code_cache *code_cache; /* NULL: there is none, or it was not needed yet */
	struct part *parts;
	size_t count;
	size_t finished; /* all answers of the parts before this one were passed on */
	struct wanted_sources sources;
	struct symbolizer_job script_job;
	struct sealed_job *sealed;
	size_t sealed_count;
	size_t done_before, total; /* addresses: those without a child, and all */
};

static const char *const lost_lines[] = {DWARF_STATES(SECOND_COLUMN)};

static const char *const refusals[] = {DEBUG_REFUSALS(SECOND_COLUMN)};

static const char lines_not_read[] = "debug information was not read, to save time";
static const char names_put_off[] = "some names and lines were put off, to save time";

/* Parts of all samples: less is rare, and too little for a file that was not read before. */
#define RARE_PART	   1000
#define NEW_PART	   100
#define FEW_SAMPLES	   2   /* of a new file; at a low rate one may be a large part */
#define PUT_OFF_MOST	   256 /* addresses of a module that wait, over all calls */

#define CODE_SAMPLES_LEAST 1u
/* Bytes of files that are read for the lines of code alone, because the cache has all names. */
#define CODE_FILES_MAX (UINT64_C(64) << 20)

/* Are its addresses file offsets? */
static bool is_file(enum dso_kind kind)
{
	return kind == DSO_FILE || kind == DSO_VDSO;
}

/* ---- progress -------------------------------------------------------------------------------- */

static int report_progress(struct batch *b, const struct symbolizer_progress *progress)
{
	if (b->options->progress && b->options->progress(b->options->context, progress))
		b->counts->cancelled = true;
	return b->counts->cancelled;
}

static int on_fetch(void *context, const char *what, uint64_t done, uint64_t total)
{
	struct batch *b = context;

	return report_progress(b, &(struct symbolizer_progress){.done = b->done_before,
								.total = b->total,
								.file = total ? what : NULL,
								.bytes = done,
								.of_bytes = total});
}

static int on_poll(void *context, size_t done, size_t total)
{
	struct batch *b = context;

	(void)total;
	return report_progress(
		b, &(struct symbolizer_progress){.done = b->done_before + done, .total = b->total});
}

/* ---- preparing ------------------------------------------------------------------------------- */

/* From the kernel's cache: a file system may not answer. 0 or -1. */
static int stat_cached(int fd, struct stat *st)
{
	struct statx found;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_UID | STATX_GID | STATX_MODE,
		  &found))
		return -1;
	*st = (struct stat){
		.st_uid = found.stx_uid, .st_gid = found.stx_gid, .st_mode = found.stx_mode};
	return 0;
}

/* Whose file it is. */
static uint32_t user_of_file(const struct symbolizer_dso *dso)
{
	struct stat st;

	if (dso->fd < 0) /* the kernel */
		return 0;
	if (dso->copied_for)
		return dso->copied_for;
	return stat_cached(dso->fd, &st) ? OUTSIDE_USER_UNKNOWN : st.st_uid;
}

static struct debug_file_request debug_file_request_of(struct batch *b, const struct part *part)
{
	const struct symbolizer_dso *dso = &part->job->dso;

	return (struct debug_file_request){
		.elf_fd = dso->fd,
		.elf_base = dso->base,
		.root_fd = dso->root_fd,
		.user = user_of_file(dso),
		.path = dso->path,
		.build_id_size = dso->build_id_size,
		.build_id = dso->build_id,
		.release = dso->release,
		.package = is_file(dso->kind),
		.debuginfod = b->options->debuginfod && !b->options->symbols_only,
		.progress = on_fetch,
		.context = b,
	};
}

/* The finder of the session, or one of this call. NULL: no memory. */
static struct file_finder *need_finder(struct batch *b)
{
	struct file_finder **finder = b->options->remember ? &b->symbolizer->finder : &b->finder;

	if (!*finder)
		*finder = file_finder__new(NULL);
	if (*finder && !b->finder_began)
		file_finder__begin(*finder, b->options->outside);
	b->finder_began = *finder != NULL;
	return b->finder = *finder;
}

/* 0 or -ENOMEM. Without a descriptor or a process to open it, the module's own tables are used. */
static int find_debug_file(struct batch *b, struct part *part)
{
	const struct debug_file_request request = debug_file_request_of(b, part);
	int err;

	part->files = (struct found_files){.debug_fd = -1, .alt_fd = -1};
	if (!need_finder(b))
		return -ENOMEM;
	err = file_finder__find(b->finder, &request, &b->files, &part->files);
	part->unreadable = err == -ETIMEDOUT;
	part->refusal = b->files.refusal;
	return err == -ENOMEM ? err : 0;
}

/* As a call before has found them, without descriptors. */
static bool recall_files(struct batch *b, struct part *part)
{
	const struct debug_file_request request = debug_file_request_of(b, part);

	return b->options->remember && need_finder(b) &&
	       file_finder__recall(b->finder, &request, &part->files);
}

#define FOUND 1

static int is_text_start(void *context, const struct elf_symbol *symbol)
{
	uint64_t *address = context;

	if (strcmp(symbol->name, "_stext"))
		return 0;
	*address = symbol->address;
	return FOUND;
}

/*
 * The distance of the running kernel from its vmlinux: address space layout randomization moves it
 * as a whole. `start`: where its text begins (_stext). False: the file has no such address.
 */
static bool find_shift(int vmlinux, uint64_t start, uint64_t *shift)
{
	uint64_t address = 0;
	struct elf_file *file;
	bool found;

	if (elf_file__open(vmlinux, &file))
		return false;
	found = elf_file__each_symbol(file, is_text_start, &address) == FOUND;
	elf_file__free(file);
	*shift = start - address;
	return found;
}

static int find_vmlinux(struct batch *b, struct part *part)
{
	const struct symbolizer_dso *dso = &part->job->dso;
	uint64_t start;
	int err;

	if (b->options->symbols_only || !dso->build_id_size || !dso->release ||
	    kallsyms__text_start(b->symbolizer->kallsyms, &start) ||
	    (recall_files(b, part) && !part->files.total_size))
		return 0;
	err = find_debug_file(b, part);
	if (!err && part->files.debug_fd >= 0)
		part->has_vmlinux = find_shift(part->files.debug_fd, start, &part->shift);
	log_debug(LOG_SYMBOLS, "%s: %s", dso->path,
		  part->has_vmlinux ? "lines from its vmlinux" : "names from kallsyms alone");
	return err;
}

static bool make_key(const struct batch *b, const struct part *part, struct symbol_key *key)
{
	const struct symbolizer_dso *dso = &part->job->dso;

	if (!part->files.identity || dso->build_id_size > sizeof(key->build_id))
		return false;
	*key = (struct symbol_key){
		.identity = part->files.identity,
		.symbols_only = b->options->symbols_only,
		.build_id_size = dso->build_id_size,
	};
	if (dso->build_id_size)
		memcpy(key->build_id, dso->build_id, dso->build_id_size);
	return true;
}

static int look_up_in_cache(struct batch *b, struct part *part, const uint64_t *addresses,
			    unsigned char *known)
{
	part->was_looked_up = true;
	part->known_state = SYMBOL_STATE_RESOLVED;
	part->in_cache = b->cache && make_key(b, part, &part->key);
	if (!part->in_cache)
		return 0;
	return symbol_cache__read(b->cache, &part->key, addresses, part->job->count, known,
				  symbol_blob__add, &part->cached, &part->known_state,
				  &part->known_without_lines);
}

/* Are these less than one in `part` of all samples? */
static bool are_few(const struct batch *b, uint64_t samples, uint64_t part)
{
	return samples * part < b->options->samples;
}

/* Can the addresses without an answer wait until there are more of them? */
static bool can_wait(const struct batch *b, const struct part *part)
{
	const struct symbolizer_options *o = b->options;
	const uint32_t *samples = part->job->samples;
	uint64_t most = 0;

	if (!o->remember || !part->in_cache || !samples || !part->addresses.count ||
	    part->has_vmlinux)
		return false;
	for (size_t i = 0; i < part->indices.count; i++)
		most = max_u64(most, samples[part->indices.data[i]]);
	if (o->put_off_rare && are_few(b, most, RARE_PART))
		return true;
	return o->put_off_new && (most < FEW_SAMPLES || are_few(b, most, NEW_PART)) &&
	       !symbol_cache__has_read(b->cache, &part->key);
}

static void put_off(struct batch *b, struct part *part)
{
	size_t count = part->addresses.count;

	if (!can_wait(b, part))
		return;
	part->wants_index = symbol_cache__put_off(b->cache, &part->key, count) >= PUT_OFF_MOST;
	if (part->wants_index)
		return;
	log_debug(LOG_SYMBOLS, "%s: %zu addresses put off", part->job->dso.path, count);
	b->counts->put_off += count;
	part->is_put_off = true;
	part->addresses.count = 0;
}

/* Set the cache's answers aside; a child gets the other addresses. */
static int divide_addresses(struct batch *b, struct part *part)
{
	const struct symbolizer_job *job = part->job;
	_cleanup_free_ unsigned char *known = calloc(job->count + 1, 1);
	_cleanup_free_ uint64_t *addresses = calloc(job->count + 1, sizeof(*addresses));
	int err = known && addresses ? 0 : -ENOMEM;
	size_t cached = 0;

	for (size_t i = 0; i < job->count && !err; i++)
		addresses[i] = job->addresses[i] - part->shift;
	if (!err)
		err = look_up_in_cache(b, part, addresses, known);
	for (size_t i = 0; i < job->count && !err; i++) {
		cached += known[i];
		if (known[i] || (part->has_vmlinux &&
				 !symbolize_in_kernel_image(b->symbolizer, job->addresses[i])))
			continue;
		err = vec_push(&part->addresses, addresses[i]) ?: vec_push(&part->indices, i);
	}
	log_debug(LOG_SYMBOLS, "%s: %zu addresses: %zu cached, %zu to resolve", job->dso.path,
		  job->count, cached, part->addresses.count);
	return err;
}

/* ---- machine code ---------------------------------------------------------------------------- */

/* Samples that a function must be in. */
static uint32_t code_least(const struct batch *b)
{
	double least = b->options->code_share * (double)b->options->samples;

	return least > CODE_SAMPLES_LEAST ? (uint32_t)min_u64((uint64_t)least, UINT32_MAX)
					  : CODE_SAMPLES_LEAST;
}

/* All addresses of the module, if it has enough samples for any function. 0 or -ENOMEM. */
static int want_code(struct batch *b, struct part *part)
{
	const struct symbolizer_job *job = part->job;
	uint64_t samples = 0;
	int err = 0;

	if (!(b->options->code_share > 0) || !job->code || !job->samples || !job->self ||
	    !is_file(job->dso.kind))
		return 0;
	for (size_t i = 0; i < job->count; i++)
		samples += job->samples[i];
	for (size_t i = 0; i < job->count && samples >= code_least(b) && !err; i++)
		err = vec_push(&part->code, (struct code_address){job->addresses[i], job->self[i],
								  job->samples[i]});
	return err;
}

/* Of the debug information that the module was read with. */
static struct debug_writers writers_of(const struct part *part)
{
	const struct symbolizer_dso *dso = &part->job->dso;
	struct debug_writers writers = part->files.writers;
	struct stat st;

	if (part->sealed)
		debug_writers__add_all(&writers, &part->sealed->writers);
	/* of a copy the kernel has nothing to say */
	if (dso->copied_for)
		debug_writers__add(&writers, dso->copied_for);
	else if (stat_cached(dso->fd, &st))
		writers.is_several = true;
	else
		debug_writers__add_file(&writers, &st);
	return writers;
}

/* The vDSO is small, and its copy another file in each recording. */
static bool may_keep_code(struct batch *b, const struct part *part)
{
	if (!part->in_cache || part->job->dso.kind != DSO_FILE)
		return false;
	if (!b->code_cache)
		b->code_cache = code_cache__open(NULL, CODE_CACHE_LIMIT);
	return b->code_cache != NULL;
}

/* If names and code are in the cache, no child is needed. 0 or -ENOMEM. */
static int find_known_code(struct batch *b, struct part *part)
{
	const struct code_question question = {.key = &part->key,
					       .addresses = part->code.data,
					       .count = part->code.count,
					       .names = &part->cached,
					       .least = code_least(b)};
	int err;

	if (!part->only_code || !part->code.count || !may_keep_code(b, part))
		return 0;
	err = code_cache__read(b->code_cache, &question, &part->known_code, &part->known_code_size);
	log_debug(LOG_SYMBOLS, "%s: code %s", part->job->dso.path,
		  err ? "is read" : "is in the cache");
	if (err)
		return err == -ENOMEM ? err : 0;
	part->code.count = 0;
	return 0;
}

/* What a child has read in full, and from no files of users but those that the key is made of. */
static void keep_code(struct batch *b, const struct part *part)
{
	const struct sealed_job *sealed = part->sealed;

	if (sealed->files.symbols_only || sealed->writers.user || sealed->writers.is_several ||
	    !module_report__is_whole(&sealed->report, true) || !may_keep_code(b, part))
		return;
	code_cache__add(b->code_cache, &part->key, part->only_code ? &part->cached : NULL,
			sealed->code, sealed->code_size);
}

static int pass_code(struct part *part, const char *events, size_t size)
{
	struct batch *b = part->batch;
	const struct debug_file_request request = debug_file_request_of(b, part);
	struct debug_writers writers;
	int err = 0;

	if (b->options->sources && part->job->source) {
		writers = writers_of(part);
		err = wanted_sources__add(&b->sources, part->job, &request, &writers, events, size);
	}
	return err ?: part->job->code(part->job->context, events, size);
}

static int report_code(struct part *part)
{
	const struct sealed_job *sealed = part->sealed;

	if (part->known_code)
		return pass_code(part, part->known_code, part->known_code_size);
	if (!sealed || !sealed->code)
		return 0;
	keep_code(part->batch, part);
	return pass_code(part, sealed->code, sealed->code_size);
}

static int report_fresh(void *context, size_t number, const struct symbol_result *result);

static void hand_to_child(struct batch *b, struct part *part)
{
	const struct symbolizer_dso *dso = &part->job->dso;

	part->sealed = &b->sealed[b->sealed_count++];
	*part->sealed = (struct sealed_job){
		.files =
			{
				.kind = dso->kind,
				.elf_fd = dso->fd,
				.elf_base = dso->base,
				.debug_fd = part->files.debug_fd,
				.alt_fd = part->files.alt_fd,
				.package_size = dwarf_reads_packages() ? part->files.package_size
								       : 0,
				.symbols_only = b->options->symbols_only ||
						(part->only_code &&
						 part->files.total_size > CODE_FILES_MAX),
			},
		.size = part->files.total_size,
		.finder = b->finder,
		.root_fd = dso->root_fd,
		.path = dso->path,
		.user = user_of_file(dso),
		.books = b->options->outside,
		.wants_index =
			!part->only_code &&
			(part->wants_index ||
			 (part->in_cache && symbol_cache__wants_index(b->cache, &part->key))),
		.code_addresses = part->code.data,
		.code_count = part->code.count,
		.code_least = code_least(b),
		.addresses = part->addresses.data,
		.count = part->addresses.count,
		.sink = report_fresh,
		.context = part,
	};
}

static bool needs_its_file(const struct symbolizer_job *job)
{
	return is_file(job->dso.kind) && job->dso.fd >= 0;
}

/* Requests answers of the cache; those that it does not have wait, or are left for a child. */
static int look_up(struct batch *b, struct part *part)
{
	int err = divide_addresses(b, part);

	if (!err)
		put_off(b, part);
	return err;
}

/* The cache's answers are of files that may have been replaced since. */
static void forget_answers(struct part *part)
{
	symbol_blob__fini(&part->cached);
	part->cached = (struct symbol_blob){};
	part->addresses.count = part->indices.count = 0;
	part->was_looked_up = false;
}

/* A child needs open files. For what the cache has, it is enough that they were found. */
static int prepare_module(struct batch *b, struct part *part)
{
	int err;

	if (recall_files(b, part)) {
		err = look_up(b, part);
		if (err || !part->addresses.count)
			return err;
		forget_answers(part);
	}
	err = find_debug_file(b, part);
	return err || b->counts->cancelled || part->unreadable ? err : look_up(b, part);
}

static int prepare_kernel(struct batch *b, struct part *part)
{
	int err = find_vmlinux(b, part);

	return err || b->counts->cancelled || !part->has_vmlinux ? err : look_up(b, part);
}

static int prepare_part(struct batch *b, struct part *part)
{
	bool kernel = part->job->dso.kind == DSO_KERNEL;
	int err;

	if (!part->job->count || (!kernel && !needs_its_file(part->job)))
		return 0;
	if (report_progress(b, &(struct symbolizer_progress){.total = b->total}))
		return 0;
	err = kernel ? prepare_kernel(b, part) : prepare_module(b, part);
	if (err || !part->was_looked_up)
		return err;
	b->counts->modules++;
	part->only_code = !part->addresses.count;
	b->counts->modules_cached += part->only_code;
	err = want_code(b, part) ?: find_known_code(b, part);
	if (!err && (!part->only_code || part->code.count))
		hand_to_child(b, part);
	return err;
}

static int batch__init(struct batch *b, struct symbolizer_job *jobs)
{
	int err = 0;

	b->sealed = calloc(b->count + 1, sizeof(*b->sealed));
	b->parts = b->sealed ? calloc(b->count + 1, sizeof(*b->parts)) : NULL;
	if (!b->parts)
		return -ENOMEM;
	if (b->options->cache)
		b->cache = b->options->remember ? symbolize_cache(b->symbolizer)
						: symbol_cache__open(NULL, SYMBOL_CACHE_LIMIT);
	if (b->cache)
		symbol_cache__keep(b->cache, SYMBOL_CACHE_KEPT);
	for (size_t i = 0; i < b->count; i++) {
		b->parts[i] = (struct part){
			.batch = b, .job = &jobs[i], .files = {.debug_fd = -1, .alt_fd = -1}};
		b->total += jobs[i].count;
	}
	for (size_t i = 0; i < b->count && !err; i++) {
		err = prepare_part(b, &b->parts[i]);
		b->done_before += jobs[i].count - b->parts[i].addresses.count;
	}
	return err;
}

static void part__fini(struct part *part)
{
	if (part->files.debug_fd >= 0)
		close(part->files.debug_fd);
	if (part->files.alt_fd >= 0)
		close(part->files.alt_fd);
	symbol_blob__fini(&part->cached);
	free(part->known_code);
	vec_free(&part->addresses);
	vec_free(&part->indices);
	vec_free(&part->code);
}

static void batch__fini(struct batch *b)
{
	for (size_t i = 0; b->parts && i < b->count; i++)
		part__fini(&b->parts[i]);
	for (size_t i = 0; i < b->sealed_count; i++) {
		symbol_index__free(b->sealed[i].index);
		free(b->sealed[i].code);
	}
	if (b->finder)
		file_finder__end(b->finder);
	if (!b->options->remember) {
		file_finder__free(b->finder);
		symbol_cache__free(b->cache);
	}
	code_cache__free(b->code_cache);
	wanted_sources__fini(&b->sources);
	free(b->parts);
	free(b->sealed);
}

/* ---- passing on ------------------------------------------------------------------------------ */

static void fill_in(struct part *part)
{
	struct symbolizer_job *job = part->job;
	const struct module_report *report = part->sealed && !part->only_code
						     ? &part->sealed->report
						     : NULL;

	job->lines_lost = !report && part->known_without_lines ? lines_not_read : NULL;
	job->state = report ? report->state : part->known_state;
	if (report && report->dwarf != DWARF_STATE_NONE && report->dwarf != DWARF_STATE_READ)
		job->lines_lost = lost_lines[report->dwarf];
	if (report && report->dwarf == DWARF_STATE_PARTLY && part->files.package_size &&
	    !dwarf_reads_packages())
		job->lines_lost = lost_lines[DWARF_STATE_PACKAGED];
	if (report && part->batch->options->symbols_only)
		job->lines_lost = lines_not_read;
	if (!job->lines_lost && part->is_put_off)
		job->lines_lost = names_put_off;
	if (!job->lines_lost && part->refusal != DEBUG_REFUSAL_NONE && part->files.debug_fd < 0)
		job->lines_lost = refusals[part->refusal];
	if (job->lines_lost)
		log_debug(LOG_SYMBOLS, "%s: lines missing: %s", job->dso.path, job->lines_lost);
}

static int report_kernel_until(struct part *part, size_t end)
{
	const struct symbolizer_job *job = part->job;
	int err = 0;

	for (; part->reported < end && !err; part->reported++)
		err = symbolizer__kernel_function(part->batch->symbolizer, part->reported,
						  job->addresses[part->reported], &job->times,
						  job->sink, job->context);
	return err;
}

/* Lines of the kernel, moved to where it is. Without lines kallsyms is as good, and has modules. */
static int report_kernel(struct part *part, size_t index, const struct symbol_result *result)
{
	const struct symbolizer_job *job = part->job;
	struct symbol_frame frames[SYMBOL_CHAIN_MAX];
	struct symbol_result moved = *result;
	int err = report_kernel_until(part, index);

	if (err || !result->frame_count || (result->frame_count == 1 && !result->frames[0].line))
		return err;
	if (moved.frame_count > SYMBOL_CHAIN_MAX)
		moved.frame_count = SYMBOL_CHAIN_MAX;
	for (size_t i = 0; i < moved.frame_count; i++) {
		frames[i] = result->frames[i];
		if (frames[i].function_address != PROFILE_UNKNOWN_ADDRESS)
			frames[i].function_address += part->shift;
	}
	moved.elf_address = job->addresses[index];
	moved.frames = frames;
	part->reported = index + 1;
	return job->sink(job->context, index, &moved);
}

/* A symbol_sink_fn whose context is the part: an answer of the cache or of a child. */
static int report_result(void *context, size_t index, const struct symbol_result *result)
{
	struct part *part = context;

	if (part->has_vmlinux)
		return report_kernel(part, index, result);
	return part->job->sink(part->job->context, index, result);
}

/* Answers without a child about indices below `end` that were not passed on yet. */
static int deliver_cached(struct part *part, size_t end)
{
	size_t next = part->delivered;
	struct symbol_answer answer;
	int err = 0;

	while (!err &&
	       symbol_blob__next(part->cached.bytes.data, part->cached.bytes.count, &next,
				 &answer) > 0 &&
	       answer.address < end) {
		part->delivered = next;
		err = report_result(part, answer.address, &answer.result);
	}
	return err;
}

/* Of a job without an answer of the cache or of a child. */
static enum symbol_state state_without_answers(const struct part *part)
{
	const struct symbolizer_job *job = part->job;

	if (part->unreadable)
		return SYMBOL_STATE_NO_FILE;
	if (needs_its_file(job))
		return job->count ? SYMBOL_STATE_CANCELLED : SYMBOL_STATE_PENDING;
	return is_file(job->dso.kind) ? SYMBOL_STATE_NO_FILE : SYMBOL_STATE_NO_SYMBOLS;
}

/* Deferred addresses get no name; those between them the cache's answers. */
static int report_put_off(struct part *part)
{
	const struct symbol_result nothing = {.elf_address = PROFILE_UNKNOWN_ADDRESS};
	const struct symbolizer_job *job = part->job;
	int err = 0;

	for (size_t i = 0; i < part->indices.count && !err; i++) {
		err = deliver_cached(part, part->indices.data[i])
			      ?: job->sink(job->context, part->indices.data[i], &nothing);
	}
	return err;
}

static int report_nothing(const struct part *part)
{
	const struct symbol_result nothing = {.elf_address = PROFILE_UNKNOWN_ADDRESS};
	struct symbolizer_job *job = part->job;
	int err = 0;

	for (size_t i = 0; i < job->count && !err; i++)
		err = job->sink(job->context, i, &nothing);
	job->state = state_without_answers(part);
	job->lines_lost = part->unreadable ? refusals[DEBUG_REFUSAL_HUNG] : NULL;
	return err;
}

static int report_rest(struct batch *b, struct part *part)
{
	struct symbolizer_job *job = part->job;
	bool kernel = job->dso.kind == DSO_KERNEL, answered = part->sealed || part->was_looked_up;
	int err = 0;

	if (!answered && !kernel)
		return report_nothing(part);
	if (answered) {
		fill_in(part);
		if (part->is_put_off)
			err = report_put_off(part);
		if (!err)
			err = deliver_cached(part, job->count);
	}
	if (!err && kernel) {
		err = report_kernel_until(part, job->count);
		job->state = symbolize_kernel_state(b->symbolizer);
		outside_books__add(b->options->outside, 0, OUTSIDE_SYMBOL_TABLES, OUTSIDE_BY_ITSELF,
				   symbolize_kernel_left(b->symbolizer));
	}
	return err;
}

/* Was an index requested, of a child that had the time to make it? */
static bool has_tried_index(const struct part *part)
{
	return part->sealed && part->sealed->wants_index &&
	       part->sealed->report.state != SYMBOL_STATE_CANCELLED &&
	       part->sealed->report.state != SYMBOL_STATE_LEFT;
}

/* All answers of the part that were not passed on yet. */
static int finish_part(struct batch *b, struct part *part)
{
	struct symbolizer_job *job = part->job;
	bool in_cache = part->in_cache && part->sealed && !part->only_code;
	int err = report_rest(b, part) ?: report_code(part);

	if (in_cache)
		symbol_cache__note_reading(b->cache, &part->key, part->sealed->cpu_time,
					   part->sealed->report.index_cost);
	if (has_tried_index(part)) {
		symbol_cache__add_index(b->cache, &part->key, part->sealed->user,
					part->sealed->index, part->addresses.data,
					part->addresses.count);
		part->sealed->index = NULL;
	}
	if (in_cache)
		symbol_cache__commit(b->cache);
	return err || !job->done ? err : job->done(job->context, job);
}

static int finish_until(struct batch *b, const struct part *end)
{
	int err = 0;

	while (!err && &b->parts[b->finished] < end)
		err = finish_part(b, &b->parts[b->finished++]);
	return err;
}

/* The answer of a child for its address number `number`. */
static int report_fresh(void *context, size_t number, const struct symbol_result *result)
{
	struct part *part = context;
	size_t index = part->indices.data[number];
	int err = finish_until(part->batch, part)
			?: deliver_cached(part, index)
			?: report_result(part, index, result);

	if (!err && part->in_cache &&
	    module_report__is_whole(&part->sealed->report, !part->key.symbols_only))
		err = symbol_cache__add(part->batch->cache, &part->key,
					part->addresses.data[number], result,
					part->sealed->report.state);
	return err;
}

static void count_up(const struct batch *b)
{
	struct symbolizer_counts *counts = b->counts;

	counts->debug_files_fetched = b->files.by_debuginfod;
	counts->debug_files_wrong = b->files.wrong_build_id + b->files.wrong_crc;
	counts->fetch_failures = b->files.debuginfod_failures;
	if (counts->fetch_failures)
		counts->fetch_error = debuginfod_strerror(b->files.debuginfod_error);
	for (size_t i = 0; i < b->sealed_count; i++) {
		counts->cpu_time += b->sealed[i].cpu_time;
		if (b->sealed[i].peak_memory > counts->peak_memory)
			counts->peak_memory = b->sealed[i].peak_memory;
		counts->abandoned += b->sealed[i].abandoned;
	}
	counts->abandoned += b->finder ? file_finder__abandoned(b->finder) : 0;
	counts->searched += b->finder ? file_finder__requests(b->finder) : 0;
	counts->debug_files_refused = b->files.crc_refused;
}

static int want_scripts(struct batch *b)
{
	const struct symbolizer_options *o = b->options;
	int err = 0;

	b->script_job = (struct symbolizer_job){
		.dso.fd = -1, .source = o->script_source, .context = o->script_context};
	for (size_t i = 0; i < o->script_count && o->sources && !err; i++)
		err = wanted_sources__add_script(&b->sources, &b->script_job, &o->scripts[i]);
	return err;
}

int symbolizer__resolve_all(struct symbolizer *s, struct symbolizer_job *jobs, size_t count,
			    const struct symbolizer_options *options,
			    struct symbolizer_counts *counts)
{
	struct batch b = {.symbolizer = s, .options = options, .counts = counts, .count = count};
	int err = batch__init(&b, jobs);

	if (!err && b.sealed_count)
		err = sealed_run(b.sealed, b.sealed_count, 0, on_poll, &b,
				 &(struct sealed_work){.keeper = s->keeper,
						       .large = options->large_children,
						       .cpu = &s->cpu});
	if (!err)
		err = finish_until(&b, b.parts + count);
	if (!err)
		err = want_scripts(&b);
	if (!err && b.sources.list.count && !counts->cancelled && need_finder(&b))
		err = wanted_sources__read(&b.sources, b.finder, options, counts->sources_left);
	count_up(&b);
	log_debug(LOG_SYMBOLS, "%zu modules: %zu from the cache alone, %zu read by children",
		  (size_t)counts->modules, (size_t)counts->modules_cached, b.sealed_count);
	batch__fini(&b);
	return err;
}
