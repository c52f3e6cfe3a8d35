/* SPDX-License-Identifier: BSD-2-Clause */
#include "tenants/classes.h"

#include <linux/capability.h>

#include "base/clocks.h"

#define BIT(capability) (1ull << (capability))

/*
 * To read /proc/PID (root, map_files, memory) and files of any user, by a child with that user's ids
 * where the file system wants them. CAP_SYS_ADMIN is for map_files without CAP_CHECKPOINT_RESTORE;
 * confine() drops it otherwise.
 */
#define OF_READERS                                                                                 \
	(BIT(CAP_SYS_PTRACE) | BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_SYS_ADMIN) |                     \
	 BIT(CAP_CHECKPOINT_RESTORE) | BIT(CAP_SETUID) | BIT(CAP_SETGID))
/* The same, and to act as a process's user; children become users and send signals. */
#define OF_WATCHERS                                                                                \
	(OF_READERS | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) | BIT(CAP_MAC_OVERRIDE) |            \
	 BIT(CAP_KILL))
/* To become another user and enter an empty root: what confine() needs in a child. */
#define OF_SEALED_KEEPERS (BIT(CAP_SETUID) | BIT(CAP_SETGID) | BIT(CAP_SYS_CHROOT))

const struct helper_class helper_classes[HELPER_CLASS_COUNT] = {
	[HELPER_READER_KEEPER] = {.capabilities = OF_READERS},
	[HELPER_WATCHER_KEEPER] = {.capabilities = OF_WATCHERS},
	[HELPER_SEALED_KEEPER] = {.capabilities = OF_SEALED_KEEPERS},
	[HELPER_READER] = {.name = "sysprof-reader",
			   .capabilities = OF_READERS,
			   .memory = 1536ull << 20,
			   .silence = NS_PER_SECOND,
			   .wall_time = 10 * NS_PER_SECOND,
			   .hangs = 2},
	[HELPER_WATCHER] = {.name = "sysprof-jit",
			    .capabilities = OF_WATCHERS,
			    .files = 2048,
			    .silence = NS_PER_SECOND,
			    .hangs = 1},
	[HELPER_JVM_CLIENT] = {.name = "sysprof-jvm",
			       .user = HELPER_USER_GIVEN,
			       .wall_time = 5 * NS_PER_SECOND},
	[HELPER_FINDER] = {.name = "sysprof-files",
			   .capabilities = BIT(CAP_DAC_READ_SEARCH),
			   .shows_debug = true,
			   .silence = 5 * NS_PER_SECOND,
			   .hangs = 1},
	[HELPER_DOWNLOADER] = {.name = "sysprof-files",
			       .capabilities = BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_DAC_OVERRIDE),
			       .shows_debug = true,
			       .silence = 5 * NS_PER_SECOND,
			       .hangs = 1},
	[HELPER_BUILDER] = {.name = "sysprof-builder",
			    .user = HELPER_USER_OWN,
			    .filter = HELPER_FILTER_WORKER,
			    .empty_root = true,
			    .first_to_go = true,
			    .memory = 576ull << 20,
			    .cpu_seconds = 8, /* more than BUILD_LIMITS has, which gives a reason */
			    .files = 256,
			    .silence = NS_PER_SECOND,
			    .wall_time = 20 * NS_PER_SECOND, /* on a busy machine */
			    .hangs = 3},		     /* a disk may be slow */
	[HELPER_SYMBOLS] = {.name = "sysprof-sealed",
			    .user = HELPER_USER_OWN,
			    .filter = HELPER_FILTER_SEALED,
			    .empty_root = true,
			    .first_to_go = true,
			    .unconfined = true,
			    .reaped = true,	     /* its status and usage are needed */
			    .read_by_parent = true,  /* paths of files that it opens */
			    .memory = 1024ull << 20, /* default; depends on free memory */
			    .cpu_seconds = 30,	     /* default; depends on the module's size */
			    .files = 256,
			    .silence = 10 * NS_PER_SECOND},
	[HELPER_PERF_READER] = {.name = "sysprof-perf",
				.user = HELPER_USER_OWN,
				.filter = HELPER_FILTER_WORKER,
				.empty_root = true,
				.first_to_go = true,
				.unconfined = true, /* then it reads nothing, and reports why */
				.memory = 1024ull << 20,
				.cpu_seconds = 30, /* default; depends on the file's size */
				.files = 16,
				.silence = 60 * NS_PER_SECOND}, /* the file may be on a network */
	[HELPER_SERVER] = {.as_parent = true},
	/* it needs only a program's descriptor to run it */
	[HELPER_VISITOR] = {.name = "sysprof-visitor", .silence = NS_PER_SECOND},
};
