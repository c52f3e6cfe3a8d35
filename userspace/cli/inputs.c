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
#include "base/io.h"
#include "base/log.h"
#include "cli/summary.h"
#include "formats/in/import.h"
#include "formats/out/describe.h"
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
	for (unsigned int id = FIGURE_LEFT_OUT; id < FIGURE_LEFT_OUT_END; id++)
		if (figures__is_loss(&figures, id))
			log_print(LOG_WARNING, "%s: %llu %s left out: more than any program has",
				  path, (unsigned long long)figures.value[id],
				  figure_table[id].text);
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

static int open_regular(const char *path, uint64_t *size, struct failure *failure)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st = {};

	if (fd < 0)
		return fail(failure, -errno, "cannot open %s: %s", path, strerror(errno));
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		if (S_ISDIR(st.st_mode))
			return fail(failure, -EISDIR, "cannot read %s: it is a directory", path);
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

static int import_bytes(const char *path, const struct bytes *bytes, bool is_own,
			enum import_root root, struct input *input, struct failure *failure)
{
	const char *slash = strrchr(path, '/');
	struct import_request request = {
		.name = slash ? slash + 1 : path,
		.bytes = bytes->data,
		.size = bytes->size,
		.root = root,
		.is_own = is_own,
		.builder = profile_builder__new(),
	};
	struct import_failure why = {};
	char broken[256] = "";
	int err = request.builder ? import_profile(&request, &why) : -ENOMEM;

	if (err)
		fail_import(path, err, &why, failure);
	if (!err) {
		err = profile_builder__finish(request.builder, &input->profile, broken,
					      sizeof(broken));
		if (err)
			fail(failure, err, "cannot read %s: %s", path,
			     *broken ? broken : strerror(-err));
	}
	if (!err)
		err = judge_rest(path, input->profile, failure);
	if (err)
		profile_builder__free(request.builder);
	else
		input->builder = request.builder;
	return err;
}

static int import_file(int fd, const char *path, uint64_t size, enum import_root root,
		       struct input *input, struct failure *failure)
{
	struct bytes bytes = {};
	int err = read_bytes(fd, path, size, &bytes, failure)
			  ?: import_bytes(path, &bytes, false, root, input, failure);

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
	else
		input__close(input);
	return err;
}

static int read_file(int fd, const char *path, uint64_t size, const struct input_options *options,
		     struct input *input, struct failure *failure)
{
	if (recording_probe(fd))
		return replay_file(fd, path, &options->replay, input, failure);
	if (perf_data_probe(fd))
		return replay_perf_file(fd, path, &options->replay, input, failure);
	return import_file(fd, path, size, (enum import_root)options->root, input, failure);
}

int input__read(const char *name, const void *bytes, size_t size, struct input *input)
{
	const struct bytes read = {.data = (void *)bytes, .size = size};
	struct failure failure = {};
	struct input opened = {};
	int err = import_bytes(name, &read, true, IMPORT_ROOT_AUTO, &opened, &failure);

	if (err)
		print_failure(&failure);
	else
		*input = opened;
	return err;
}

int input__open(const char *path, const struct input_options *options, struct input *input)
{
	struct failure failure = {};
	struct input opened = {};
	uint64_t size = 0;
	_cleanup_close_ int fd = open_regular(path, &size, &failure);
	int err = fd < 0 ? fd : 0;

	if (!err)
		err = read_file(fd, path, size, options, &opened, &failure);
	if (!err && options->waits && !opened.profile->visits.hz) {
		err = fail(&failure, -ENODATA,
			   "%s has no waits: record with --wall -o FILE.sysprof", path);
		input__close(&opened);
	}
	if (err) {
		print_failure(&failure);
		return err;
	}
	*input = opened;
	return 0;
}

void input__close(struct input *input)
{
	windows__free(input->windows);
	profile_builder__free(input->builder);
	*input = (struct input){};
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
	if (left_out->jits)
		log_print(LOG_WARNING, "%s: %llu processes with JIT code are not listed", path,
			  (unsigned long long)left_out->jits);
}
