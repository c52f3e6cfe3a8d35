/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TENANTS_OWNER_H
#define TENANTS_OWNER_H

#include <stdint.h>
#include <sys/types.h>

#include "tenants/tenant_user.h"

#define HELPER_OWNER_UNKNOWN TENANT_UNKNOWN

/*
 * The owner who is charged for reading a process: its user (tenants/tenant_user.h). User 0 of another
 * mount namespace is another owner. Makes no system call that the process can hold up.
 */
uint64_t helper_owner(pid_t pid);
/* An owner's user, for the books of the outside. */
uint32_t helper_owner_user(uint64_t owner);

#endif
