/* SPDX-License-Identifier: BSD-2-Clause */
/* From -o arguments to files: choose the format, write under temporary names, rename all. */
#include "cli/outputs.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/gzip.h"
#include "base/order.h"
#include "base/suffix.h"
#include "base/vec.h"
#include "cli/give_up.h"
#include "cli/inputs.h"
#include "formats/out/exporters.h"

#define RECORDING_NAME	 "sysprof"
#define RECORDING_SUFFIX ".sysprof"
#define SIBLING_SHARE	 100 /* threads with at least 1/100 of the samples get their own file */

const char *const outputs_merge_words[] = {
	[MERGE_NONE] = "none", [MERGE_PROCESS] = "process", NULL};

/* ---- arguments ------------------------------------------------------------------------------- */

/* FORMAT:PATH, or PATH, whose suffix selects the format; a path may have a colon, too. */
static int parse_output(const char *argument, struct output *output, struct failure *failure)
{
	const char *colon = strchr(argument, ':'), *slash = strchr(argument, '/');
	const char *path = argument, *why;

	*output = (struct output){};
	if (colon && (!slash || colon < slash)) {
		_cleanup_free_ char *name = strndup(argument, colon - argument);

		if (!name)
			return fail(failure, -ENOMEM, "-o %s: out of memory", argument);
		output->exporter = exporter_by_name(name);
		if (output->exporter || !strcmp(name, RECORDING_NAME))
			path = colon + 1;
	}
	if (path == argument && !strcmp(argument, "-"))
		return fail(failure, -EINVAL,
			    "-o -: standard output needs a format, as in folded:-");
	if (path == argument && !has_suffix(argument, RECORDING_SUFFIX)) {
		output->exporter = exporter_for_path(argument, &why);
		if (!output->exporter)
			return fail(failure, -EINVAL, "-o %s: %s", argument, why);
	}
	if (!*path)
		return fail(failure, -EINVAL, "-o %s: empty file name", argument);
	output->path = strdup(path);
	return output->path ? 0 : fail(failure, -ENOMEM, "-o %s: out of memory", argument);
}

static int add(struct outputs *outputs, const char *argument, struct failure *failure)
{
	struct output output;
	int err = parse_output(argument, &output, failure);

	if (err)
		return err;
	for (size_t i = 0; i < outputs->count; i++) {
		if (!strcmp(outputs->data[i].path, output.path))
			err = fail(failure, -EINVAL, "-o %s given twice", argument);
		else if (!output.exporter && !outputs->data[i].exporter)
			err = fail(failure, -EINVAL, "-o %s: only one .sysprof output is possible",
				   argument);
	}
	if (!err && vec_push(outputs, output))
		err = fail(failure, -ENOMEM, "-o %s: out of memory", argument);
	if (err)
		free(output.path);
	return err;
}

int outputs__take(const struct given_option *o)
{
	return add(option_field(o, struct outputs), o->value, o->failure);
}

int outputs__add_default(struct outputs *outputs, const char *name, struct failure *failure)
{
	int err = add(outputs, name, failure);

	if (!err)
		outputs->data[outputs->count - 1].name = OUTPUT_CHOSEN;
	return err;
}

void outputs__fini(struct outputs *outputs)
{
	for (size_t i = 0; i < outputs->count; i++) {
		output_place__free(outputs->data[i].place);
		free(outputs->data[i].path);
	}
	free(outputs->data);
	*outputs = (struct outputs){};
}

const char *outputs__recording(const struct outputs *outputs)
{
	for (size_t i = 0; i < outputs->count; i++)
		if (!outputs->data[i].exporter)
			return outputs->data[i].path;
	return NULL;
}

bool outputs__have_code(const struct outputs *outputs)
{
	return any_of(outputs->data, outputs->count, output,
		      !output->exporter || output->exporter->has_code);
}

static void warn_of_other_name(const char *wanted, const char *path)
{
	log_print(LOG_WARNING, "%s is a directory: wrote %s", wanted, path);
}

void outputs__recording_is_at(struct outputs *outputs, char *path)
{
	for (size_t i = 0; i < outputs->count; i++) {
		struct output *output = &outputs->data[i];

		if (output->exporter)
			continue;
		warn_of_other_name(output->path, path);
		free(output->path);
		output->path = path;
		return;
	}
	free(path);
}

/* ---- places ---------------------------------------------------------------------------------- */

static int cannot_create(const char *path, int err, struct failure *failure)
{
	fail(failure, err, "cannot create %s: %s", path, strerror(-err));
	if (err == -EACCES)
		return fail_remedy(failure, err,
				   "choose another path with -o (in a world-writable directory, "
				   "links and pipes of other users are not used)");
	return fail_remedy(failure, err, "create the directory, or choose another path with -o");
}

