/* SPDX-License-Identifier: BSD-2-Clause */
#include "formats/in/perf_lines.h"

#define RECORD		   "PERF_RECORD_"
#define DEFERRED	   "DEFERRED CALLCHAIN"
#define NS		   1000000000ULL
#define SECONDS_MAX	   (1ULL << 32)
#define FRACTION_DIGITS	   9
#define MICROSECOND_DIGITS 6
#define PERIOD_WIDTH	   11 /* of a column of periods, with the blank before it */
#define PERIOD_DIGITS	   10 /* of the same column without the blank, where a line begins */
#define FLAG_TOKENS	   3  /* between a task and the time */
#define ADDRESS_INDENT	   3
#define BARE_DIGITS	   8 /* of an address that is not indented, at least */
#define SOURCE_INDENT	   2
#define COLUMN_BLANKS	   2 /* before an address behind an event, at least */
#define LINE_DIGITS_MAX	   9

/* ---- numbers and words ----------------------------------------------------------------------- */

/* All of the text is a number of at most `max`. */
static bool read_number(struct span s, uint64_t max, uint64_t *number)
{
	uint64_t value = 0;

	if (s.at == s.end)
		return false;
	for (; s.at < s.end; s.at++) {
		uint64_t digit = (uint64_t)(*s.at - '0');

		if (!is_digit(*s.at) || value > (UINT64_MAX - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	*number = value;
	return value <= max;
}

static struct span first_token(struct span *rest)
{
	struct span token = trim_left(*rest);
	const char *end = token.at;

	while (end < token.end && !is_space(*end))
		end++;
	rest->at = token.end = end;
	return token;
}

static struct span last_token(struct span *rest)
{
	struct span token = trim_right(*rest);
	const char *at = token.end;

	while (at > token.at && !is_space(at[-1]))
		at--;
	rest->end = token.at = at;
	return token;
}

/* ---- the task -------------------------------------------------------------------------------- */

/* "12", or -1 of a task that perf has not seen. */
static bool read_id(struct span s, uint32_t *id)
{
	uint64_t number = 0;

	if (!span_is(s, "-1") && !read_number(s, UINT32_MAX - 1, &number))
		return false;
	*id = (uint32_t)number;
	return true;
}

/* "tid" or "pid/tid" */
static bool read_task(struct span s, struct perf_fields *f)
{
	const char *slash = memchr(s.at, '/', span_size(s));

	if (slash && !read_id((struct span){s.at, slash}, &f->pid))
		return false;
	f->has_pid = slash && !span_begins(s, "-1");
	f->has_tid = read_id((struct span){slash ? slash + 1 : s.at, s.end}, &f->tid);
	return f->has_tid;
}

static bool read_cpu(struct span s, uint64_t *number)
{
	return span_size(s) > 2 && *s.at == '[' && s.end[-1] == ']' &&
	       read_number((struct span){s.at + 1, s.end - 1}, UINT32_MAX, number);
}

static bool is_cpu(struct span s)
{
	uint64_t number;

	return read_cpu(s, &number);
}

/* "K", "Sp": what was interrupted (-F +misc); a date or the time of a day (+tod). */
static bool is_flag(struct span s)
{
	return is_digit(*s.at) || (span_size(s) <= 2 && *s.at >= 'A' && *s.at <= 'Z');
}

static bool take_cpu(struct span token, struct perf_fields *f)
{
	uint64_t number;

	if (!read_cpu(token, &number))
		return false;
	f->cpu = number < UINT16_MAX ? (uint16_t)(number + 1) : 0;
	return true;
}

static void drop_cpu(struct span *before, struct perf_fields *f)
{
	struct span rest = *before, token = last_token(&rest);

	if (take_cpu(token, f))
		*before = rest;
}

/* All up to the time. */
static void read_owner(struct span before, struct perf_fields *f)
{
	struct span rest = before, token;

	drop_cpu(&rest, f);
	for (int i = 0; i < FLAG_TOKENS; i++) {
		token = last_token(&rest);
		if (take_cpu(token, f)) { /* flags behind it */
			token = last_token(&rest);
			i = FLAG_TOKENS;
		}
		if (read_task(token, f)) {
			f->comm = trim_right(trim_left(rest));
			return;
		}
		if (token.at == token.end || !is_flag(token))
			break;
	}
	drop_cpu(&before, f);
	f->comm = trim_right(trim_left(before));
}

/* ---- the time -------------------------------------------------------------------------------- */

static bool is_after_cpu(const char *start, const char *at)
{
	struct span before = {start, at};

	return is_cpu(last_token(&before));
}

/* Where "394.009006" begins, which ends at `colon`; NULL: there is no time. */
static const char *time_before(const char *start, const char *colon)
{
	const char *dot = colon, *at;

	while (dot > start && is_digit(dot[-1]))
		dot--;
	if (dot == colon || colon - dot > FRACTION_DIGITS || dot == start || dot[-1] != '.')
		return NULL;
	for (at = --dot; at > start && is_digit(at[-1]);)
		at--;
	if (at == dot || (at > start && !is_space(at[-1])))
		return NULL;
	return colon - dot > MICROSECOND_DIGITS || is_after_cpu(start, at) ? at : NULL;
}

/* "394.009006" or, of simpleperf, "394.9006": microseconds. With more digits nanoseconds. */
static bool read_time(const char *at, const char *colon, uint64_t *ns)
{
	const char *dot = memchr(at, '.', (size_t)(colon - at));
	uint64_t seconds, fraction;

	if (!read_number((struct span){at, dot}, SECONDS_MAX, &seconds) ||
	    !read_number((struct span){dot + 1, colon}, NS, &fraction))
		return false;
	for (size_t n = (size_t)(colon - dot - 1); n > MICROSECOND_DIGITS && n < FRACTION_DIGITS;
	     n++)
		fraction *= 10;
	*ns = seconds * NS + fraction * (colon - dot - 1 > MICROSECOND_DIGITS ? 1 : 1000);
	return true;
}

/* The next colon before a blank, or at the end. */
static const char *find_colon(struct span s)
{
	while ((s.at = memchr(s.at, ':', span_size(s))) != NULL) {
		if (s.at + 1 == s.end || is_space(s.at[1]) || s.at[1] == '\r')
			return s.at;
		s.at++;
	}
	return NULL;
}

/* The first time of a line and what lies around it. */
static bool split_at_time(struct span line, struct perf_fields *f, struct span *before,
			  struct span *after)
{
	struct span rest = line;
	const char *colon;

	while ((colon = find_colon(rest)) != NULL) {
		const char *at = time_before(line.at, colon);

		rest.at = colon + 1;
		if (!at || !read_time(at, colon, &f->time))
			continue;
		f->has_time = true;
		*before = (struct span){line.at, at};
		*after = rest;
		return true;
	}
	return false;
}

/* ---- period and event ------------------------------------------------------------------------ */

static bool begins_with_address(struct span s)
{
	uint64_t address;
	struct span symbol;

	return perf_line__address(s, &address, &symbol) && symbol.at < symbol.end;
}

/* What follows the time. A number alone, or before an event, is a period; else it is an address. */
static void read_event(struct span after, struct perf_fields *f)
{
	struct span rest = after, token = first_token(&rest);
	const char *colon;

	f->has_period = read_number(token, UINT64_MAX, &f->period);
	if (!f->has_period)
		rest = after; /* it begins the event */
	rest = trim_right(trim_left(rest));
	f->rest = rest;
	colon = rest.at < rest.end ? find_colon(rest) : NULL;
	if (colon && !begins_with_address((struct span){rest.at, colon})) {
		f->event = (struct span){rest.at, colon};
		f->rest.at = colon + 1;
	} else if (f->has_period && rest.at < rest.end) {
		f->has_period = false;
		f->period = 0;
		f->rest.at = token.at;
	}
}

/* ---- lines without a time -------------------------------------------------------------------- */

/* A column of periods is wider than one of numbers of tasks. */
static bool is_period(const char *start, struct span token)
{
	const char *at = token.at;

	while (at > start && is_space(at[-1]))
		at--;
	return token.end - at >= PERIOD_WIDTH;
}

static bool is_frame(struct span line)
{
	struct span symbol;
	uint64_t address;

	return line.at < line.end && is_space(*line.at) &&
	       perf_line__address(line, &address, &symbol) &&
	       (*line.at == '\t' || trim_left(line).at - line.at >= ADDRESS_INDENT);
}

/* "comm tid [cpu] period event:" */
static bool read_untimed(struct span line, struct span next, struct perf_fields *f)
{
	const char *colon = find_colon(line);
	struct span before = {line.at, colon ? colon : line.end}, rest, token;
	bool stack = is_frame((struct span){next.at, line_end(next.at, next.end)});

	f->rest = (struct span){colon ? colon + 1 : line.end, line.end};
	if (colon)
		f->event = last_token(&before);
	rest = before;
	token = last_token(&rest);
	if (is_period(line.at, token) && read_number(token, UINT64_MAX, &f->period)) {
		f->has_period = true;
		before = rest;
	}
	read_owner(before, f);
	if (!f->has_tid)
		return stack && !colon;
	return stack || (colon && f->event.at < f->event.end);
}

/*
 * A task, an event and its colon, and perhaps an address in a column: "     dd 1234 cycles:   401000 f (/a)", which
 * begins with an address, too. Names of functions have such colons, so what follows counts.
 */
static bool read_sure_untimed(struct span line, struct span next, struct perf_fields *f)
{
	struct span rest;

	*f = (struct perf_fields){};
	if (!find_colon(line) || !read_untimed(line, next, f) || !f->has_tid ||
	    f->event.at == f->event.end)
		return false;
	rest = trim_left(f->rest);
	return rest.at == rest.end || rest.end[-1] != ')' ||
	       (rest.at - f->rest.at >= COLUMN_BLANKS && begins_with_address(rest));
}

/* -F period,ip,sym: a number in the column of periods, and a stack below it, where frames begin with a tab. */
static bool read_period_alone(struct span line, struct span next, struct perf_fields *f)
{
	if (next.at == next.end || *next.at != '\t' || span_size(line) < PERIOD_DIGITS ||
	    !read_number(trim_left(line), UINT64_MAX, &f->period) ||
	    !is_frame((struct span){next.at, line_end(next.at, next.end)}))
		return false;
	f->has_period = true;
	f->comm = f->event = f->rest = (struct span){line.end, line.end};
	return true;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* A frame that lost its indentation. */
bool perf_line__is_bare_frame(struct span line)
{
	struct perf_frame frame;
	size_t digits = 0;

	while (line.at + digits < line.end && hex_digit(line.at[digits]) >= 0)
		digits++;
	return digits >= BARE_DIGITS && perf_line__frame(line, &frame) &&
	       (frame.inlined || frame.dso.at < frame.dso.end);
}

static bool read_timed(struct span line, struct perf_fields *f)
{
	struct span before, after;

	if (!split_at_time(line, f, &before, &after))
		return false;
	read_owner(before, f);
	read_event(after, f);
	return true;
}

static enum perf_line kind_of(const struct perf_fields *f)
{
	return span_begins(f->event, RECORD) || span_begins(trim_left(f->rest), RECORD) ||
			       span_begins(trim_left(f->rest), DEFERRED) ||
			       span_begins(f->event, DEFERRED)
		       ? PERF_LINE_RECORD
		       : PERF_LINE_SAMPLE;
}

/* The text of a record has colons of its own. */
static enum perf_line settle_record(struct perf_fields *f)
{
	enum perf_line kind = kind_of(f);

	f->rest = trim_left(f->rest);
	if (kind == PERF_LINE_RECORD && f->event.at < f->event.end)
		f->rest.at = f->event.at;
	return kind;
}

/* A name in a column, a frame, or a source line, which has two blanks before it. */
static enum perf_line read_indented(struct span line, struct span next, struct perf_fields *f)
{
	bool at_source = trim_left(line).at - line.at == SOURCE_INDENT;

	if (*line.at == ' ' && (read_period_alone(line, next, f) || read_timed(line, f) ||
				read_sure_untimed(line, next, f)))
		return settle_record(f);
	if (is_frame(line))
		return PERF_LINE_FRAME;
	*f = (struct perf_fields){};
	if (*line.at == ' ' && read_untimed(line, next, f) && (f->has_tid || !at_source))
		return settle_record(f);
	return PERF_LINE_INDENTED;
}

enum perf_line perf_line__read(struct span line, struct span next, struct perf_fields *f)
{
	line = trim_right(line);
	*f = (struct perf_fields){};
	if (line.at == line.end)
		return PERF_LINE_EMPTY;
	if (is_space(*line.at))
		return read_indented(line, next, f);
	if (*line.at == '#' && (line.at + 1 == line.end || line.at[1] == ' '))
		return PERF_LINE_COMMENT;
	if (read_period_alone(line, next, f) || read_timed(line, f))
		return settle_record(f);
	if (read_sure_untimed(line, next, f))
		return settle_record(f);
	*f = (struct perf_fields){};
	if (perf_line__is_bare_frame(line))
		return PERF_LINE_FRAME;
	return read_untimed(line, next, f) ? settle_record(f) : PERF_LINE_OTHER;
}

/* ---- frames ---------------------------------------------------------------------------------- */

bool perf_line__address(struct span line, uint64_t *address, struct span *symbol)
{
	struct span text = trim_right(trim_left(line));
	uint64_t value = 0;
	int digits = 0;

	for (; text.at < text.end && hex_digit(*text.at) >= 0 && digits <= 16; digits++)
		value = value << 4 | (uint64_t)hex_digit(*text.at++);
	if (!digits || digits > 16 || (text.at < text.end && !is_space(*text.at)))
		return false;
	*address = value;
	*symbol = trim_left(text);
	return true;
}

/* Where the bracket opens that the last one closes, behind a blank; NULL: nowhere. */
static const char *last_bracket(struct span s)
{
	int depth = 0;

	for (const char *at = s.end; at > s.at; at--) {
		depth += (at[-1] == ')') - (at[-1] == '(');
		if (!depth)
			return at - 1 > s.at && at[-2] == ' ' ? at - 1 : NULL;
	}
	return NULL;
}

/* " (dso)" at the end; " (.cold)" belongs to the name of a part of a function. */
static void take_dso(struct span *text, struct perf_frame *frame)
{
	const char *open = text->at < text->end && text->end[-1] == ')' ? last_bracket(*text)
									: NULL;

	if (!open || open[1] == '.')
		return;
	frame->dso = (struct span){open + 1, text->end - 1};
	*text = trim_right((struct span){text->at, open});
	drop_offset(&frame->dso);
	frame->inlined = span_is(frame->dso, "inlined");
	if (frame->inlined || span_is(frame->dso, "[unknown]"))
		frame->dso.end = frame->dso.at;
}

bool perf_line__frame(struct span line, struct perf_frame *frame)
{
	struct span text;

	*frame = (struct perf_frame){.dso = {line.end, line.end}, .symbol = {line.end, line.end}};
	if (!perf_line__address(line, &frame->address, &text))
		return false;
	text.at -= text.at < text.end; /* a blank: the dso may be alone */
	take_dso(&text, frame);
	drop_offset(&text);
	text = trim_left(text);
	frame->symbol = span_is(text, "[unknown]") ? (struct span){text.at, text.at} : text;
	return true;
}

bool perf_line__source(struct span line, struct span *file, uint32_t *number)
{
	struct span text = trim_right(trim_left(line));
	const char *colon = memrchr(text.at, ':', span_size(text));
	uint64_t value;

	if (!colon || text.end - colon - 1 > LINE_DIGITS_MAX ||
	    !read_number((struct span){colon + 1, text.end}, UINT32_MAX, &value))
		return false;
	*file = (struct span){text.at, colon};
	*number = (uint32_t)value;
	return value && file->at < file->end && !span_is(*file, "??");
}

/* ---- records --------------------------------------------------------------------------------- */

/* "12:13" or "12/13" at the begin, before `close`. */
static bool read_pair(struct span s, char separator, char close, uint32_t *pid, uint32_t *tid)
{
	const char *middle = memchr(s.at, separator, span_size(s));
	const char *end = middle ? memchr(middle, close, (size_t)(s.end - middle)) : NULL;

	if (middle && !end && close == '\n')
		end = s.end;
	return end && read_id((struct span){s.at, middle}, pid) &&
	       read_id((struct span){middle + 1, end}, tid);
}

bool perf_line__task(struct span record, uint32_t *pid, uint32_t *tid)
{
	static const char *const mmaps[] = {RECORD "MMAP ", RECORD "MMAP2 "};
	static const char *const forks[] = {RECORD "FORK(", RECORD "EXIT("};
	const char *colon;

	for (size_t i = 0; i < 2; i++) {
		if (span_begins(record, mmaps[i]))
			return read_pair((struct span){record.at + strlen(mmaps[i]), record.end},
					 '/', ':', pid, tid);
		if (span_begins(record, forks[i]))
			return read_pair((struct span){record.at + strlen(forks[i]), record.end},
					 ':', ')', pid, tid);
	}
	colon = memrchr(record.at, ':', span_size(record));
	return span_begins(record, RECORD "COMM") && colon &&
	       read_pair((struct span){colon + 1, record.end}, '/', '\n', pid, tid);
}

bool perf_line__comm(struct span record, struct span *name)
{
	static const char exec[] = RECORD "COMM exec: ";
	const char *colon = memrchr(record.at, ':', span_size(record));

	*name = (struct span){record.at, record.at};
	if (span_begins(record, exec) && colon && colon >= record.at + strlen(exec))
		*name = (struct span){record.at + strlen(exec), colon};
	return span_begins(record, RECORD "COMM");
}

bool perf_line__is_deferred(struct span record)
{
	return span_begins(record, DEFERRED);
}

uint64_t perf_line__lost(struct span record)
{
	struct span rest = record;
	uint64_t count = 0;

	if (!span_begins(record, RECORD "LOST"))
		return 0;
	first_token(&rest);
	return span_is(first_token(&rest), "lost") &&
			       read_number(first_token(&rest), UINT64_MAX, &count)
		       ? count
		       : 0;
}
