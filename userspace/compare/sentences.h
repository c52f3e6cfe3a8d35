/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COMPARE_SENTENCES_H
#define COMPARE_SENTENCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compare/compare.h"
#include "compare/output_private.h"

/* The same for waiting time: result is NULL if not compared; and for what a rule judges. */
struct compare_output compare_output_of_waiting(const struct compare_output *o);
struct compare_output compare_output_of_rule(const struct compare_output *o, size_t rule);

/* The result, in one sentence. */
void compare_sentence(const struct compare_output *o, char text[SENTENCE_SIZE]);
/* A side: files, samples, time, losses. */
void compare_side_sentence(const struct compare_output *o, enum compare_side side,
			   char text[SENTENCE_SIZE]);
/* Elapsed time of the runs; false: unknown. */
bool compare_elapsed_sentence(const struct compare_output *o, char text[SENTENCE_SIZE]);
/* The source of the variance of runs. */
void compare_noise_sentence(const struct compare_output *o, char text[SENTENCE_SIZE]);
/* The smallest change that could have been found. */
void compare_detectable_sentence(const struct compare_output *o, char text[SENTENCE_SIZE]);
void compare_ruling_sentence(const struct compare_output *o, size_t rule, char text[SENTENCE_SIZE]);

/* "not worse", "cannot tell", "worse" */
const char *compare_answer_name(enum compare_answer answer);

/* "5.00 %" or "1.25 ms", by the view. */
void compare_value(const struct compare_output *o, double value, char text[VALUE_SIZE]);
/* "+10.0 % (+7.1 to +13.0)" */
void compare_change(const struct compare_output *o, const struct compare_test *t,
		    char text[3 * VALUE_SIZE]);
void compare_q(double q, char text[VALUE_SIZE]);
/* A name that is safe on a terminal, with " (own code)" if `is_self`. */
void compare_name(const struct compare_output *o, uint32_t function, bool is_self,
		  char text[NAME_SIZE]);
/* "main > run > parse"; "… > run > parse" if it is long. */
void compare_path(const struct compare_output *o, const struct compare_row *row,
		  char text[4 * NAME_SIZE]);

#endif
