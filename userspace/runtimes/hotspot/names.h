/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names and lines of HotSpot's methods: of compiled ones with those that are inlined at an address, of interpreted ones by
 * the two words that a frame has of them (Method*, the address of the bytecode).
 *
 * A method is called what HotSpot calls it in a perf map, "void a.b.Outer.run(int, java.lang.String[])", but that of hidden
 * classes the address in the name is left out, since otherwise every run has other names. Offsets of managed_function's rows
 * are bytecode indices.
 */
#ifndef RUNTIMES_HOTSPOT_NAMES_H
#define RUNTIMES_HOTSPOT_NAMES_H

#include <sysprof/event.h>

#include "runtimes/hotspot/heap.h"
#include "runtimes/managed_function.h"

/* Identity of a method: its class may be unloaded, and both be of something else then. */
struct hotspot_method {
	uint64_t method, const_method;
	uint64_t pool;	    /* ConstantPool* */
	uint32_t code_size; /* bytes of bytecode */
	uint16_t name_index;
	uint16_t signature_index; /* 0: not known */
	bool has_lines;
};

/* 0; -ENODATA: it is no method; else as reading fails. */
int hotspot_method__read(const struct hotspot_layout *layout, struct target_memory *memory,
			 uint64_t method, struct hotspot_method *m);
/* `f` is the caller's, empty, and has to be freed even if this fails. 0, -ENODATA, -ENOMEM, or as reading fails. */
int hotspot_method__describe(const struct hotspot_layout *layout, struct target_memory *memory,
			     const struct hotspot_method *m, struct managed_function *f);
/* Is what is there now what was sampled? */
enum code_state hotspot_method__check(const struct hotspot_layout *layout,
				      struct target_memory *memory, const struct hotspot_method *m);

/* ---- what is inlined ------------------------------------------------------------------------- */

#define HOTSPOT_SCOPES_MAX 128u

struct hotspot_scope {
	uint64_t method; /* Method* */
	int32_t index;	 /* of the bytecode; -1: not known */
};

/*
 * Innermost first. The JVM describes few places: calls that may stop there, polls. Between two of them the scopes are those of the
 * one that is run next, of which those are sure that the one before has as well.
 */
struct hotspot_chain {
	struct hotspot_scope scopes[HOTSPOT_SCOPES_MAX];
	unsigned int count;
	unsigned int sure; /* of the outermost */
	bool is_cut;	   /* there are more, or they are not to be read */
};

/*
 * The methods at an address in an nmethod: the place that the innermost frame is at, or the byte before a return address,
 * because what is described behind it is what returns there. Where nothing is known of the address it is the nmethod's own
 * method, index -1. 0, -ENODATA: no nmethod; or as reading fails.
 */
int hotspot_chain__read(const struct hotspot_code *code, struct target_memory *memory,
			const struct hotspot_blob *blob, uint64_t address,
			struct hotspot_chain *chain);

/* One number of 1 to 5 bytes at *at, which it moves; false: it does not end before `size`. X: 0 to JDK 19, then 1. */
bool hotspot_unsigned5(const unsigned char *bytes, size_t size, size_t *at, unsigned int excluded,
		       uint32_t *number);

#endif
