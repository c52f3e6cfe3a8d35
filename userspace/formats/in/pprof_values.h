/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which of a pprof file's values are samples, CPU time and events, and what is a tick.
 *
 * Shares are of CPU time where a file has it. Its values are ticks if the period divides all of
 * them; its counts are, if they are in proportion to it, or if the file is ours; else CPU time is
 * what its samples count (profile.event). Without counts and such a period nothing says how many
 * samples there were (profile.uncounted): then ticks are CPU time in the largest unit that divides
 * all values. The file's default_sample_type goes before CPU time: if it is neither a count of
 * samples nor CPU time, it is the event that the samples are of. Other types are none, unless the
 * samples were taken by it. Time by the clock (wall) is no CPU time, but an event; without counts
 * it is the weight.
 */
#ifndef FORMATS_IN_PPROF_VALUES_H
#define FORMATS_IN_PPROF_VALUES_H

#include "formats/in/pprof_message.h"

/* After the tables were read: chooses, and sets the event of the session. */
int pprof_values__choose(struct pprof *p);

/* The weight, ticks and events of a sample. */
int pprof_values__take(struct pprof *p, const struct wire *w, struct profile_sample *row);

#endif
