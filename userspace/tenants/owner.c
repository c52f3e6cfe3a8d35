/* SPDX-License-Identifier: BSD-2-Clause */
#include "tenants/owner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define IN_NAMESPACE (1ull << 32)

/* The number in "mnt:[4026531840]"; 0: unreadable. The kernel makes this text without any file. */
static uint64_t mount_namespace(const char *process)
{
	char path[64], text[64], *bracket;
	ssize_t size;

	snprintf(path, sizeof(path), "/proc/%s/ns/mnt", process);
	size = readlink(path, text, sizeof(text) - 1);
	if (size <= 0)
		return 0;
	text[size] = '\0';
	bracket = strchr(text, '[');
	return bracket ? strtoull(bracket + 1, NULL, 10) : 0;
}

/* Cached by pid, because a child may enter another one. */
static uint64_t own_mount_namespace(void)
{
	static _Thread_local uint64_t number;
	static _Thread_local pid_t whose;
	pid_t self = getpid();

	if (whose != self) {
		number = mount_namespace("self");
		whose = number ? self : 0;
	}
	return number;
}

uint64_t helper_owner(pid_t pid)
{
	char number[16];
	uint64_t theirs;
	uint32_t user = tenant_user(pid);

	if (user == TENANT_UNKNOWN || user)
		return user;
	snprintf(number, sizeof(number), "%d", pid);
	theirs = mount_namespace(number);
	return theirs == own_mount_namespace() ? 0 : IN_NAMESPACE + theirs;
}

uint32_t helper_owner_user(uint64_t owner)
{
	return owner < IN_NAMESPACE ? (uint32_t)owner : 0;
}
