/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/check_stacks.h"

#include <string.h>

#include "base/clocks.h"
#include "cli/record_options.h"
#include "session/session.h"

#define CENSUS_NS 1000000000ull
#define CENSUS_HZ 499 /* enough samples of a machine that does little */

static int record_for_a_while(struct session *session, struct failure *failure)
{
	uint64_t end = monotonic_ns() + CENSUS_NS;
	int err = session__start(session, false, -1, failure);

	while (!err && monotonic_ns() < end)
		err = session__step(session, end, failure);
	return err ? err : session__stop(session, failure);
}

static int count_ends(struct session *session, struct stack_census *census, struct failure *failure)
{
	const struct profile *profile;
	int err = session__finish(session, &profile, failure);

	if (err)
		return err;
	*census = (struct stack_census){
		.samples = profile->sample_count,
		.complete = profile__complete_share(profile),
	};
	memcpy(census->ends, profile->stack_ends, sizeof(census->ends));
	return 0;
}

int check_stacks(struct stack_census *census, struct failure *failure)
{
	const struct session_options options = {
		.live =
			{
				.session =
					{
						.target = {.mode = TARGET_ALL,
							   .exclude_self = true},
						.hz = CENSUS_HZ,
						.user_stacks = true,
						.unwind_bytes = (size_t)UNWIND_MEMORY_DEFAULT << 20,
						.max_depth = DEPTH_DEFAULT,
					},
				.target_text = "-a",
				.command_line = "sysprof check",
			},
	};
	struct session *session;
	int err = session__open(&options, &session, failure);

	if (err)
		return err;
	err = record_for_a_while(session, failure);
	if (!err)
		err = count_ends(session, census, failure);
	session__free(session);
	return err;
}
