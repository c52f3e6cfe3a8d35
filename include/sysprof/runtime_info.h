/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Data that the eBPF programs need about a process with a runtime: where to find the words that
 * identify a frame's function. runtimes/ finds them from the runtime's exported data, and the
 * session stores them in the kernel.
 */
#ifndef SYSPROF_RUNTIME_INFO_H
#define SYSPROF_RUNTIME_INFO_H

#include <linux/types.h>

#define RUNTIME_PROCESSES 1024u /* in the kernel at a time */
#define RUNTIME_SLOTS	  1024u /* counters of processes, by the low bits of pids; a power of two */

/* runtime_info.has */
#define RUNTIME_V8	      1u
#define RUNTIME_PYTHON	      2u
#define RUNTIME_HOTSPOT	      4u /* frames of its code are unwound … */
#define RUNTIME_HOTSPOT_NOTES 8u /* … and noted */

#define RUNTIME_FORKED	      RUNTIME_PYTHON /* the kernel passes it on to a child of fork */
/* Useful beside a perf map: a JVM's map is a snapshot of its compiled methods. */
#define RUNTIME_BESIDE_MAP (RUNTIME_HOTSPOT | RUNTIME_HOTSPOT_NOTES)
/* Used while the map is not read. Not Python: its map names trampolines, frames would be twice. */
#define RUNTIME_INSTEAD_OF_MAP (RUNTIME_BESIDE_MAP | RUNTIME_V8)

/*
 * V8: offsets from the frame pointer of a JavaScript frame, of words within the RUNTIME_V8_FRAME
 * bytes below it; and of the SharedFunctionInfo in a JSFunction, less the pointer's tag.
 *
 * A function's address can be reused, so its `number` is noted as well: two words of 4 bytes, its
 * number in its script and one that is unique in its isolate. V8 up to 12.3 has no unique one, so
 * the script's number replaces it: script_id of the object at `script` of the SharedFunctionInfo.
 */
#define RUNTIME_V8_FRAME 40u
struct runtime_v8 {
	__s32 context, function, bytecode_offset;
	__s32 shared;
	/* the words of a JSFunction to read: SharedFunctionInfo, some that distinguish closures */
	__s32 closure;
	__s32 number; /* less the tag; 0: unknown */
	/* 0: both numbers are at `number`; else less the tag, RUNTIME_V8_BEFORE_NUMBER before it */
	__s32 script;
	__s32 script_id; /* less the tag */
	/* types of other frames to note, one bit each; and those of them that a leaf can have */
	__u64 typed, typed_leaf;
	__u32 wasm; /* the type of WebAssembly frames; 0: none */
	__u32 reserved;
};
#define RUNTIME_V8_BEFORE_NUMBER 20

/* CPython. Offsets in bytes; RUNTIME_NONE: this version does not have the field. */
#define RUNTIME_NONE	    0xffffffffu
#define RUNTIME_HOPS	    3u
#define RUNTIME_CODE_BYTES  128u /* read from a code object */
#define RUNTIME_OBJECT_TYPE 8u	 /* in any object: the address of its type */
struct runtime_python {
	/* the path to the thread's state: offset from the fs base, then from that word; 0: none */
	__u32 hops;
	__u32 reserved;
	__s64 hop[RUNTIME_HOPS];
	__u32 state_frame; /* in PyThreadState: of the frame, or of the C frame */
	/* up to 3.12: a frame is found through a structure on the C stack … */
	__u32 cframe_frame, cframe_previous;
	__u32 frame_is_entry; /* … 3.11: such a frame ends a group; later, owner C does */
	__u32 frame_previous, frame_code, frame_instruction, frame_owner;
	__u32 code_line;    /* u32 */
	__u32 code_version; /* u32 */
	/* 3.11 has no version, its name and file are used: see runtime_python_version() */
	__u32 code_name, str_hash, str_length, str_ascii;
	/* to copy a function's name: bytes of its code object, pointers in them; 0: no copies */
	__u32 head_size;
	__u32 code_qualname, code_filename, code_linetable;
	__u32 bytes_size, bytes_data;
	/* the range of a code object with these fields, and with its type if that is checked */
	__u32 code_from, code_size;
	__u64 code_type; /* the address of PyCode_Type, if it is checked; 0: not */
	/* is the GIL held? From 3.14 on an int of the state; the next one (3.15): it waits … */
	__u32 state_holds, has_waits;
	/*
	 * … before, the GIL of the main interpreter, {PyThreadState *holder; int locked}; 0: not
	 * found. A thread waits for it at a condition variable behind these.
	 */
	__u64 gil;
	__u64 gil_interpreter; /* … the interpreter whose threads share this GIL; 0: all do */
	__u32 state_interpreter;
	/* 3.11: its fs base; the TLS key may have another interpreter's state than the GIL */
	__u32 state_thread;
	__u32 state_number; /* u64: the thread's number, in the pid namespace of the program */
	__u32 unused;
};

