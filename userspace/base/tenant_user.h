/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * To whom it is charged what a process makes us do: one number for a user, whatever he does to look like many.
 *
 * It is the real uid, not that of the program which the process runs, nor the owner of its directory in /proc, which a
 * process can make root. In another user namespace than ours a process can have any uid of those that its user was
 * given, and make any number of namespaces: there it is who made the outermost of them. Makes no system call that the
 * process can hold up.
 */
#ifndef BASE_TENANT_USER_H
#define BASE_TENANT_USER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define TENANT_UNKNOWN UINT32_MAX

/* TENANT_UNKNOWN: it is gone, or /proc does not say. */
uint32_t tenant_user(pid_t pid);

/*
 * The same of one whose real uid is known. *apart: it is in another user namespace than we; whose namespace cannot be
 * seen is taken for one. 0; -ESRCH: it is gone; -EACCES …: our own namespace cannot be seen.
 */
int tenant_user__of(pid_t pid, uid_t uid, uint32_t *user, bool *apart);

#endif
