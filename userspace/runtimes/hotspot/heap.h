/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUNTIMES_HOTSPOT_HEAP_H
#define RUNTIMES_HOTSPOT_HEAP_H

#include <stddef.h>
#include <stdint.h>

struct hotspot_layout;
struct runtime_hotspot;
struct target_memory;

/*
 * Where HotSpot keeps code: up to three heaps, in each of which blobs of any size follow one
 * another. A map with one byte for each 128 bytes of code leads from an address to its blob. A blob
 * begins with a header (CodeBlob); compiled methods are blobs with a longer one (nmethod).
 */

#define HOTSPOT_HEAPS_MAX 8u
#define HOTSPOT_HOPS_MAX  48u /* in the map; 18 have been seen */
#define HOTSPOT_BLOBS_MAX 65536u
#define HOTSPOT_CODE_MAX  (4u << 20) /* bytes of one blob */

enum hotspot_kind {
	HOTSPOT_NMETHOD,
	HOTSPOT_NATIVE,	       /* the wrapper of a native method, or a MethodHandle's intrinsic */
	HOTSPOT_BYTECODE,      /* the interpreter */
	HOTSPOT_STUBS,	       /* by their frame pointer; many in a blob */
	HOTSPOT_CONTINUATION,  /* those of virtual threads */
	HOTSPOT_ADAPTERS,      /* no frame, but what they move */
	HOTSPOT_NO_FRAME,      /* vtable chunks, inline caches */
	HOTSPOT_RUNTIME,       /* a frame of one size */
	HOTSPOT_UNCOMMON_TRAP, /* the same; does not return */
	HOTSPOT_EXCEPTION,     /* the same; entered by a jump */
	HOTSPOT_SAFEPOINT,
	HOTSPOT_DEOPT,
};

struct hotspot_blob {
	uint64_t address;
	uint64_t code, code_end;
	uint64_t method;			/* Method*, of nmethods; 0 */
	uint64_t name;				/* where it is */
	uint64_t verified_entry, deopt_handler; /* 0: none */
	uint32_t size;
	uint32_t frame_size;	 /* words, with the return address; 0: see its kind */
	uint32_t frame_complete; /* from the code: the frame is there */
	uint32_t compile_id;	 /* of nmethods; 0 */
	uint64_t check;		 /* as in a note, whatever kind of blob it is; 0: not known */
	int32_t orig_pc_offset;
	enum hotspot_kind kind;
};

struct hotspot_heap {
	uint64_t low, high; /* all that is reserved: it grows in place */
	uint64_t committed; /* code ends here for now */
	uint64_t map;	    /* the byte of `low` */
	uint64_t map_size;
};

#define HOTSPOT_NAMES_KNOWN 512u

struct hotspot_code {
	const struct hotspot_layout *layout;
	struct hotspot_heap heaps[HOTSPOT_HEAPS_MAX]; /* ascending */
	unsigned int count;
	unsigned int shift;		       /* of addresses to segments */
	uint64_t bytecode_start, bytecode_end; /* the interpreter's codelets */
	uint64_t call_return; /* where Java returns to in the call stub; 0: not known */
	/* kinds by the address of their name, modulo the number of entries: each is read once */
	struct {
		uint64_t name;
		enum hotspot_kind kind;
	} kinds[HOTSPOT_NAMES_KNOWN];
};

/* The heaps now. `layout` must outlive it. 0; -ENODATA: not understood; else as reading fails. */
int hotspot_code__read(struct hotspot_code *code, const struct hotspot_layout *layout,
		       struct target_memory *memory);
/* The heap of an address, or NULL. */
const struct hotspot_heap *hotspot_code__heap(const struct hotspot_code *code, uint64_t address);

/* The blob of an address. 0; -ENOENT: none; -ELOOP: map leads nowhere; else as reading fails. */
int hotspot_code__find(const struct hotspot_code *code, struct target_memory *memory,
		       uint64_t address, uint64_t *blob);
/* 0; -ENODATA: no blob, none yet, or it was freed and will be reused; else as reading fails. */
int hotspot_code__blob(struct hotspot_code *code, struct target_memory *memory, uint64_t address,
		       struct hotspot_blob *blob);
/* The same of a header that was read already, layout->header_size bytes of it. */
int hotspot_code__take(struct hotspot_code *code, struct target_memory *memory,
		       const unsigned char *bytes, uint64_t address, struct hotspot_blob *blob);
/*
 * All blobs of the interpreter's heap, by address, as far as they can be read; not those that the
 * JVM is changing. `visit` returns 0 to go on. 0, what `visit` returned, or as reading fails.
 */
int hotspot_code__each(struct hotspot_code *code, struct target_memory *memory,
		       int (*visit)(void *context, const struct hotspot_blob *blob), void *context);
/* The text of the blob's name, which is its kind, no method's. As target_memory__string(). */
int hotspot_blob__name(const struct hotspot_blob *blob, struct target_memory *memory, char *name,
		       size_t size);

/*
 * The words about a process's code heaps that the kernel's walk needs. With them alone, without a
 * table of rows, nearly all stacks are whole. 0; -E2BIG: they do not fit.
 */
int hotspot_words__make(struct runtime_hotspot *w, const struct hotspot_code *code);

#endif
