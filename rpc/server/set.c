/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changes a service while it runs (rpc/service_set.h). Thread: that of CPT 0,
 * so no two changes are made at once, and the service's workers do not end
 * meanwhile: they end after service_cpt_stop() on CPT 0.
 */
#include "rpc/server/set.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/server/serve/service.h"

static int __attribute__((format(printf, 3, 4)))
set_refuse(struct service_set *set, int rc, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(set->why, sizeof(set->why), fmt, args);
	va_end(args);
	return rc;
}

static bool is_given(const struct service_set *set, enum service_set_item i)
{
	return set->given & 1u << i;
}

static const struct {
	const char *name;
	enum set_of of;
} items[SERVICE_SET_ITEMS] = {
#define ITEM(name, least, most, of) { #name, of },
	SERVICE_SETS(ITEM)
#undef ITEM
};

/* ---- what the service has ---- */

/* What streams have is not known here. */
static void values_read(struct ulrpc_service *svc,
			uint64_t values[SERVICE_SET_ITEMS])
{
	struct exec_limits e = { 0 };

	if (svc->has_exec)
		exec_limits(&svc->exec, &e);
	values[SERVICE_SET_workers_min] = e.min;
	values[SERVICE_SET_workers_max] = e.max;
	values[SERVICE_SET_high_ratio] = e.ratio;
	values[SERVICE_SET_queue_max] = service_limit(svc, queue_max);
	values[SERVICE_SET_queue_bytes_max] =
		service_limit(svc, queue_bytes_max);
	values[SERVICE_SET_request_limit] = service_limit(svc, request_limit);
	values[SERVICE_SET_reply_limit] = service_limit(svc, reply_limit);
	values[SERVICE_SET_window] = service_limit(svc, window);
	values[SERVICE_SET_segments] = service_limit(svc, segments);
	values[SERVICE_SET_retry_after] = service_limit(svc, retry_after);
}

static void set_tell(struct ulrpc_service *svc, struct service_set *set,
		     char *policy)
{
	values_read(svc, set->values);
	set->has_workers = svc->has_exec;
	set->policy_now = policy;
}

/* ---- what is refused ---- */

/* Checks how long requests may be, and how much memory they may take. */
static int bytes_check(struct ulrpc_service *svc, struct service_set *set,
		       const uint64_t *v)
{
	if (v[SERVICE_SET_request_limit] < svc->conf.request_max)
		return set_refuse(set, -EINVAL,
				  "request_limit: %" PRIu64
				  " is less than request_max, %u",
				  v[SERVICE_SET_request_limit],
				  svc->conf.request_max);
	if (v[SERVICE_SET_queue_bytes_max] < svc->conf.request_max)
		return set_refuse(set, -EINVAL,
				  "queue_bytes_max: %" PRIu64
				  " is less than request_max, %u",
				  v[SERVICE_SET_queue_bytes_max],
				  svc->conf.request_max);
	if (v[SERVICE_SET_queue_bytes_max] < v[SERVICE_SET_request_limit])
		return set_refuse(set, -EINVAL,
				  "queue_bytes_max: %" PRIu64
				  " is less than request_limit, %" PRIu64,
				  v[SERVICE_SET_queue_bytes_max],
				  v[SERVICE_SET_request_limit]);
	return 0;
}

static int streams_check(struct service_set *set)
{
	for (unsigned int i = 0; i < SERVICE_SET_ITEMS; i++)
		if (items[i].of == SET_OF_STREAMS && !set->has_streams &&
		    is_given(set, (enum service_set_item)i))
			return set_refuse(set, -EINVAL,
					  "%s: the service has no streams",
					  items[i].name);
	return 0;
}

/* Makes values[] complete, by what the service has, and checks them. */
static int values_check(struct ulrpc_service *svc, struct service_set *set)
{
	uint64_t now[SERVICE_SET_ITEMS], *v = set->values;
	const uint32_t of_workers = 1u << SERVICE_SET_workers_min |
				    1u << SERVICE_SET_workers_max |
				    1u << SERVICE_SET_high_ratio;

	values_read(svc, now);
	for (unsigned int i = 0; i < SERVICE_SET_ITEMS; i++)
		if (items[i].of != SET_OF_STREAMS &&
		    !is_given(set, (enum service_set_item)i))
			v[i] = now[i];
	if (!svc->has_exec && (set->policy || set->given & of_workers))
		return set_refuse(set, -EINVAL,
				  "%s: all methods of the service run inline, "
				  "without workers",
				  set->policy ? "policy" : "workers");
	if (v[SERVICE_SET_workers_max] < v[SERVICE_SET_workers_min])
		return set_refuse(set, -EINVAL,
				  "workers_max: %" PRIu64
				  " is less than workers_min, %" PRIu64,
				  v[SERVICE_SET_workers_max],
				  v[SERVICE_SET_workers_min]);
	return streams_check(set) ? -EINVAL : bytes_check(svc, set, v);
}

