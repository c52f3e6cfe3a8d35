/* SPDX-License-Identifier: BSD-2-Clause */
/* Recordings are replayed, everything else is read by formats/in/. */
#include "cli/inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/io.h"
#include "base/log.h"
#include "base/suffix.h"
#include "cli/service_windows.h"
#include "cli/standard_input.h"
#include "cli/summary.h"
#include "formats/in/import.h"
#include "formats/out/describe.h"
#include "profile/profile_merge.h"
#include "session/copied_stacks.h"
#include "stream/recording_file.h"
#include "tenants/outside_books.h"

#define READ_STEP (64u << 20)

/* ---- notes about a recording: damage, a missing end, missing names; one line each ------------ */

/* How files of this machine were matched to those of the recording. */
static void print_matches(const char *path, const struct profile *profile)
{
	size_t by_build_id = 0, by_inode = 0, missing = 0;

	for (size_t i = 1; i < profile->dso_count; i++) {
		const struct profile_dso *dso = &profile->dsos[i];
		enum symbol_state state = dso->symbol_state;

		if (dso->kind != DSO_FILE || state == SYMBOL_STATE_PENDING)
			continue;
		if (state == SYMBOL_STATE_NO_FILE)
			missing++;
		else if (dso->build_id_size)
			by_build_id++;
		else
			by_inode++;
	}
	log_print(
		LOG_WARNING,
		"%s: names are from files of this machine: %zu by the build-id, %zu by the inode number "
		"alone; %zu not found",
		path, by_build_id, by_inode, missing);
}

static void print_recording_notes(const char *path, const struct recording_summary *summary,
				  const struct profile *profile)
{
	char text[OUTSIDE_TEXT_SIZE];
	struct figures figures;

	figures__init(&figures, profile);
	if (summary->header_damaged)
		log_print(LOG_WARNING, "%s: damaged file header, ignored", path);
	if (summary->damaged_chunks)
		log_print(LOG_WARNING, "%s: %llu of %llu chunks damaged, skipped", path,
			  (unsigned long long)summary->damaged_chunks,
			  (unsigned long long)(summary->chunks + summary->damaged_chunks));
	if (summary->bad_events)
		log_print(LOG_WARNING, "%s: %llu events invalid, skipped", path,
			  (unsigned long long)summary->bad_events);
	if (summary->truncated)
		log_print(LOG_WARNING, "%s: the last chunk is truncated", path);
	if (summary->cut_short)
		log_print(LOG_WARNING,
			  "%s: the recording has no end: sysprof was killed or is still recording",
			  path);
	if (profile__meta(profile, META_FILES_NOT_READ))
		log_print(LOG_WARNING, "%s: files not read: %s", path,
			  profile__meta(profile, META_FILES_NOT_READ));
	for (size_t i = 0; i < profile->outside_count; i++)
		log_print(LOG_WARNING, "%s: left out: %s", path,
			  describe_outside(text, sizeof(text), &profile->outside[i]));
	if (profile__meta(profile, META_LINES_MISSING))
		log_print(LOG_WARNING, "%s: lines are missing: %s", path,
			  profile__meta(profile, META_LINES_MISSING));
	if (profile__meta(profile, META_JIT_CODE_LEFT_OUT))
		log_print(LOG_WARNING, "%s: machine code of jitdumps left out: %s", path,
			  profile__meta(profile, META_JIT_CODE_LEFT_OUT));
	for (unsigned int id = FIGURE_LEFT_OUT; id < FIGURE_LEFT_OUT_END; id++)
		if (figures__is_loss(&figures, id))
			log_print(LOG_WARNING, "%s: left out: %llu %s", path,
				  (unsigned long long)figures.value[id], figure_table[id].text);
	if (summary->has_symbols)
		return;
	log_print(
		LOG_WARNING,
		"%s: no symbols in the recording; %.1f %% of the addresses resolved on this machine",
		path, 100 * figures.share[FIGURE_NAMED_SHARE]);
	print_matches(path, profile);
}

/* ---- reading --------------------------------------------------------------------------------- */

struct bytes {
	uint8_t *data;
	size_t size;
};

const char *const input_root_words[] = {
#define X(id, word) word,
	IMPORT_ROOTS(X)
#undef X
		NULL};

