/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/readers.h"

#include "jitwatch/code_reader.h"
#include "jitwatch/runtime_reader.h"
#include "procfs/fact_reader.h"
#include "procfs/file_search.h"
#include "procfs/proc_maps.h"

int session_readers__new(struct outside_books *books, struct reader_pool **pool)
{
	static const reader_serve_fn services[SERVICE_COUNT] = {
		[SERVICE_FILES] = file_search__serve,	    [SERVICE_MAPS] = proc_maps__serve,
		[SERVICE_RUNTIMES] = runtime_reader__serve, [SERVICE_FACTS] = fact_reader__serve,
		[SERVICE_CODE] = code_reader__serve,
	};
	static const enum outside_thing things[SERVICE_COUNT] = {
		[SERVICE_FILES] = OUTSIDE_FILES,       [SERVICE_MAPS] = OUTSIDE_PROCESS_MAPS,
		[SERVICE_RUNTIMES] = OUTSIDE_RUNTIMES, [SERVICE_FACTS] = OUTSIDE_FACTS,
		[SERVICE_CODE] = OUTSIDE_RUNTIMES,
	};
	const struct reader_pool_options options = {
		.services = services,
		.service_count = SERVICE_COUNT,
		.name = "sysprof-reader",
		.books = books,
		.things = things,
	};

	return reader_pool__new(&options, pool);
}
