/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbolize/debug_writers.h"

#define ROOT 0

void debug_writers__add(struct debug_writers *w, uint32_t user)
{
	if (user == ROOT || user == w->user)
		return;
	w->is_several |= w->user != ROOT;
	w->user = user;
}

void debug_writers__add_file(struct debug_writers *w, const struct stat *st)
{
	debug_writers__add(w, st->st_uid);
	w->is_several |= st->st_mode & S_IWOTH ||
			 (st->st_mode & S_IWGRP && st->st_gid != st->st_uid);
}

void debug_writers__add_all(struct debug_writers *w, const struct debug_writers *other)
{
	debug_writers__add(w, other->user);
	w->is_several |= other->is_several;
}

uint32_t debug_writers__reader(const struct debug_writers *w)
{
	return w->is_several ? ROOT : w->user;
}
