/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TENANTS_POOL_HELPER_H
#define TENANTS_POOL_HELPER_H

struct child_self;

/* A helper: sends its pid, then serves requests. Its data are the pool's options. */
int pool_helper__run(const struct child_self *self);

#endif
