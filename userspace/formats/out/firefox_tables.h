/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FORMATS_OUT_FIREFOX_TABLES_H
#define FORMATS_OUT_FIREFOX_TABLES_H

#include <stdint.h>

#include <sysprof/profile.h>

struct firefox_tables;
struct json_writer;
struct tracks;

/* Collect what the samples of these threads need. 0, -ENOMEM, -EOVERFLOW (more than 2^32 rows). */
int firefox_tables__init(struct firefox_tables *t, const struct profile *p,
			 const struct tracks *tracks);
void firefox_tables__fini(struct firefox_tables *t);

/* The row of a whole stack in the stack table: its innermost node. */
uint32_t firefox_tables__stack(const struct firefox_tables *t, struct stack_id stack);

/* The number of our own text in the string array; it must outlive the tables. 0, -ENOMEM. */
int firefox_tables__text(struct firefox_tables *t, const char *text, uint32_t *number);

/* … of a string of the profile. */
int firefox_tables__string(struct firefox_tables *t, struct string_id id, uint32_t *number);

void firefox_tables__write_libs(const struct firefox_tables *t, struct json_writer *w);
void firefox_tables__write_shared(const struct firefox_tables *t, struct json_writer *w);

/* A JavaScript number can hold a kernel address exactly without its sign bits. */
#define FIREFOX_ADDRESS_MASK ((1ULL << 47) - 1)

/*
 * Where a library begins with each code of a JIT compiler, by index in the profile: several versions can
 * have had one address, so the library has them one behind the other. Of other code the number is 0.
 * NULL: no memory.
 */
uint64_t *firefox_jit_places(const struct profile *p);

/* How the file identifies a library; "": by its name alone. */
#define FIREFOX_DEBUG_ID_SIZE 34
void firefox_debug_id(const struct profile *p, struct dso_id dso, char id[FIREFOX_DEBUG_ID_SIZE]);

#endif
