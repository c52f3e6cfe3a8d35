/* SPDX-License-Identifier: BSD-2-Clause */
/* The member "meta" of a Firefox profile: facts about the recording, categories, first view. */
#ifndef FORMATS_OUT_FIREFOX_META_H
#define FORMATS_OUT_FIREFOX_META_H

struct firefox;

int firefox_write_meta(const struct firefox *f);

#endif