/* Each directory once. */
static void warn_of_shared(const struct outputs *outputs)
{
	for (size_t i = 0; i < outputs->count; i++) {
		const char *shared = output_place__shared(outputs->data[i].place);
		bool named = false;

		for (size_t j = 0; shared && j < i && !named; j++) {
			const char *before = output_place__shared(outputs->data[j].place);

			named = before && !strcmp(before, shared);
		}
		if (shared && !named)
			log_print(
				LOG_WARNING,
				"other users can replace files in %s: choose a directory of your own with -o",
				strcmp(shared, ".") ? shared : "the current directory");
	}
}

/* Decide where each file goes, if that was not done yet. */
static int open_places(struct outputs *outputs, struct failure *failure)
{
	bool any = false;

	for (size_t i = 0; i < outputs->count; i++) {
		struct output *output = &outputs->data[i];
		int err;

		if (output->place)
			continue;
		err = output_place__open(output->path, output->name, &output->place);
		if (err)
			return cannot_create(output->path, err, failure);
		any = true;
	}
	if (any)
		warn_of_shared(outputs);
	return 0;
}

int outputs__check(struct outputs *outputs, struct failure *failure)
{
	int err = open_places(outputs, failure);

	for (size_t i = 0; i < outputs->count && !err; i++) {
		struct output_file *file;

		if (output_place__is_stream(outputs->data[i].place))
			continue;
		err = output_file__open_at(outputs->data[i].place, &file);
		if (err)
			return cannot_create(outputs->data[i].path, err, failure);
		output_file__abort(file);
	}
	return err;
}

/* ---- writing --------------------------------------------------------------------------------- */

bool outputs__are_compressed(const struct exporter *exporter, const char *path)
{
	return exporter->may_gzip && has_suffix(path, ".gz");
}

int outputs__write_format(const struct exporter *exporter, struct export_request request, bool gzip,
			  FILE *out, uint64_t *size)
{
	int err;

	request.out = gzip ? gzip_writer(out, size) : out;
	if (!request.out)
		return -errno;
	err = exporter->write(&request);
	if (!gzip)
		*size = ftello(out) > 0 ? (uint64_t)ftello(out) : 0;
	else if (fclose(request.out) && !err)
		err = -errno;
	return err;
}

static void log_export(const struct written_file *file, const char *path, uint64_t ns)
{
	struct stat st;

	if (!fstat(output_file__fd(file->file), &st) && S_ISREG(st.st_mode))
		log_debug(LOG_EXPORT, "%s: %s written: %lld bytes in %.3f s", path,
			  file->exporter->name, (long long)st.st_size, ns / 1e9);
	else
		log_debug(LOG_EXPORT, "%s: %s written in %.3f s", path, file->exporter->name,
			  ns / 1e9);
}

static int write_one(struct written_files *written, const struct exporter *exporter,
		     const struct export_request *request, const struct output_place *place,
		     const char *path, struct failure *failure)
{
	struct written_file file = {.exporter = exporter};
	char temporary[PATH_MAX];
	uint64_t begin = monotonic_ns(), size = 0;
	struct export_left_out left_out = {};
	struct export_request own = *request;
	const char *problem;
	FILE *out;
	int err = output_file__open_at(place, &file.file);

	if (err)
		return fail(failure, err, "cannot create %s: %s", path, strerror(-err));
	if (!output_file__temporary(file.file, temporary, sizeof(temporary)))
		give_up__remember_file(temporary);
	file.path = strdup(path);
	err = file.path ? vec_push(written, file) : -ENOMEM;
	if (err) {
		free(file.path);
		output_file__abort(file.file);
		return fail(failure, err, "cannot write %s: %s", path, strerror(-err));
	}
	out = output_file__stream(file.file);
	errno = 0;
	own.left_out = &left_out;
	err = outputs__write_format(exporter, own, outputs__are_compressed(exporter, path), out,
				    &size);
	if (!err && (fflush(out) || ferror(out)))
		err = errno ? -errno : -EIO;
	if (err && output_file__error(file.file))
		err = output_file__error(file.file);
	if (err)
		return fail(failure, err, "cannot write %s: %s", path, strerror(-err));
	problem = export_size_problem(exporter, size);
	if (problem)
		log_print(LOG_WARNING, "%s: %s", path, problem);
	print_left_out(path, &left_out);
	if (log_debug_wanted)
		log_export(&file, path, monotonic_ns() - begin);
	return 0;
}

static uint64_t cpu_samples(const struct profile_thread *thread)
{
	return thread->samples[SAMPLE_CPU].tick_sum;
}

