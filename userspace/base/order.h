/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions for qsort(). One line defines one, by fields of the elements, the first that differs:
 *
 *	DEFINE_ORDER(compare_ticks, struct tick, ASCENDING(node) ?: ASCENDING(line));
 *
 * The expression may be any of `x` and `y`, which point to the elements.
 */
#ifndef BASE_ORDER_H
#define BASE_ORDER_H

#define order_of(a, b)	  (((a) > (b)) - ((a) < (b)))
#define ASCENDING(field)  order_of(x->field, y->field)
#define DESCENDING(field) order_of(y->field, x->field)

#define DEFINE_ORDER(NAME, TYPE, ORDER)                                                            \
	static int NAME(const void *a, const void *b)                                              \
	{                                                                                          \
		TYPE const *x = a;                                                                 \
		TYPE const *y = b;                                                                 \
                                                                                                   \
		return ORDER;                                                                      \
	}                                                                                          \
	struct NAME

#endif
