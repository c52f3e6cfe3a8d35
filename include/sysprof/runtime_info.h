/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the eBPF programs have to know of a process that has a runtime in it: where the words lie that say which function a
 * frame is of. Found by runtimes/ from what the runtime exports; put into the kernel by the session.
 */
#ifndef SYSPROF_RUNTIME_INFO_H
#define SYSPROF_RUNTIME_INFO_H

#include <linux/types.h>

#define RUNTIME_PROCESSES 1024u /* that are known at a time */
#define RUNTIME_SLOTS	  1024u /* counts of processes, by the end of their numbers; a power of two */

/* runtime_info.has */
#define RUNTIME_V8	      1u
#define RUNTIME_PYTHON	      2u
#define RUNTIME_HOTSPOT	      4u /* frames of its code are walked … */
#define RUNTIME_HOTSPOT_NOTES 8u /* … and noted */

/*
 * V8: offsets from the frame pointer of a JavaScript frame, of words within the RUNTIME_V8_FRAME bytes below it; and of the
 * SharedFunctionInfo in a JSFunction, less the pointer's tag.
 *
 * Another function can get its address, when it is gone. So its `number` is noted as well, two words of 4 bytes: the one that it has in
 * its script, and one that no other function of its isolate ever gets. Up to V8 12.3 there is no such one, and the script's number is
 * in its place: script_id, of the object at `script` of the SharedFunctionInfo.
 */
#define RUNTIME_V8_FRAME 40u
struct runtime_v8 {
	__s32 context, function, bytecode_offset;
	__s32 shared;
	__s32 closure; /* of the words of a JSFunction that are read: its SharedFunctionInfo, and what else differs among closures */
	__s32 number;  /* less the tag; 0: it has none that is known */
	__s32 script; /* 0: both numbers are at `number`; else less the tag, and RUNTIME_V8_BEFORE_NUMBER bytes before it */
	__s32 script_id; /* less the tag */
	/* Types of frames, one bit each, that are noted though they are not JavaScript's; and of them those that a leaf can have */
	__u64 typed, typed_leaf;
	__u32 wasm; /* the type of WebAssembly's own; 0: none */
	__u32 reserved;
};
#define RUNTIME_V8_BEFORE_NUMBER 20

/* CPython. Offsets in bytes; what a version does not have is NONE. */
#define RUNTIME_NONE	    0xffffffffu
#define RUNTIME_HOPS	    3u
#define RUNTIME_CODE_BYTES  128u /* of a code object, that are looked at */
#define RUNTIME_OBJECT_TYPE 8u	 /* in any object: the address of its type */
struct runtime_python {
	/* The thread's state: from its fs base on the word at an offset, and from that one the next. 0: it has none */
	__u32 hops;
	__u32 reserved;
	__s64 hop[RUNTIME_HOPS];
	__u32 state_frame; /* in PyThreadState: of the frame, or of the C frame */
	/* up to 3.12: a frame is found through a structure on the C stack … */
	__u32 cframe_frame, cframe_previous;
	__u32 frame_is_entry; /* … and in 3.11 a group ends at such a frame; from 3.12 on where the owner is C */
	__u32 frame_previous, frame_code, frame_instruction, frame_owner;
	__u32 code_line;    /* u32 */
	__u32 code_version; /* u32 */
	/* 3.11 has no version, that is where its qualified name is: see runtime_python_version() */
	__u32 code_name, str_hash, str_length, str_ascii;
	/* What a function's name is read from: the first bytes of its code, and pointers in these. head_size 0: it is not copied */
	__u32 head_size;
	__u32 code_qualname, code_filename, code_linetable;
	__u32 bytes_size, bytes_data;
	__u32 code_from,
		code_size; /* the bytes of a code object that have these, and its type if that is looked at */
	__u64 code_type; /* the address of PyCode_Type, if it is to be looked at; 0: not */
	/* Does the thread hold the GIL? From 3.14 on an int of its state says it, and the one behind that whether it waits (3.15) … */
	__u32 state_holds, has_waits;
	/* … before that the GIL: {PyThreadState *holder; int locked}, of the main interpreter; 0: it was not found */
	__u64 gil;
	__u64 gil_interpreter; /* … which others than its own threads do not hold; 0: all interpreters share it */
	__u32 state_interpreter;
	/* 3.11: its fs base. The key keeps the state of a thread's first interpreter; of another one it is the GIL's holder */
	__u32 state_thread;
};

/*
 * What 3.11 has in the place of a version: by its addresses alone a function cannot be told from one that had them before. Two names
 * can have the same address one after the other, but not the same hash, which each name of a function has, since it is interned.
 * File names have none, so of these it is the length and the last bytes.
 */
#define RUNTIME_FILE_TAIL 4u /* words; of a shorter name all, and 0 behind */
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
 * HotSpot: its code heaps, and offsets in the header of a blob of code. All that is there is reserved or made before the first
 * line of Java runs, and stays where it is.
 */
#define RUNTIME_HEAPS 3u
struct runtime_hotspot {
	struct {
		__u64 low, high; /* all that is reserved for it */
		__u64 map;	 /* the address of its map's first byte */
	} heaps[RUNTIME_HEAPS];
	__u64 bytecode_start, bytecode_end; /* the interpreter */
	__u8 shift;			    /* of addresses to bytes of the map */
	__u8 block_size;		    /* bytes before a blob */
	/* frame_complete has 2 bytes, code is an offset of 4 bytes from the blob; else 4, and a pointer */
	__u8 is_narrow;
	__u8 reserved;
	__u16 name, frame_size, frame_complete, code;
	__u16 compile_id, method; /* of compiled methods */
	__u16 const_method;	  /* in a Method */
	__u16 reserved2[3];
};

struct runtime_info {
	__u64 as_of; /* CLOCK_MONOTONIC ns: of the program that the process was then */
	__u32 has;
	__u32 reserved;
	struct runtime_v8 v8;
	struct runtime_python python;
	struct runtime_hotspot hotspot;
};

/*
 * A child of fork has its parent's memory at its parent's addresses, so what is known of the parent holds for it, until it calls
 * execve or something is known of itself. By the end of its number: a later one takes the place.
 */
#define RUNTIME_FORKS 4096u /* a power of two */
struct runtime_fork {
	__u32 tgid; /* of the child, in the collector's numbers; 0: nobody */
	__u32 reserved;
	__u32 parent, grandparent; /* whose mappings are its own; 0: unknown */
	struct runtime_info info;  /* as_of: when it was forked */
};

#endif