/* Of perf record --kcore, or of --threads: then samples are in files beside "data". */
static bool is_perf_directory(const char *path, bool *of_threads)
{
	_cleanup_close_ int directory = open(path, O_DIRECTORY | O_PATH | O_CLOEXEC);
	_cleanup_close_ int fd = openat(directory, "data", O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	*of_threads = directory >= 0 && !faccessat(directory, "data.0", F_OK, 0);

	return fd >= 0 && perf_data_probe(fd);
}

static int fail_directory(const char *path, struct failure *failure)
{
	bool of_threads;

	fail(failure, -EISDIR, "cannot read %s: it is a directory", path);
	if (is_perf_directory(path, &of_threads) && of_threads)
		return fail_remedy(failure, -EISDIR,
				   "it is of perf record --threads: perf script -i %s | sysprof "
				   "report -",
				   path);
	if (is_perf_directory(path, &of_threads))
		return fail_remedy(failure, -EISDIR, "perf's records are in %s/data", path);
	if (has_suffix(path, ".trace") || has_suffix(path, ".trace/"))
		return fail_remedy(failure, -EISDIR,
				   "if it is one of Instruments: xctrace export --input %s --xpath "
				   "'/trace-toc/*/data/table[@schema=\"time-profile\"]' | "
				   "inferno-collapse-xctrace >FILE",
				   path);
	return fail_remedy(failure, -EISDIR,
			   "to read an agent's windows: --service NAME --span '-1h' %s", path);
}

static int open_regular(const char *path, uint64_t *size, struct failure *failure)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st = {};

	if (fd < 0)
		return fail(failure, -errno, "cannot open %s: %s", path, strerror(errno));
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		if (S_ISDIR(st.st_mode))
			return fail_directory(path, failure);
		fail(failure, -ENOTSUP, "%s is not a regular file", path);
		return fail_remedy(failure, -ENOTSUP, "save it to a file first");
	}
	*size = (uint64_t)st.st_size;
	return fd;
}

/* At most the size when it was opened; read, not mapped, because a file may shrink meanwhile. */
static int read_bytes(int fd, const char *path, uint64_t size, struct bytes *bytes,
		      struct failure *failure)
{
	if (size > IMPORT_SIZE_MAX)
		return fail(failure, -E2BIG, "cannot read %s: it is larger than %llu GiB", path,
			    IMPORT_SIZE_MAX >> 30);
	bytes->data = malloc(size + 1);
	if (!bytes->data)
		return fail(failure, -ENOMEM, "cannot read %s: out of memory", path);
	while (bytes->size < size) {
		size_t step = size - bytes->size < READ_STEP ? size - bytes->size : READ_STEP;
		ssize_t got = pread_full(fd, bytes->data + bytes->size, step, bytes->size);

		if (got < 0)
			return fail(failure, (int)got, "cannot read %s: %s", path,
				    strerror((int)-got));
		bytes->size += (size_t)got;
		if ((size_t)got < step)
			break;
	}
	return 0;
}

static int fail_import(const char *path, int error, const struct import_failure *why,
		       struct failure *failure)
{
	if (!*why->what)
		return fail(failure, error, "cannot read %s: %s", path, strerror(-error));
	return fail(failure, error, "cannot read %s: byte %" PRIu64 ": %s", path, why->offset,
		    why->what);
}

/* What another tool's file has that is not in the profile. */
static int judge_rest(const char *path, const struct profile *profile, struct failure *failure)
{
	const char *rest = profile__meta(profile, META_NOT_READ);

	if (!rest)
		return 0;
	if (!profile->sample_count)
		return fail(failure, -EBADMSG, "cannot read %s: no sample is whole: %s", path,
			    rest);
	log_print(LOG_WARNING, "%s: not read: %s", path, rest);
	return 0;
}

#define NO_FILES SIZE_MAX /* none was searched */

static int name_addresses(struct profile_builder *builder, const struct input_options *options,
			  size_t *files, struct failure *failure)
{
	*files = NO_FILES;
	if (profile_builder__session(builder)->finished_symbols)
		return 0;
	return name_imported(builder, &options->replay.symbols, files, failure);
}

static void print_import_names(const char *path, size_t files, const struct profile *profile)
{
	struct figures figures;

	figures__init(&figures, profile);
	log_print(
		LOG_WARNING,
		"%s: addresses are named by files of this machine, %zu with the recorded build-id; "
		"%.1f %% of all have a name",
		path, files, 100 * figures.share[FIGURE_NAMED_SHARE]);
}

