/* SPDX-License-Identifier: BSD-2-Clause */
/* Scope guards: a local that is marked with one of these is released when its scope ends. */
#ifndef BASE_CLEANUP_H
#define BASE_CLEANUP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(fn) __attribute__((cleanup(fn)))

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void cleanup_fclose(FILE **f)
{
	if (*f)
		fclose(*f);
}

static inline void cleanup_closedir(DIR **d)
{
	if (*d)
		closedir(*d);
}

#define _cleanup_free_	   _cleanup_(cleanup_free)
#define _cleanup_close_	   _cleanup_(cleanup_close)
#define _cleanup_fclose_   _cleanup_(cleanup_fclose)
#define _cleanup_closedir_ _cleanup_(cleanup_closedir)

/* Passes a guarded value on and leaves the empty value to the guard. */
#define steal_ptr(p)                                                                               \
	({                                                                                         \
		__typeof__(p) stolen_ = (p);                                                       \
		(p) = NULL;                                                                        \
		stolen_;                                                                           \
	})

/* The end of a constructor: *to is the object; after an error it is destroyed. Returns `err`. */
#define finish_new(err, object, destroy, to)                                                       \
	({                                                                                         \
		const int new_err_ = (err);                                                        \
		if (new_err_)                                                                      \
			destroy(object);                                                           \
		else                                                                               \
			*(to) = (object);                                                          \
		new_err_;                                                                          \
	})

#define steal_fd(fd)                                                                               \
	({                                                                                         \
		int stolen_ = (fd);                                                                \
		(fd) = -1;                                                                         \
		stolen_;                                                                           \
	})

#endif
