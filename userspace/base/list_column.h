/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Columns of lists that are X-macros, X(ENUM, second, third, …), for arrays by the number of an enum of
 * the same list: `texts[] = {STATES(SECOND_COLUMN)}`.
 */
#ifndef BASE_LIST_COLUMN_H
#define BASE_LIST_COLUMN_H

#define SECOND_COLUMN(id, second, ...)	     second,
#define THIRD_COLUMN(id, second, third, ...) third,

#endif