static int import_bytes(const char *path, const struct bytes *bytes, bool is_own,
			const struct input_options *options, struct input *input,
			struct failure *failure)
{
	const char *slash = strrchr(path, '/');
	struct import_request request = {
		.name = slash ? slash + 1 : path,
		.bytes = bytes->data,
		.size = bytes->size,
		.root = (enum import_root)options->root,
		.is_own = is_own,
		.process = options->process,
		.builder = profile_builder__new(),
	};
	struct import_failure why = {};
	char broken[256] = "";
	size_t files;
	int err = request.builder ? 0 : -ENOMEM;

	if (!err) {
		profile_builder__session(request.builder)->arguments = options->replay.arguments;
		err = import_profile(&request, &why);
	}
	if (err)
		fail_import(path, err, &why, failure);
	if (!err)
		err = name_addresses(request.builder, options, &files, failure);
	if (!err) {
		err = profile_builder__finish(request.builder, &input->profile, broken,
					      sizeof(broken));
		if (err)
			fail(failure, err, "cannot read %s: %s", path,
			     *broken ? broken : strerror(-err));
	}
	if (!err)
		err = judge_rest(path, input->profile, failure);
	if (err) {
		profile_builder__free(request.builder);
		return err;
	}
	input->builder = request.builder;
	if (files != NO_FILES)
		print_import_names(path, files, input->profile);
	return 0;
}

static int import_file(int fd, const char *path, uint64_t size, const struct input_options *options,
		       struct input *input, struct failure *failure)
{
	struct bytes bytes = {};
	int err = read_bytes(fd, path, size, &bytes, failure)
			  ?: import_bytes(path, &bytes, false, options, input, failure);

	free(bytes.data); /* the profile has what it needs */
	return err;
}

static int replay_file(int fd, const char *path, const struct replay_options *options,
		       struct input *input, struct failure *failure)
{
	struct recording_summary summary = {};
	int err = replay_recording(fd, path, options, &input->windows, &input->profile, &summary,
				   failure);

	if (!err)
		print_recording_notes(path, &summary, input->profile);
	return err;
}

/* perf itself uses any file of a mapping's name; here it is the file that was recorded, or none. */
static void print_perf_notes(const char *path, const struct perf_data_summary *summary,
			     const struct profile *profile)
{
	static const char *const kernel[] = {
		[PERF_KERNEL_ALIKE] =
			"kernel functions have the names of the running kernel, by host, release "
			"and address: the file has no build-id of its kernel",
		[PERF_KERNEL_OTHER] = "kernel functions have no names: another kernel runs here",
		[PERF_KERNEL_UNKNOWN] =
			"kernel functions have no names: the file lacks the build-id or the address of "
			"its kernel",
		[PERF_KERNEL_HIDDEN] =
			"kernel functions have no names: the kernel shows them to root alone",
	};
	struct figures figures;

	figures__init(&figures, profile);
	if (summary->bad_events)
		log_print(LOG_WARNING, "%s: %llu records invalid, skipped", path,
			  (unsigned long long)summary->bad_events);
	if (kernel[summary->kernel_names])
		log_print(LOG_WARNING, "%s: %s", path, kernel[summary->kernel_names]);
	log_print(LOG_WARNING, "%s: %.1f %% of the addresses resolved on this machine", path,
		  100 * figures.share[FIGURE_NAMED_SHARE]);
	print_matches(path, profile);
}

static int replay_perf_file(int fd, const char *path, const struct replay_options *options,
			    struct input *input, struct failure *failure)
{
	struct perf_data_summary summary = {};
	struct replay_options own = *options;
	struct copied_stacks *stacks;
	int err = copied_stacks__new(&stacks);

	if (err)
		return fail(failure, err, "cannot read %s: out of memory", path);
	own.walk = copied_stacks__walk;
	own.walker = stacks;
	err = replay_perf_data(fd, path, &own, &input->windows, &input->profile, &summary, failure)
		      ?: judge_rest(path, input->profile, failure);
	copied_stacks__free(stacks);

	if (!err)
		print_perf_notes(path, &summary, input->profile);
	return err;
}

static int read_file(int fd, const char *path, uint64_t size, const struct input_options *options,
		     struct input *input, struct failure *failure)
{
	if (recording_probe(fd))
		return replay_file(fd, path, &options->replay, input, failure);
	if (perf_data_probe(fd))
		return replay_perf_file(fd, path, &options->replay, input, failure);
	return import_file(fd, path, size, options, input, failure);
}

