/* SPDX-License-Identifier: BSD-2-Clause */
/* The counters of a Firefox profile: the CPU time of each process. */
#ifndef EXPORT_FIREFOX_COUNTERS_H
#define EXPORT_FIREFOX_COUNTERS_H

struct firefox;

int firefox_write_counters(struct firefox *f);

#endif
