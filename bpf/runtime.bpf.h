/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Notes: the words by which a runtime in the process identifies its functions, beside the frames.
 *
 * This file has the state that runtimes share: scratch, which processes have one, and what a child
 * of fork inherits. Notes are not checked here: the reader of the names rejects wrong ones.
 */
#ifndef BPF_RUNTIME_BPF_H
#define BPF_RUNTIME_BPF_H

#include "forked.bpf.h"
#include "maps.bpf.h"
#include "memory.bpf.h"

#define PYTHON_GROUPS	   128u /* a power of two */
#define PYTHON_FRAME_BYTES 88
#define PYTHON_WINDOW	   1024
#define PYTHON_NOWHERE	   (1ULL << 63) /* far from any address of a process */
#define IN_PAGE		   4095ULL
#define CODE_COPIES	   8u /* in one tick, at most */
#define V8_FRAME_WORDS	   (RUNTIME_V8_FRAME / 8)
#define V8_SCRIPT_WORDS	   3u /* of a SharedFunctionInfo: from its script up to its number there */
#define V8_CLOSURE_WORDS   4u /* of a JSFunction; a power of two */
#define V8_KNOWN_BITS	   7
#define KNOWN_WORDS	   16u /* a power of two */

/*
 * The result for a function in this sample: a recursive one is on the stack many times. By the next
 * sample its memory may hold another function.
 */
struct known_word {
	/* V8: a Script, its number. Python: code, frame_note.check; 3.11: a file's name, a hash */
	__u64 function, led_to;
	__u64 time; /* notes.time */
};

/*
 * The result for a JSFunction on this CPU, valid within a sample. The next one reads its own words
 * again: if unchanged, it is the same closure of the same function, which is not read. This holds
 * for less time than a full collection of V8 takes (1.4 ms at least, with an empty heap): before,
 * no function's memory is reused.
 */
struct v8_known {
	__u64 function, as_of; /* … of that process */
	__u64 seen, looked_at; /* notes.time */
	__u64 closure[V8_CLOSURE_WORDS];
	__u64 shared, check;
};

/* The position of the walk in the code of a JVM; see hotspot.bpf.h. */
#define HOTSPOT_PIECE  128u /* bytes of the map that are read at once, a power of two */
#define HOTSPOT_HEADER 256u
struct jvm_place {
	__u64 low, high, map; /* the heap */
	__u64 segment, piece_start;
	__u64 blob, code, words;
	__u64 check;		  /* of a compiled method's note */
	__u32 kind, in_prologue;  /* in_prologue: the frame is not complete */
	__u64 method_name, as_of; /* the address of the name of method blobs, and its process */
	__u64 name[4];
	__u64 bytes[3]; /* before the instruction pointer, and from there on */
	unsigned char piece[HOTSPOT_PIECE];
	unsigned char header[HOTSPOT_HEADER];
};

struct notes {
	struct runtime_info info;
	__u32 has; /* info.has, of this sample's process; 0: nothing is noted */
	__u32 count;
	__u64 time; /* of the sample */
	/* Python: the next frame to read, its C frame; complete groups, the first not passed yet */
	__u64 frame, cframe;
	__u32 groups, passed;
	__u8 gil; /* FRAME_NOTE_GIL_ of the sample */
	__u64 anchors[PYTHON_GROUPS];
	/* bytes read with a frame: its callees begin behind it, its callers end before it */
	__u64 python_from;
	__u64 python_window[PYTHON_WINDOW / 8];
	__u64 python_frame[PYTHON_FRAME_BYTES / 8];
	unsigned char python_code[RUNTIME_CODE_BYTES]; /* from code_from on */
	__u64 file_tail[RUNTIME_FILE_TAIL];
	/* functions without a copy */
	struct {
		__u64 function, check;
	} met[CODE_COPIES];
	__u32 met_count;
	/* V8: the words below the frame pointer, lowest first */
	__u64 v8_frame[V8_FRAME_WORDS];
	__u64 v8_closure[V8_CLOSURE_WORDS];
	__u64 v8_script[V8_SCRIPT_WORDS];
	struct v8_known v8_known[1u << V8_KNOWN_BITS]; /* by a few bits of the function */
	struct known_word known[KNOWN_WORDS];	       /* by a few bits of the function */
	struct jvm_place jvm;
	struct frame_note notes[FRAME_NOTES_MAX];
};

#define NOTES_MASK 0x1fffULL
_Static_assert(sizeof(((struct notes *)0)->notes) <= NOTES_MASK, "their size is masked");

struct {
	__uint(type, SCRATCH_MAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct notes);
} note_scratches SEC(".maps");

