/* SPDX-License-Identifier: BSD-2-Clause */
/* The user behind sudo, and becoming that user for work that needs no privileges. */
#ifndef CLI_SUDO_USER_H
#define CLI_SUDO_USER_H

#include "base/log.h"

/*
 * Gives up every privilege that the process has: root called by sudo becomes its caller (SUDO_UID, SUDO_GID) for
 * good, groups and home directory included, and no capability is kept. 0, or negative errno with
 * `failure` filled: then the process must not go on.
 */
int drop_privileges(struct failure *failure);

#endif
