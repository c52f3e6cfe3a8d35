/* SPDX-License-Identifier: BSD-2-Clause */
/* The code address of a user frame: inside the call instruction, not behind it. */
#ifndef RUNTIMES_FRAME_ADDRESS_H
#define RUNTIMES_FRAME_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include <sysprof/event.h>

static inline bool frame_is_return_address(uint64_t frame)
{
	static const bool exact[FRAME_KIND_COUNT] = {
#define X(id, name, exact, text) exact,
		FRAME_KINDS(X)
#undef X
	};
	enum frame_kind kind = frame_kind(frame);

	return kind < FRAME_KIND_COUNT && !exact[kind];
}

/* A packed user frame keeps 56 bits; those of the vsyscall page are negative. */
static inline uint64_t frame_user_address(uint64_t frame)
{
	uint64_t address = frame & FRAME_ADDRESS_MASK;

	if (address >> (FRAME_KIND_SHIFT - 1))
		address |= ~FRAME_ADDRESS_MASK;
	return address - (frame_is_return_address(frame) && address);
}

/* The same for a note that has the frame's place in compiled code. */
static inline uint64_t note_code_address(const struct frame_note *note, uint64_t frame)
{
	return note->function + note->place - frame_is_return_address(frame);
}

#endif