/*
 * The samples of each file of a format with one thread a file, by thread. A file of a whole process
 * is that of its first thread with samples. 0: no file. NULL: no memory.
 */
static uint64_t *samples_of_files(const struct profile *profile, enum merge_choice merge)
{
	uint64_t *samples = calloc(profile->thread_count, sizeof(*samples));
	_cleanup_free_ uint32_t *first = calloc(profile->process_count, sizeof(*first));

	if (!samples || !first) {
		free(samples);
		return NULL;
	}
	for (uint32_t i = 1; i < profile->thread_count; i++) {
		const struct profile_thread *thread = &profile->threads[i];
		uint32_t *file = &first[thread->process.v];

		if (!cpu_samples(thread))
			continue;
		if (!*file || merge == MERGE_NONE)
			*file = i;
		samples[*file] += cpu_samples(thread);
	}
	return samples;
}

/*
 * NAME.<pid>-<tid>[-n].cpuprofile beside NAME.cpuprofile, or NAME.<pid>[-n].cpuprofile of a whole
 * process; n numbers further lives of the ids.
 */
static int sibling_path(const struct output *output, const struct profile *profile,
			const uint64_t *samples, uint32_t file, enum merge_choice merge,
			char **sibling)
{
	const char *slash = strrchr(output->path, '/');
	const char *dot = strrchr(slash ? slash : output->path, '.');
	const char *end = dot ? dot : "";
	int stem = strlen(output->path) - strlen(end);
	uint32_t tid = profile->threads[file].tid;
	uint32_t pid = profile->processes[profile->threads[file].process.v].pid;
	char thread[32] = "", suffix[32] = "";
	unsigned int life = 1;
	int n;

	for (uint32_t i = 1; i < file; i++)
		if ((merge || profile->threads[i].tid == tid) && samples[i] &&
		    profile->processes[profile->threads[i].process.v].pid == pid)
			life++;
	if (!merge)
		snprintf(thread, sizeof(thread), "-%u", tid);
	if (life > 1)
		snprintf(suffix, sizeof(suffix), "-%u", life);
	n = asprintf(sibling, "%.*s.%u%s%s%s", stem, output->path, pid, thread, suffix, end);
	return n < 0 ? -ENOMEM : 0;
}

/* Of a tid's lives the one with the most samples; 0: none has any. */
static uint32_t thread_by_tid(const struct profile *profile, uint32_t tid)
{
	uint32_t found = 0;

	for (uint32_t i = 1; i < profile->thread_count; i++)
		if (profile->threads[i].tid == tid &&
		    (!found ||
		     cpu_samples(&profile->threads[i]) > cpu_samples(&profile->threads[found])))
			found = i;
	return found;
}

static int write_sibling(struct written_files *written, const struct output *output,
			 const struct export_request *request, const uint64_t *samples,
			 struct failure *failure)
{
	const struct profile *profile = request->profile;
	_cleanup_free_ char *path = NULL;
	struct output_place *place;
	const char *slash;
	int err = sibling_path(output, profile, samples, request->thread.v,
			       request->merge_threads ? MERGE_PROCESS : MERGE_NONE, &path);

	if (err)
		return fail(failure, err, "cannot name a file for thread %u: out of memory",
			    profile->threads[request->thread.v].tid);
	slash = strrchr(path, '/');
	err = output_place__beside(output->place, slash ? slash + 1 : path, &place);
	if (err)
		return fail(failure, err, "cannot create %s: %s", path, strerror(-err));
	err = write_one(written, output->exporter, request, place, path, failure);
	output_place__free(place);
	if (!err)
		written->data[written->count - 1].sibling = true;
	return err;
}

static int write_siblings(struct written_files *written, const struct output *output,
			  struct export_request request, const uint64_t *samples,
			  struct failure *failure)
{
	const struct profile *profile = request.profile;
	uint32_t chosen = request.thread.v;
	int err = 0;

	written->threads_left_out = 0;
	for (uint32_t i = 1; i < profile->thread_count && !err; i++) {
		if (i == chosen || !samples[i])
			continue;
		if (samples[i] * SIBLING_SHARE < profile->sample_count) {
			written->threads_left_out++;
			continue;
		}
		request.thread.v = i;
		err = write_sibling(written, output, &request, samples, failure);
	}
	return err;
}

/* The thread of the file under the name that was given; 0: there is none. */
static uint32_t choose_thread(const struct profile *profile, const struct outputs *outputs,
			      const uint64_t *samples)
{
	uint32_t busiest = 0;

	if (outputs->thread)
		return thread_by_tid(profile, outputs->thread);
	if (outputs->merge_threads == MERGE_NONE)
		return export_busiest_thread(profile).v;
	for (uint32_t i = 1; i < profile->thread_count; i++)
		if (samples[i] > samples[busiest])
			busiest = i;
	return busiest;
}

