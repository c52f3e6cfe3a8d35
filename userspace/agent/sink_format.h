/* SPDX-License-Identifier: BSD-2-Clause */
/* A backend's format: what of a window is sent to it, and what its answers mean. */
#ifndef AGENT_SINK_FORMAT_H
#define AGENT_SINK_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent_window.h"
#include "agent/http.h"
#include "base/wire.h"

struct sink_encoding_options {
	const char *node; /* the host's name, for formats that have it beside the labels */
	bool name_all;	  /* frames without a name get one, "libfoo.so+0x1234" */
};

/* X(ENUM, text): what an answer means. The texts are labels of a metric. */
#define SINK_VERDICTS(X)                                                                           \
	X(ACCEPTED, "accepted")                                                                    \
	X(RETRY, "retry")		  /* the same bytes again, later */                        \
	X(AMBIGUOUS, "ambiguous")	  /* it may have been taken: the same bytes again */       \
	X(RETRY_FEW, "retry_few")	  /* again, three times at most, then REJECTED */          \
	X(REJECTED, "rejected")		  /* invalid: never again */                               \
	X(TOO_OLD, "too_old")		  /* outside of the time that the backend takes */         \
	X(TOO_BIG, "too_big")		  /* never again */                                        \
	X(UNAUTHORIZED, "unauthorized")	  /* again, slowly: the token may be renewed */            \
	X(NOT_A_BACKEND, "not_a_backend") /* what answers is something else; again, slowly */

enum sink_verdict {
#define X(id, text) SINK_##id,
	SINK_VERDICTS(X)
#undef X
		SINK_VERDICT_COUNT
};

const char *sink_verdict_text(enum sink_verdict verdict);

/* The meaning of an answer with this status and text. */
struct answer_rule {
	long status;
	const char *text; /* a few words of ASCII in its body; NULL: any */
	bool (*fits)(const struct http_answer *answer); /* NULL: always */
	enum sink_verdict verdict;
};

struct sink_format {
	const char *name; /* "pyroscope", as in TYPE:URL */
	/* Requests within the backend's limits. *sealed is the caller's to free. 0, -ENOMEM. */
	int (*encode)(const struct agent_window *window,
		      const struct sink_encoding_options *options, struct sealed_window *sealed);
	/* Judges a 200: each backend has its own sign of success. NULL: the format is not sent. */
	enum sink_verdict (*judge_200)(const struct http_answer *answer);
	/* Other answers, the first row that fits; ends with status 0. Else as in HTTP. */
	const struct answer_rule *rules;
	/* A request without data, which such a backend answers in its own way. */
	struct {
		const char *path, *type, *body;
	} empty;
	uint64_t oldest; /* ns: an older window is refused by the backend; 0: any is taken */
};

/* NULL-ended. */
const struct sink_format *const *sink_formats(void);
const struct sink_format *sink_format__find(const char *name);

/*
 * HTML with a status up to 400, 500 or 501 is no backend's: it is of a proxy or another server.
 * Unauthorized, if credentials could not be read.
 */
enum sink_verdict sink_format__judge(const struct sink_format *format,
				     const struct http_answer *answer);

/* Does its body contain the text? */
bool answer__says(const struct http_answer *a, const char *text);
/* Does its Content-Type begin so? */
bool answer__has_type(const struct http_answer *a, const char *type);

/* Shared by the formats, for making requests. */

extern const struct sink_format pyroscope_format;
extern const struct sink_format parca_format;
extern const struct sink_format otlp_format;
extern const struct sink_format dir_format;

/* A request without its strings and its body. */
struct request_facts {
	const char *path, *content_type, *content_encoding;
	uint64_t samples, cpu_ns;
	uint32_t series;
};

/* Number and times of a window, and nothing yet to send. */
struct sealed_window sealed_window__of(const struct agent_window *window);

/* Appends a request. Takes the body, which is empty afterwards, whatever happens. 0, -ENOMEM. */
int sealed_window__add(struct sealed_window *sealed, const struct request_facts *facts,
		       struct bytes *body);

#endif
