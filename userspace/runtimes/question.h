/* SPDX-License-Identifier: BSD-2-Clause */
/* What is asked about a frame of a runtime: the words that the kernel noted of it. */
#ifndef RUNTIMES_QUESTION_H
#define RUNTIMES_QUESTION_H

#include <stdint.h>

struct code_question {
	uint64_t function, check; /* as in a note */
	uint64_t address; /* in compiled code: whose functions are inlined there? 0: not asked */
	uint64_t time;	  /* of the sample that it is asked for */
	uint32_t kind;	  /* enum frame_note_kind */
	uint16_t
		is_leaf; /* the address is where the thread was; 0: the byte before a return address */
	uint16_t
		is_told; /* 1: its answer is known, and need not be told again while it is the same */
};

#endif
