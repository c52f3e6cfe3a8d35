/* SPDX-License-Identifier: BSD-2-Clause */
/* Sentences of a comparison, for text and Markdown. */
#ifndef COMPARE_OUTPUT_PRIVATE_H
#define COMPARE_OUTPUT_PRIVATE_H

#define SENTENCE_SIZE 1024
#define VALUE_SIZE    32
#define NAME_SIZE     512

#endif
