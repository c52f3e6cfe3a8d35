/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Do the constants fit this process? Of the first words of frames that should be SharedFunctionInfos, nine of ten
 * must lead to a plausible one. Otherwise nothing of this process is named: wrong constants would name everything,
 * and wrongly.
 */
#ifndef RUNTIMES_V8_TRUST_H
#define RUNTIMES_V8_TRUST_H

#include <stdint.h>

struct v8_reader;

#define V8_TRUST_CANDIDATES 50u
#define V8_TRUST_PERCENT    90u

enum v8_trust_state { V8_TRUST_OPEN, V8_TRUSTED, V8_REFUSED };

struct v8_trust {
	uint32_t seen, bad;
	enum v8_trust_state state;
};

/*
 * Checks one more candidate while the state is open, and returns the state. Words that were seen before are the
 * caller's to leave out, as are those of frames that may be native code's: what lies there are saved registers. What
 * could not be read for want of time or rights does not count.
 */
enum v8_trust_state v8_trust__see(struct v8_trust *t, struct v8_reader *r, uint64_t sfi);

#endif
