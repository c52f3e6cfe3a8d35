/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/readers.h"

#include "files/file_search.h"
#include "live/proc/fact_reader.h"
#include "live/proc/proc_maps.h"
#include "runtimes/ask/runtime_reader.h"

int session_readers__new(struct outside_books *books, struct helper_pool **pool)
{
	static const helper_serve_fn services[SERVICE_COUNT] = {
		[SERVICE_FILES] = file_search__serve,	    [SERVICE_MAPS] = proc_maps__serve,
		[SERVICE_RUNTIMES] = runtime_reader__serve, [SERVICE_FACTS] = fact_reader__serve,
		[SERVICE_CODE] = code_reader__serve,
	};
	static const enum outside_thing things[SERVICE_COUNT] = {
		[SERVICE_FILES] = OUTSIDE_FILES,       [SERVICE_MAPS] = OUTSIDE_PROCESS_MAPS,
		[SERVICE_RUNTIMES] = OUTSIDE_RUNTIMES, [SERVICE_FACTS] = OUTSIDE_FACTS,
		[SERVICE_CODE] = OUTSIDE_RUNTIMES,
	};
	const struct helper_pool_options options = {
		.class = HELPER_READER,
		.keeper = HELPER_READER_KEEPER,
		.services = services,
		.service_count = SERVICE_COUNT,
		.books = books,
		.things = things,
	};

	return helper_pool__new(&options, pool);
}