/* ---- filters --------------------------------------------------------------------------------- */

int input__take_clause(const struct given_option *o)
{
	return profile_filter__add(option_field(o, struct profile_filter),
				   (enum filter_kind)o->row->min, o->value, o->failure);
}

static bool is_file(const char *path)
{
	struct stat st;

	return !stat(path, &st) && !S_ISDIR(st.st_mode);
}

/* The @ before a slice: the last one behind the name of a file. NULL: there is none. */
static char *find_slice(char *path)
{
	for (char *at = path + strlen(path); (at = memrchr(path, '@', (size_t)(at - path)));) {
		bool found;

		*at = '\0';
		found = is_file(path);
		*at = '@';
		if (found)
			return at;
	}
	return NULL;
}

/* Cuts "@10s-20s" or "@NAME" off a file or standard input. The slice without its @, or NULL. */
static const char *cut_slice(char *path)
{
	bool is_standard = is_standard_input(path);
	char *at = !is_standard && !access(path, F_OK) ? NULL
		   : is_standard		       ? strchr(path, '@')
						       : find_slice(path);

	if (!at || (!is_standard && !at[1]))
		return NULL;
	*at = '\0';
	return at + 1;
}

int input__take_slice(char *path, struct profile_filter *filter, struct failure *failure)
{
	const char *slice = cut_slice(path);

	return slice ? profile_filter__add(filter, FILTER_SLICE, slice, failure) : 0;
}

/* If nothing is left: the clauses that dropped the samples. */
static void print_nothing_left(const char *name, const struct profile *p)
{
	struct figures figures;

	figures__init(&figures, p);
	if (p->sample_count || figures.value[FIGURE_LIVED])
		return;
	log_print(LOG_WARNING, "%s: the filter keeps none of its %llu samples", name,
		  (unsigned long long)figures.value[FIGURE_DROPPED_SAMPLES]);
	for (size_t i = 0; i < p->clause_count; i++)
		log_print(LOG_WARNING, "%s: dropped %llu by %s", name,
			  (unsigned long long)p->clauses[i].samples,
			  profile__string(p, p->clauses[i].text));
}

int input__filter(struct input *input, const char *name, const struct profile_filter *filter,
		  struct failure *failure)
{
	struct failure why = {};
	int err;

	if (!filter->count)
		return 0;
	err = profile_filter__apply(filter, input->profile, &input->filtered, &why);
	if (err)
		return fail(failure, err, "cannot take a part of %s: %s", name, why.what);
	input->profile = filtered__profile(input->filtered);
	print_nothing_left(name, input->profile);
	return 0;
}

int input__read(const char *name, const void *bytes, size_t size, struct input *input)
{
	const struct bytes read = {.data = (void *)bytes, .size = size};
	struct failure failure = {};
	struct input opened = {};
	int err = import_bytes(name, &read, true, &(struct input_options){}, &opened, &failure);

	if (err)
		print_failure(&failure);
	else
		*input = opened;
	return err;
}

/* All of a file. */
static int open_whole(const char *path, const struct input_options *options, struct input *input,
		      struct failure *failure)
{
	bool is_standard = is_standard_input(path);
	uint64_t size = 0;
	_cleanup_close_ int fd = is_standard ? standard_input__open(&size, failure)
					     : open_regular(path, &size, failure);
	int err;

	if (is_standard)
		path = STANDARD_INPUT;
	err = fd < 0 ? fd : read_file(fd, path, size, options, input, failure);
	if (!err && options->waits && !input->profile->visits.hz)
		err = fail(failure, -ENODATA, "%s has no waits: record with --wall -o FILE.sysprof",
			   path);
	return err;
}

int input__open(const char *path, const struct input_options *options, struct input *input)
{
	_cleanup_free_ char *file = strdup(path);
	struct profile_filter filter = {};
	struct failure failure = {};
	struct input opened = {};
	int err = file ? profile_filter__add_all(&filter, &options->filter, &failure)
				 ?: input__take_slice(file, &filter, &failure)
				 ?: open_whole(file, options, &opened, &failure)
				 ?: input__filter(&opened, path, &filter, &failure)
		       : fail(&failure, -ENOMEM, "cannot read %s: out of memory", path);

	profile_filter__fini(&filter);
	if (err) {
		input__close(&opened);
		print_failure(&failure);
		return err;
	}
	*input = opened;
	return 0;
}

