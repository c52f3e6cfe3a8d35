/* SPDX-License-Identifier: BSD-2-Clause */
/* The counters of a Firefox profile: the CPU time of each process. */
#ifndef FORMATS_OUT_FIREFOX_COUNTERS_H
#define FORMATS_OUT_FIREFOX_COUNTERS_H

struct firefox;

int firefox_write_counters(struct firefox *f);

#endif