static bool has_method(const void *svc, uint32_t number)
{
	return service_method(svc, number) != NULL;
}

static int set_plan(struct ulrpc_service *svc, struct service_set *set,
		    struct sched_plan *plan)
{
	struct ulnet_text_error err = { .what = "no memory" };
	int rc = sched_plan_parse(set->policy, plan, &err);

	if (!rc)
		rc = sched_plan_check(plan, set->policy, has_method, svc, &err);
	if (!rc)
		return 0;
	sched_plan_free(plan);
	return set_refuse(set, rc, "policy: '%.100s', at byte %zu: %s",
			  set->policy, err.offset, err.what);
}

/* ---- the change ---- */

static void values_apply(struct ulrpc_service *svc, const uint64_t *v)
{
	const struct exec_limits e = {
		.min = (unsigned int)v[SERVICE_SET_workers_min],
		.max = (unsigned int)v[SERVICE_SET_workers_max],
		.ratio = (unsigned int)v[SERVICE_SET_high_ratio],
	};

	service_limit_set(svc, queue_max, v[SERVICE_SET_queue_max]);
	service_limit_set(svc, queue_bytes_max, v[SERVICE_SET_queue_bytes_max]);
	service_limit_set(svc, request_limit, v[SERVICE_SET_request_limit]);
	service_limit_set(svc, reply_limit, v[SERVICE_SET_reply_limit]);
	service_limit_set(svc, window, v[SERVICE_SET_window]);
	service_limit_set(svc, segments, v[SERVICE_SET_segments]);
	service_limit_set(svc, retry_after, v[SERVICE_SET_retry_after]);
	if (!svc->has_exec)
		return;
	service_limit_set(svc, workers_max, v[SERVICE_SET_workers_max]);
	exec_set_limits(&svc->exec, &e);
}

/* Replaces the policy. What is refused, or cannot be allocated, changes
 * nothing. */
static int policy_apply(struct ulrpc_service *svc, struct service_set *set)
{
	unsigned int ratio = (unsigned int)set->values[SERVICE_SET_high_ratio];
	char *text = strdup(set->policy);
	struct sched_plan plan, before = svc->plan;
	int rc = text ? set_plan(svc, set, &plan)
		      : set_refuse(set, -ENOMEM, "no memory");

	if (rc)
		goto err_text;
	/* the gate borrows the rules from where the plan stays */
	svc->plan = plan;
	rc = exec_set_plan(&svc->exec, &svc->plan, ratio);
	if (rc) {
		svc->plan = before;
		sched_plan_free(&plan);
		set_refuse(set, rc, "no memory");
		goto err_text;
	}
	sched_plan_free(&before);
	free(svc->policy);
	svc->policy = text;
	return 0;

err_text:
	free(text);
	return rc;
}

static int service_set(struct ulrpc_service *svc, struct service_set *set)
{
	int rc = values_check(svc, set);
	char *policy;

	if (rc)
		return rc;
	/* allocated first: what cannot be told is not changed either */
	policy = strdup(set->policy ? set->policy : svc->policy);
	if (!policy)
		return set_refuse(set, -ENOMEM, "no memory");
	rc = set->policy ? policy_apply(svc, set) : 0;
	if (rc) {
		free(policy);
		return rc;
	}
	if (set->given)
		values_apply(svc, set->values);
	set_tell(svc, set, policy);
	return 0;
}

int services_set(struct shard *s, struct service_set *set)
{
	struct service_cpt *sc;

	list_for_each_entry (sc, &s->rpc->services->shard[s->cpt], link)
		if (!sc->service->shared &&
		    !strcmp(sc->service->name, set->service) &&
		    sc->fsm.state == SERVICE_CPT_UP)
			return service_set(sc->service, set);
	return set_refuse(set, -ENOENT, "service: there is no '%s'",
			  set->service);
}