static int write_output(struct written_files *written, const struct output *output,
			const struct profile *profile, const struct outputs *outputs,
			struct failure *failure)
{
	struct export_request request = {.profile = profile,
					 .lines = outputs->lines,
					 .waits = outputs->waits,
					 .parked = outputs->parked};
	_cleanup_free_ uint64_t *samples = NULL;
	int err;

	if (!output->exporter->one_thread)
		return write_one(written, output->exporter, &request, output->place, output->path,
				 failure);
	samples = samples_of_files(profile, outputs->merge_threads);
	if (!samples)
		return fail(failure, -ENOMEM, "cannot write %s: out of memory", output->path);
	request.merge_threads = outputs->merge_threads == MERGE_PROCESS;
	request.thread.v = choose_thread(profile, outputs, samples);
	if (outputs->thread && !request.thread.v)
		return fail(failure, -ESRCH, "--thread %u: no such thread in the recording",
			    outputs->thread);
	err = write_one(written, output->exporter, &request, output->place, output->path, failure);
	if (err || outputs->thread || output_place__is_stream(output->place))
		return err;
	return write_siblings(written, output, request, samples, failure);
}

/* Bytes of a name before its suffix. */
static size_t stem_size(const struct exporter *exporter, const char *name)
{
	const char *dot = strrchr(name, '.');
	size_t size = strlen(name), longest = 0;

	for (const char *const *suffix = exporter->suffixes; *suffix; suffix++)
		if (has_suffix(name, *suffix) && strlen(*suffix) > longest)
			longest = strlen(*suffix);
	if (longest)
		return size - longest;
	return dot ? (size_t)(dot - name) : size;
}

/* A directory of that name was made meanwhile: that is no reason to lose the recording. */
static int put_elsewhere(struct written_file *file)
{
	_cleanup_free_ char *path = output_file__path(file->file);
	const char *slash = path ? strrchr(path, '/') : NULL;
	char *other;
	int err;

	if (!path)
		return -ENOMEM;
	err = output_file__finish_otherwise(file->file,
					    stem_size(file->exporter, slash ? slash + 1 : path));
	if (err)
		return err;
	other = output_file__path(file->file);
	if (!other)
		return -ENOMEM;
	warn_of_other_name(file->path, other);
	free(file->path);
	file->path = other;
	return 0;
}

static int put_into_place(struct written_file *file, struct failure *failure)
{
	int err = output_file__finish(file->file);

	if (err == -EISDIR)
		err = put_elsewhere(file);
	if (err)
		return fail(failure, err, "cannot finish %s: %s", file->path, strerror(-err));
	file->in_place = true;
	return 0;
}

/*
 * Rename everything into place. What was renamed before a failure is taken away again: a set of
 * files that do not belong together is worse than none.
 */
static int commit_all(struct written_files *written, struct failure *failure)
{
	int err = 0;

	for (size_t i = 0; i < written->count && !err; i++)
		err = put_into_place(&written->data[i], failure);
	for (size_t i = 0; i < written->count && err; i++)
		if (written->data[i].in_place)
			output_file__take_back(steal_ptr(written->data[i].file));
	return err;
}

int outputs__write(struct outputs *outputs, const struct profile *profile,
		   struct written_files *written, struct failure *failure)
{
	int err;

	*written = (struct written_files){};
	err = open_places(outputs, failure);
	for (size_t i = 0; i < outputs->count && !err; i++)
		if (outputs->data[i].exporter)
			err = write_output(written, &outputs->data[i], profile, outputs, failure);
	if (!err)
		err = commit_all(written, failure);
	for (size_t i = 0; i < written->count; i++)
		output_file__abort(steal_ptr(written->data[i].file));
	give_up__forget_files();
	if (err)
		written_files__fini(written);
	return err;
}

bool written_files__left_out(const struct written_files *written, bool merged,
			     char text[LEFT_OUT_SIZE])
{
	size_t count = written->threads_left_out;
	const char *what = merged ? (count == 1 ? "process" : "processes")
				  : (count == 1 ? "thread" : "threads");

	snprintf(
		text, LEFT_OUT_SIZE,
		"no files for %zu %s with less than 1 %% of the samples: --%s writes one, -o FILE.trace.json all",
		count, what, merged ? "process PID" : "thread TID");
	return count;
}

void written_files__fini(struct written_files *written)
{
	vec_free_with(written, file, free(file->path));
	*written = (struct written_files){};
}
