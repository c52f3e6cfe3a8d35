/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/check_stacks.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clocks.h"
#include "cli/assembly.h"
#include "cli/record_options.h"
#include "session/live.h"

#define CENSUS_NS 1000000000ull
#define CENSUS_HZ 499 /* enough samples of a machine that does little */

static int run(struct live *live, struct assembly *assembly, struct failure *failure)
{
	uint64_t end = monotonic_ns() + CENSUS_NS;
	int err = live__begin(live, failure);

	if (!err)
		err = live__start(live, failure);
	if (err)
		return err;
	while (!err && monotonic_ns() < end) {
		struct pollfd wake = {.fd = assembly__unwinder_fd(assembly), .events = POLLIN};

		live__wait(live, &wake, 1, end);
		err = assembly__take_tables(assembly);
		if (!err)
			err = live__tick(live, assembly__sink, assembly);
		if (!err)
			err = assembly__take_tables(assembly);
	}
	assembly__end_feeding(assembly);
	if (!err)
		err = live__stop(live, assembly__sink, assembly);
	return err ? fail(failure, err, "cannot record: %s", strerror(-err)) : 0;
}

static int count(struct assembly *assembly, struct stack_census *census, struct failure *failure)
{
	const struct profile *profile;
	int err = assembly__finish(assembly, &profile, failure);

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
	const struct live_options options = {
		.session =
			{
				.target = {.mode = TARGET_ALL, .exclude_self = true},
				.hz = CENSUS_HZ,
				.user_stacks = true,
				.unwind_bytes = (size_t)UNWIND_MEMORY_DEFAULT << 20,
				.max_depth = DEPTH_DEFAULT,
			},
		.target_text = "-a",
		.command_line = "sysprof check",
	};
	struct assembly *assembly = NULL;
	struct unwind_memory memory;
	struct live *live;
	int err = live__open(&options, &live, failure);

	if (err)
		return err;
	err = assembly__new(live__requests(live), &assembly);
	if (!err && bpf_session__unwind_memory(live__session(live), &memory))
		err = assembly__feed_unwinder(assembly, &memory, live__dso_opener(live),
					      options.session.max_depth, false);
	if (err)
		fail(failure, err, "cannot begin: no memory");
	if (!err)
		err = run(live, assembly, failure);
	if (!err)
		err = count(assembly, census, failure);
	assembly__free(assembly);
	live__free(live);
	return err;
}
