/* SPDX-License-Identifier: BSD-2-Clause */
/* HotSpot in the memory of a process: layout, code heaps, methods, and what a reader has found. */
#ifndef RUNTIMES_HOTSPOT_HOTSPOT_H
#define RUNTIMES_HOTSPOT_HOTSPOT_H

#include <stdbool.h>
#include <stdint.h>

#include <sysprof/event.h>
#include <sysprof/runtime_info.h>

#include "base/vec.h"
#include "runtimes/answers.h"
#include "runtimes/hotspot/layout.h"
#include "runtimes/target_memory.h"

/* ---- what is inlined ------------------------------------------------------------------------- */

#define HOTSPOT_SCOPES_MAX 128u

struct hotspot_scope {
	uint64_t method; /* Method* */
	int32_t index;	 /* of the bytecode; -1: not known */
};

/*
 * Innermost first. The JVM describes few places: calls that may stop there, polls. Between two of
 * them the scopes are those of the one that runs next; `sure` ones are also in the one before, and
 * the last of them makes no call on the way that may be inlined.
 */
struct hotspot_chain {
	struct hotspot_scope scopes[HOTSPOT_SCOPES_MAX];
	unsigned int count;
	unsigned int sure; /* of the outermost */
	bool is_cut;	   /* there are more, or they are not to be read */
};

enum hotspot_place_kind {
	HOTSPOT_PLACE_OTHER, /* a poll */
	HOTSPOT_PLACE_CALL,  /* behind a call of a method, or of the JVM */
	HOTSPOT_PLACE_TRAP,  /* behind a call that gives the code up, and does not return */
	HOTSPOT_PLACE_CHECK, /* a branch that leads to such a call; the JVM has no PcDesc of it */
	HOTSPOT_PLACE_LOAD,  /* the same by a fault; the load may be of what runs next */
};

/* PcDesc; its flags are replaced by the kind. */
struct hotspot_pc_desc {
	int32_t pc_offset, scope, object, flags;
};

/* Instructions that run one after the other, up to the next block. */
struct hotspot_block {
	uint32_t start;
	int32_t target;	   /* the block that it jumps to; -1 */
	uint8_t last_size; /* bytes of its last instruction */
	bool falls : 1;	   /* it runs into the next one */
	bool returns : 1, traps : 1;
	bool is_open : 1; /* it leads to what is not known */
	bool pads : 1;	  /* it does nothing, and may be reached from nowhere */
};

struct hotspot_named {
	uint32_t number; /* in the JVM's list, from 1 on; 0: the nmethod's own method */
	uint32_t text;	 /* in known.texts, from 1 on; 0: not looked up yet */
	uint64_t method; /* Method* */
};

struct hotspot_bytecodes {
	uint64_t method;
	uint64_t pool;	     /* ConstantPool* */
	unsigned char *code; /* NULL: they are not to be read, or there are none */
	uint32_t size;
	bool is_native;	   /* … or abstract */
	bool is_intrinsic; /* … or it is not known whether it is */
};

/* The debug data of an nmethod. They do not change, and are read as a whole. */
struct hotspot_debug {
	struct hotspot_pc_desc *places; /* ascending; NULL: not read */
	size_t place_count;
	unsigned char *scopes;
	size_t scopes_size;
	uint64_t methods;     /* the address of the JVM's list */
	uint64_t null_checks; /* … of its table; 0: none */
	uint32_t code_size;
	VEC(struct hotspot_block) blocks;
	VEC(struct hotspot_named) named; /* methods that were needed so far */
	VEC(struct hotspot_bytecodes) bytecodes;
	size_t bytecode_bytes;
	enum hotspot_flag is_alone; /* the nmethod has no other method's code */
};

#define HOTSPOT_ENDS_MAX    8u
#define HOTSPOT_END_OUTSIDE (-1) /* the compiled method begins or returns */

struct hotspot_ends {
	int32_t place[HOTSPOT_ENDS_MAX]; /* number in debug.places */
	unsigned int count;
	bool is_open; /* there may be others */
};

/* The next places on any way to an address, and from it. */
struct hotspot_around {
	struct hotspot_ends before, behind;
	uint32_t at;   /* the address */
	uint32_t size; /* bytes of code between them */
	bool loops;    /* code runs from the address to itself without a place */
};

struct hotspot_scope_record {
	uint32_t sender, method, index; /* of the bytecode, + 1 */
};

/* Values that no byte of a number has: 0 to JDK 19, then 1. */
static inline unsigned int hotspot_excluded(const struct hotspot_layout *l)
{
	return l->major >= 20;
}

#endif
