/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUNTIMES_HOTSPOT_NAMES_H
#define RUNTIMES_HOTSPOT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/event.h>

struct hotspot_layout;
struct managed_function;
struct target_memory;

/*
 * Names and lines of HotSpot's methods: of compiled ones with those inlined at an address, of
 * interpreted ones by the two words in their frame (Method*, the address of the bytecode).
 *
 * A method has the name that HotSpot writes into a perf map, "void a.b.Outer.run(int,
 * java.lang.String[])", but in that of hidden classes the address is left out, since it differs in
 * every run. Offsets of managed_function's rows are bytecode indices.
 */

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
/* `f`: empty; the caller always frees it. 0, -ENODATA, -ENOMEM, or as reading fails. */
int hotspot_method__describe(const struct hotspot_layout *layout, struct target_memory *memory,
			     const struct hotspot_method *m, struct managed_function *f);
/* Is what is there now what was sampled? */
enum code_state hotspot_method__check(const struct hotspot_layout *layout,
				      struct target_memory *memory, const struct hotspot_method *m);

/* A number of 1 to 5 bytes at *at, which moves; false: cut off. */
bool hotspot_unsigned5(const unsigned char *bytes, size_t size, size_t *at, unsigned int excluded,
		       uint32_t *number);

#endif
