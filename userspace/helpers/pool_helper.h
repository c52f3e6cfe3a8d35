/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef HELPERS_POOL_HELPER_H
#define HELPERS_POOL_HELPER_H

#include "helpers/child.h"

/* A helper of a pool, whose options are its data: sends its pid, then serves requests. */
int pool_helper__run(const struct child_self *self);

#endif
