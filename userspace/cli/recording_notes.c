/* SPDX-License-Identifier: BSD-2-Clause */
/* Warnings about a recording, one line each. */
#include "cli/recording_notes.h"

#include "base/log.h"

void print_recording_notes(const char *path, const struct recording_summary *summary,
			   const struct profile *profile)
{
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
	if (profile__meta(profile, META_LINES_MISSING))
		log_print(LOG_WARNING, "%s: lines are missing: %s", path,
			  profile__meta(profile, META_LINES_MISSING));
	if (!summary->has_symbols)
		log_print(
			LOG_WARNING,
			"%s: no symbols in the recording; %.1f %% of the addresses resolved on this machine",
			path, 100 * profile__named_share(profile));
}
