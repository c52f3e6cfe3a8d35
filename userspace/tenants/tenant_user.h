/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The user to which the cost of a process is charged: one number for each user, even if the user
 * tries to look like many.
 *
 * It is the real uid, not the effective one, nor the owner of the directory in /proc, which a
 * process can make root. In another user namespace a process can have any uid mapped there and
 * create any number of namespaces: there it is the creator of the outermost one, or that one's
 * inode if root created it. Makes no system call that the process can hold up.
 */
#ifndef TENANTS_TENANT_USER_H
#define TENANTS_TENANT_USER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define TENANT_UNKNOWN UINT32_MAX

/* TENANT_UNKNOWN: it is gone, or /proc does not have it. */
uint32_t tenant_user(pid_t pid);

/*
 * The same for a process with a known real uid. *apart: in another user namespace than we, or its
 * namespace cannot be read. 0; -ESRCH: gone; -EACCES …: our own namespace cannot be read.
 */
int tenant_user__of(pid_t pid, uid_t uid, uint32_t *user, bool *apart);

#endif
