/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/recording_json.h"

#include "export/facts.h"
#include "export/gil.h"

static void write_books(const struct profile *p, const struct export_facts *facts,
			struct json_writer *w)
{
	json_key(w, "books");
	json_begin_object(w);
	if (facts->due_known)
		json_key_uint(w, "due", facts->due);
	else
		json_key_null(w, "due");
	for (unsigned int line = 0; line < BOOK_COUNT; line++)
		json_key_uint(w, book_line_name(line), facts->lines[line]);
	if (facts->due_known)
		json_key_int(w, "unexplained", profile__unexplained_ticks(p));
	else
		json_key_null(w, "unexplained");
	json_end_object(w);
}

/* Figures of the whole recording, of which this thread is a part. */
void write_recording(const struct profile *p, struct json_writer *w)
{
	struct export_facts facts;

	export_facts__init(&facts, p);
	json_key(w, "recording");
	json_begin_object(w);
	json_key_uint(w, "startTime", p->start / 1000);
	json_key_uint(w, "endTime", p->end / 1000);
	json_key_uint(w, "samples", p->sample_count);
	json_key_string(w, "clock", p->tsc_khz ? "tsc" : "monotonic");
	json_key_uint(w, "tscKhz", p->tsc_khz);
	json_key_uint(w, "clockErrorNs", p->clock_error_ns);
	json_key_bool(w, "cutShort", p->cut_short);
	json_key(w, "completeStackShare");
	json_fixed(w, profile__complete_share(p), 6);
	json_key(w, "stackEnds");
	json_begin_object(w);
	for (unsigned int end = 0; end < STACK_END_COUNT; end++)
		json_key_uint(w, stack_end_name(end), p->stack_ends[end]);
	json_end_object(w);
	json_key(w, "framesFound");
	json_begin_object(w);
	for (unsigned int kind = FRAME_IP; kind < FRAME_KIND_COUNT; kind++)
		json_key_uint(w, frame_kind_name(kind), p->frames_found[kind]);
	json_end_object(w);
	json_key(w, "namedShare");
	json_fixed(w, profile__named_share(p), 6);
	if (p->inlined_left_out)
		json_key_uint(w, "inlinedLeftOut", p->inlined_left_out);
	write_outside(p, w);
	write_jits(p, w);
	write_runtimes(p, w);
	write_gils(p, w);
	write_books(p, &facts, w);
	json_key(w, "lost");
	json_begin_object(w);
	json_key_uint(w, "samples", p->lost[LOST_SAMPLES]);
	json_key_uint(w, "sideband", p->lost[LOST_SIDEBAND]);
	json_key_uint(w, "late", p->lost[LOST_LATE]);
	json_key_uint(w, "recordingChunks", p->lost[LOST_RECORDING]);
	json_end_object(w);
	json_end_object(w);
}
