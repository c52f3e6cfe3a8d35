/* SPDX-License-Identifier: BSD-2-Clause */
/* The reader processes of a live session, and their services. */
#ifndef LIVE_READERS_H
#define LIVE_READERS_H

#include "tenants/pool.h"

enum session_service {
	SERVICE_FILES,	  /* file_search__serve */
	SERVICE_MAPS,	  /* proc_maps__serve */
	SERVICE_RUNTIMES, /* runtime_reader__serve */
	SERVICE_FACTS,	  /* fact_reader__serve */
	SERVICE_CODE,	  /* code_reader__serve */
	SERVICE_COUNT
};

/* `books` counts requests without answers. The caller must have one thread. 0 or negative errno. */
int session_readers__new(struct outside_books *books, struct helper_pool **pool);

#endif
