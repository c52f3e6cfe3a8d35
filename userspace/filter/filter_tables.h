/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of what is left. */
#ifndef FILTER_FILTER_TABLES_H
#define FILTER_FILTER_TABLES_H

struct apply;

/* Clips all times to the slice, drops unused rows of tables, renumbers, and adds up. */
void profile_filter__tables(struct apply *a);

#endif
