/* SPDX-License-Identifier: BSD-2-Clause */
/* Warnings about a recording, one line each. */
#include "cli/recording_notes.h"

#include "base/log.h"
#include "base/outside_books.h"
#include "export/describe.h"

/* By what the files of this machine were taken for those of the recording. */
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
		"%s: names are from files of this machine: %zu by the build-id, %zu by device and inode "
		"alone; %zu not found",
		path, by_build_id, by_inode, missing);
}

void print_recording_notes(const char *path, const struct recording_summary *summary,
			   const struct profile *profile)
{
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
	for (size_t i = 0; i < profile->outside_count; i++) {
		char text[OUTSIDE_TEXT_SIZE];

		describe_outside(text, sizeof(text), &profile->outside[i]);
		log_print(LOG_WARNING, "%s: left out: %s", path, text);
	}
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
