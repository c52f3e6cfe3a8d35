/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/early_functions.h"

#include "base/hashmap.h"

#define TURNS_MAX 3u

static void note(struct early_functions *f, const struct sample_event *sample,
		 const struct frame_note *note)
{
	uint64_t hash = hash_combine(hash_u64(note->function), hash_u64(note->check));

	hash = hash_combine(hash, hash_u64(sample->tgid));
	f->functions[hash & (EARLY_FUNCTIONS - 1)] = (struct early_function){
		.pid = sample->tgid,
		.question = {.function = note->function,
			     .check = note->check,
			     .time = sample->header.time,
			     .kind = note->kind},
	};
	f->any = true;
}

void early_functions__note(struct early_functions *f, const struct note_table *table,
			   const struct sample_event *sample)
{
	const struct frame_note *notes = sample_notes(sample);

	if (sample->header.flags & EVENT_STACK_COPY)
		return;
	for (size_t i = 0; i < sample->notes; i++)
		if (table->of[notes[i].kind] && table->of[notes[i].kind]->is_inherited &&
		    notes[i].function && notes[i].check)
			note(f, sample, &notes[i]);
}

int early_functions__take(struct early_functions *f, early_function_fn take, void *context)
{
	bool any = f->any;
	int err = 0;

	f->any = false;
	for (size_t i = 0; any && i < EARLY_FUNCTIONS && err >= 0; i++) {
		struct early_function *function = &f->functions[i];

		if (!function->pid)
			continue;
		err = take(context, function);
		if (err == EARLY_STILL && ++function->turns < TURNS_MAX)
			f->any = true;
		else
			function->pid = 0;
	}
	return err < 0 ? err : 0;
}
