/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/managed_function.h"

#include "base/search.h"

void managed_function__fini(struct managed_function *f)
{
	vec_free(&f->rows);
}

const struct managed_row *managed_function__row(const struct managed_function *f, uint32_t offset)
{
	size_t at = partition_point(f->rows.data, f->rows.count, row, row->offset <= offset);

	return at ? &f->rows.data[at - 1] : NULL;
}
