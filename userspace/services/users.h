/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of users, from the host's /etc/passwd alone: other sources (LDAP, a daemon) may take seconds
 * to answer. A user of a container is named as the host names the number, as in ps.
 */
#ifndef SERVICES_USERS_H
#define SERVICES_USERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define USER_NAME_SIZE 64
#define USERS_FILE_MAX (4u << 20) /* bytes */
#define USERS_MAX      65536u

struct users;

/* `path`: "/etc/passwd". A file that cannot be read has no users. 0 or -ENOMEM. */
int users__new(const char *path, struct users **users);
void users__free(struct users *users);

/* The number of the first user of this name. 0, -ENOENT or -ENOMEM. */
int users_find(const char *path, const char *name, uid_t *uid);

/* The first name of this number; the number itself, if it has none. */
void users__name(const struct users *users, uid_t uid, char name[USER_NAME_SIZE]);

#endif
