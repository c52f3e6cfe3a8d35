/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNWIND_UNWIND_TABLE_CHECK_H
#define UNWIND_UNWIND_TABLE_CHECK_H

struct unwind_table_image;

/*
 * Checks an image from disk or from another process, which a tenant may control: sizes and offsets
 * are consistent, rows sorted, indices within bounds, and each rule is one that a builder can make.
 * Does not check that rules match the file. `bytes` must be private: no other thread or process
 * writes it. Never reads beyond `size`; takes time in proportion to it. 0 or -EBADMSG.
 */
int unwind_table_image__check(const struct unwind_table_image *image);

#endif