/*
 * The substitute for a version in 3.11, because a function can follow another at its addresses. Two
 * names can share an address over time, but not a hash, which every function name has because it is
 * interned. File names have no hash, so their length and last bytes are used.
 */
#define RUNTIME_FILE_TAIL 4u /* words; a shorter name is padded with 0 */
static inline __u64 runtime_python_file(__u64 length, const __u64 tail[RUNTIME_FILE_TAIL])
{
	__u64 mixed = length * 0x9e3779b97f4a7c15ull;

	for (__u32 i = 0; i < RUNTIME_FILE_TAIL; i++)
		mixed = (mixed ^ mixed >> 32 ^ tail[i]) * 0x9e3779b97f4a7c15ull;
	return mixed;
}

static inline __u32 runtime_python_version(__u64 qualname, __u64 name_hash, __u64 file)
{
	__u64 mixed = (qualname ^ name_hash) * 0x9e3779b97f4a7c15ull;

	return ((mixed ^ mixed >> 32 ^ file) * 0x9e3779b97f4a7c15ull) >> 32;
}

/*
 * HotSpot: its code heaps, and offsets in the header of a code blob. All of it is reserved or
 * created before the first line of Java runs, and does not move.
 */
#define RUNTIME_HEAPS 3u
struct runtime_hotspot {
	struct {
		__u64 low, high; /* the reserved range */
		__u64 map;	 /* the address of its map's first byte */
	} heaps[RUNTIME_HEAPS];
	__u64 bytecode_start, bytecode_end; /* the interpreter */
	__u8 shift;			    /* of addresses to bytes of the map */
	__u8 block_size;		    /* bytes before a blob */
	/* 1: frame_complete has 2 bytes, code is a 4-byte offset from the blob; 0: 4, a pointer */
	__u8 is_narrow;
	__u8 reserved;
	__u16 name, frame_size, frame_complete, code;
	__u16 compile_id, method; /* of compiled methods */
	__u16 const_method;	  /* in a Method */
	__u16 reserved2[3];
};

struct runtime_info {
	__u64 as_of; /* valid for the program that the process executed at that time */
	__u32 has;
	__u32 reserved;
	struct runtime_v8 v8;
	struct runtime_python python;
	struct runtime_hotspot hotspot;
};

/*
 * A child of fork has its parent's memory, so the parent's entry is valid for it until execve or an
 * entry of its own. Indexed by the low bits of its pid: a later child replaces an earlier one.
 */
#define RUNTIME_FORKS 4096u /* a power of two */
struct runtime_fork {
	__u32 tgid; /* of the child, in the collector's pid namespace; 0: empty */
	__u32 reserved;
	__u32 parent, grandparent; /* processes with the same mappings; 0: unknown */
	struct runtime_info info;  /* as_of: when it was forked */
};

#endif
