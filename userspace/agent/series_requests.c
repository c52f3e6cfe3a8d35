/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/series_requests.h"

#include <stdlib.h>

static int seal_request(struct series_request *request, const struct series_requests *kind)
{
	int err = 0;

	if (request->facts.series)
		err = kind->seal(request);
	request->facts = (struct request_facts){};
	return err;
}

static int add_part(struct series_request *request, const struct series_requests *kind,
		    const struct series_part *part)
{
	_cleanup_bytes_ struct bytes made = {};
	int err = kind->make(part, &made);

	if (!err && request->facts.series &&
	    (request->facts.series == kind->series_max ||
	     request->body.count + made.count > kind->size_max))
		err = seal_request(request, kind);
	if (!err)
		err = kind->add(request, &made);
	request->facts.series++;
	request->facts.samples += part->samples;
	request->facts.cpu_ns += part->cpu_ns;
	return err;
}

int series__seal(const struct agent_window *window, const struct series_options *options,
		 const struct series_requests *kind, struct sealed_window *sealed)
{
	struct sealed_window made = sealed_window__of(window);
	struct series_request request = {.sealed = &made};
	struct series series;
	int err = series__new(window, options, &series);

	if (err)
		return err;
	made.series_invalid = series.invalid;
	made.samples_invalid = series.invalid_samples;
	for (size_t i = 0; i < series.count && !err; i++)
		err = add_part(&request, kind, &series.data[i]);
	if (!err)
		err = seal_request(&request, kind);
	free(request.body.data);
	series__free(&series);
	if (err)
		sealed_window__fini(&made);
	else
		*sealed = made;
	return err;
}
