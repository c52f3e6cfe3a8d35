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

/* The object at a candidate. */
#define V8_FINDINGS(X)                                                                             \
	X(V8_SOUND, "sound")                                                                       \
	X(V8_UNREADABLE, "not readable")                                                           \
	X(V8_NO_MAP, "no object of V8's heap")                                                     \
	X(V8_NO_SFI, "another kind of object than a function's")                                   \
	X(V8_NO_SCRIPT, "a function whose script is none")

#define V8_FINDING_(name, text) name,
enum v8_finding { V8_FINDINGS(V8_FINDING_) V8_FINDING_COUNT };
#undef V8_FINDING_

enum v8_trust_state { V8_TRUST_OPEN, V8_TRUSTED, V8_REFUSED };

struct v8_trust {
	uint32_t seen, found[V8_FINDING_COUNT];
	enum v8_trust_state state;
};

/*
 * Checks one more candidate while the state is open, and returns the state. Words that were seen before are the
 * caller's to leave out, as are those of frames that may be native code's: what lies there are saved registers. What
 * could not be read for want of time or rights does not count.
 */
enum v8_trust_state v8_trust__see(struct v8_trust *t, struct v8_reader *r, uint64_t sfi);

/* Why it is refused: what was found most often of what is not sound. Otherwise "". */
const char *v8_trust__reason(const struct v8_trust *t);

#endif