void input__close(struct input *input)
{
	filtered__free(input->filtered);
	windows__free(input->windows);
	profile_builder__free(input->builder);
	profile_merge__free(input->merge);
	*input = (struct input){};
}

/* ---- several --------------------------------------------------------------------------------- */

int option_span(const struct given_option *o)
{
	return parse_time_span(o->value, realtime_ns(), option_field(o, struct time_span));
}

int inputs__service(const struct command *command, const struct profile_filter *filter,
		    const char **service)
{
	*service = NULL;
	for (size_t i = 0; i < filter->count; i++) {
		if (filter->clauses[i].kind != FILTER_SERVICE)
			continue;
		if (*service)
			return usage_error(command, "a span of time is of one --service; several "
						    "are a filter of files");
		*service = filter->clauses[i].text;
	}
	if (*service && strpbrk(*service, "*?"))
		return usage_error(command,
				   "--service %s: a span of time is of one service, by its name; "
				   "patterns are a filter of files",
				   *service);
	return 0;
}

int inputs__check(const struct command *command, struct input_options *options, char *const *paths,
		  size_t count)
{
	if (!count)
		return usage_error(command, "no input: give a recording or a profile");
	if (options->span.until && inputs__service(command, &options->filter, &options->service))
		return EXIT_USAGE;
	if (options->span.until && !options->service)
		return usage_error(command, "--service and --span need each other");
	if (options->service && count > 1)
		return usage_error(command, "--service needs one directory: that of an agent's "
					    "--sink dir:, or its spool");
	return standard_input__check(command, paths, count);
}

char *inputs__name(char *const *paths, size_t count, const struct input_options *options)
{
	char *name;

	if (options->service)
		return name_span(options->service, &options->span, &name) ? NULL : name;
	if (count == 1)
		return strdup(is_standard_input(paths[0]) ? STANDARD_INPUT : paths[0]);
	return asprintf(&name, "%zu files", count) < 0 ? NULL : name;
}

/* Device and inode; none of standard input and of what cannot be read. */
static void identify_file(const char *path, struct stat *file)
{
	_cleanup_free_ char *copy = strdup(path);

	*file = (struct stat){};
	if (!copy)
		return;
	cut_slice(copy);
	if (is_standard_input(copy) || stat(copy, file))
		*file = (struct stat){};
}

static int refuse_twice(const char *first, const char *second, const char *what,
			struct failure *failure)
{
	fail(failure, -EINVAL, "%s and %s cannot be one profile: they are the same %s", first,
	     second, what);
	return fail_remedy(failure, -EINVAL,
			   "give a file once, with one slice; sysprof diff compares two slices");
}

/* Losses and the account of samples are of a whole file: of two parts, they would count twice. */
static int check_files(char *const *paths, size_t count, struct failure *failure)
{
	_cleanup_free_ struct stat *files = calloc(count, sizeof(*files));

	if (!files)
		return fail(failure, -ENOMEM, "cannot read several files: out of memory");
	for (size_t i = 0; i < count; i++) {
		identify_file(paths[i], &files[i]);
		for (size_t k = 0; k < i; k++) {
			if (files[i].st_ino && files[i].st_ino == files[k].st_ino &&
			    files[i].st_dev == files[k].st_dev)
				return refuse_twice(paths[k], paths[i], "file", failure);
		}
	}
	return 0;
}

struct beginning {
	char boot_id[64];
	uint64_t start;
};

/*
 * A copy of a recording was made in the same boot, and begins at the same nanosecond. Slices of two
 * recordings may begin together, and files of other formats may be two parts of one.
 */
static int check_copies(char *const *paths, struct beginning *known, size_t count,
			const struct profile *p, struct failure *failure)
{
	const char *boot_id = profile__meta(p, META_BOOT_ID);

	if (!boot_id || p->is_slice || profile__meta(p, META_FORMAT))
		return 0;
	for (size_t i = 0; i < count; i++)
		if (known[i].start == p->start && !strcmp(known[i].boot_id, boot_id))
			return refuse_twice(paths[i], paths[count], "recording", failure);
	snprintf(known[count].boot_id, sizeof(known[count].boot_id), "%s", boot_id);
	known[count].start = p->start;
	return 0;
}