/* By process, in the collector's numbers. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RUNTIME_PROCESSES);
	__type(key, __u32);
	__type(value, struct runtime_info);
} runtimes SEC(".maps");

/*
 * Number of processes in `runtimes` by the low bits of their pid. Most entries are 0: a tick of
 * their processes pays for this lookup only.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RUNTIME_SLOTS);
	__type(key, __u32);
	__type(value, __u64);
} runtime_slots SEC(".maps");

static __always_inline struct notes *notes(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&note_scratches, &zero);
}

static __always_inline bool add_note(struct notes *n, const struct frame_note *note)
{
	__u32 at = n->count;

	if (at >= FRAME_NOTES_MAX)
		return false;
	n->notes[at] = *note;
	n->count = at + 1;
	return true;
}

/* The cache slot of a function. Objects are at multiples of 8, and many are larger. */
static __always_inline struct known_word *known_word(struct notes *n, __u64 function)
{
	__u64 at = function >> 4 ^ function >> 8;

	UNWIND_HIDE(at);
	return &n->known[at & (KNOWN_WORDS - 1)];
}

static __always_inline bool is_known_word(const struct notes *n, const struct known_word *known,
					  __u64 function)
{
	return known->function == function && known->time == n->time;
}

static __always_inline bool may_have_runtimes(__u32 tgid)
{
	__u32 slot = tgid & (RUNTIME_SLOTS - 1);
	__u64 *count = bpf_map_lookup_elem(&runtime_slots, &slot);

	return (count && *count) || fork_of(tgid);
}

static __always_inline void begin_notes(struct notes *n, const struct runtime_info *info,
					__u64 time)
{
	n->info.as_of = info->as_of;
	n->info.v8 = info->v8;
	n->info.python = info->python;
	if (info->has & RUNTIME_HOTSPOT)
		n->info.hotspot = info->hotspot;
	n->has = info->has;
	n->count = n->groups = n->passed = n->met_count = 0;
	n->python_from = PYTHON_NOWHERE;
	n->time = time;
}

/* For a child of which only the fork was seen. Another child may take its slot meanwhile. */
static __always_inline __u32 find_forked_runtimes(__u32 tgid, __u64 time)
{
	struct runtime_fork *fork = fork_of(tgid);
	struct notes *n = notes();

	if (!fork || !n || has_executed(tgid, fork->info.as_of))
		return 0;
	begin_notes(n, &fork->info, time);
	FORK_BARRIER();
	return fork->tgid == tgid ? n->has : 0;
}

/* The runtimes of the process. They are not those of a program that it has executed since. */
static __always_inline __u32 find_runtimes(__u32 tgid, __u64 time)
{
	struct runtime_info *info = bpf_map_lookup_elem(&runtimes, &tgid);
	struct notes *n = notes();

	if (!info)
		return find_forked_runtimes(tgid, time);
	if (!n || has_executed(tgid, info->as_of))
		return 0;
	begin_notes(n, info, time);
	return n->has;
}

/* The part that children inherit: Python forks, the others do not. */
static __always_inline const struct runtime_info *inherited_runtimes(__u32 tgid)
{
	struct runtime_info *info = bpf_map_lookup_elem(&runtimes, &tgid);
	struct runtime_fork *fork;

	if (!info) {
		fork = fork_of(tgid);
		info = fork ? &fork->info : NULL;
	}
	if (!info || !(info->has & RUNTIME_PYTHON) || has_executed(tgid, info->as_of))
		return NULL;
	return info;
}

/* `parent` has made `child`, a process. Both in the collector's numbers. */
static __always_inline void note_fork(__u32 parent, __u32 child, __u64 now)
{
	struct runtime_fork *fork = fork_slot(child), *older;
	const struct runtime_info *info;

	if (!fork)
		return;
	if (fork->tgid == child) /* an earlier process of this number */
		fork->tgid = 0;
	if (!may_have_runtimes(parent))
		return;
	info = inherited_runtimes(parent);
	if (!info)
		return;
	older = fork_of(parent);
	fork->tgid = 0;
	FORK_BARRIER();
	fork->parent = parent;
	fork->grandparent = older ? older->parent : 0;
	fork->info.as_of = now;
	fork->info.has = RUNTIME_PYTHON;
	fork->info.python = info->python;
	FORK_BARRIER();
	fork->tgid = child;
}

static __always_inline long read_word(__u64 address, __u64 *word)
{
	return read_user(word, sizeof(*word), address);
}

/* Behind the frames, `at` bytes from the start of the sample. Returns the size of the sample. */
static __always_inline __u64 append_notes(struct scratch *s, __u64 at)
{
	struct notes *n = s->runtimes ? notes() : NULL;
	__u64 size;

	if (!n || !n->count || !s->sample.user_frames || s->sample.user_end == STACK_END_COMPAT)
		return at;
	size = n->count * sizeof(n->notes[0]);
	UNWIND_HIDE(at);
	UNWIND_HIDE(size);
	size &= NOTES_MASK; /* a limit that compilers keep in one register */
	if (at > SAMPLE_SPACE - NOTES_MASK || bpf_probe_read_kernel(s->space + at, size, n->notes))
		return at;
	s->sample.notes = n->count;
	return at + size;
}

#endif
