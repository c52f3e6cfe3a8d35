/* SPDX-License-Identifier: BSD-2-Clause */
/* From what was mapped to a dso of the profile. */
#ifndef PROCESS_DSO_TABLE_H
#define PROCESS_DSO_TABLE_H

#include <sysprof/event.h>
#include <sysprof/profile_builder.h>

struct dso_table {
	struct profile_builder *builder; /* not owned */
	struct dso_id kernel, unknown;	 /* made when first asked for */
};

void dso_table__init(struct dso_table *table, struct profile_builder *builder);

/* 0 where memory ran out; the builder remembers that. */
struct dso_id dso_table__of_mapping(struct dso_table *table, const struct mmap_event *event);
struct dso_id dso_table__kernel(struct dso_table *table);
struct dso_id dso_table__unknown(struct dso_table *table);

enum dso_kind dso_table__kind(const struct dso_table *table, struct dso_id id);

/* The category of code in a dso. */
enum profile_category dso_table__category(const struct dso_table *table, struct dso_id id);

#endif