/* One file at a time is in memory. */
static int merge_files(struct profile_merge *merge, char *const *paths, size_t count,
		       const struct input_options *options, struct failure *failure)
{
	_cleanup_free_ struct beginning *known = calloc(count, sizeof(*known));
	int err = known ? check_files(paths, count, failure)
			: fail(failure, -ENOMEM, "cannot read several files: out of memory");

	for (size_t i = 0; i < count && !err; i++) {
		struct input input = {};

		err = input__open(paths[i], options, &input)
			      ?: check_copies(paths, known, i, input.profile, failure);
		if (!err)
			err = profile_merge__add(
				merge, is_standard_input(paths[i]) ? STANDARD_INPUT : paths[i],
				input.profile, failure);
		input__close(&input);
	}
	return err;
}

struct merging_windows {
	struct profile_merge *merge;
	const char *service;
};

static int merge_window(void *context, const struct service_window *window, const struct profile *p,
			struct failure *failure)
{
	const struct merging_windows *w = context;
	const struct merge_window merged = {
		.process = w->service,
		.is_alone = !window->process,
		.start = window->start,
		.length = window->length,
		.is_more = window->is_more,
	};

	return profile_merge__add_window(w->merge, window->path, p, &merged, failure);
}

static int merge_windows(struct profile_merge *merge, const char *directory,
			 const struct input_options *options, struct failure *failure)
{
	struct merging_windows context = {merge, options->service};
	struct service_windows *windows = NULL;
	int err = service_windows__list(directory, &windows, failure)
			  ?: service_windows__each(windows, options->service, &options->span,
						   merge_window, &context, failure);

	service_windows__free(windows);
	return err;
}

int inputs__filter_of_windows(const struct profile_filter *filter, struct profile_filter *rest,
			      struct failure *failure)
{
	int err = 0;

	for (size_t i = 0; i < filter->count && !err; i++)
		if (filter->clauses[i].kind != FILTER_SERVICE)
			err = profile_filter__add(rest, filter->clauses[i].kind,
						  filter->clauses[i].text, failure);
	return err;
}

/* All windows together. */
static int filter_windows(struct input *input, const struct input_options *options,
			  struct failure *failure)
{
	struct profile_filter rest = {};
	int err = inputs__filter_of_windows(&options->filter, &rest, failure)
			  ?: input__filter(input, options->service, &rest, failure);

	profile_filter__fini(&rest);
	return err;
}

int inputs__open(char *const *paths, size_t count, const struct input_options *options,
		 struct input *input)
{
	struct failure failure = {};
	struct input merged = {};
	int err;

	if (count == 1 && !options->service)
		return input__open(paths[0], options, input);
	if (options->service && options->waits) {
		fail(&failure, -ENODATA, "--wall does not read the windows of an agent");
		print_failure(&failure);
		return -ENODATA;
	}
	merged.merge = profile_merge__new();
	if (!merged.merge)
		err = fail(&failure, -ENOMEM, "cannot read several files: out of memory");
	else
		err = options->service ? merge_windows(merged.merge, paths[0], options, &failure)
				       : merge_files(merged.merge, paths, count, options, &failure);
	if (!err)
		err = profile_merge__finish(merged.merge, &merged.profile, &failure);
	if (!err && options->service)
		err = filter_windows(&merged, options, &failure);
	if (!err) {
		*input = merged;
		return 0;
	}
	if (*failure.what)
		print_failure(&failure);
	input__close(&merged);
	return err;
}

void print_left_out(const char *path, const struct export_left_out *left_out)
{
	if (left_out->names)
		log_print(LOG_WARNING, "%s: too much text: %llu names cut to %zu bytes", path,
			  (unsigned long long)left_out->names, left_out->name_size);
	if (left_out->idle_ticks)
		log_print(LOG_WARNING,
			  "%s: too many idle samples: each stands for up to %llu periods", path,
			  (unsigned long long)left_out->idle_ticks);
	if (left_out->length_divisor > 1)
		log_print(LOG_WARNING,
			  "%s: too much time for the format: lengths of samples, which have no "
			  "times, are divided by %llu",
			  path, (unsigned long long)left_out->length_divisor);
	if (left_out->jits)
		log_print(LOG_WARNING, "%s: %llu processes with JIT code are not listed", path,
			  (unsigned long long)left_out->jits);
}
