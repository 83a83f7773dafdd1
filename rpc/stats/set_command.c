/* SPDX-License-Identifier: BSD-3-Clause */
/* The request "rpc set" of the control socket: lnet_control(7). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/rpc.h"
#include "rpc/service_set.h"
#include "rpc/stats/stats.h"
#include "rpc/stats/yaml.h"

static const struct {
	const char *name;
	int64_t least, most;
	bool of_workers; /* only services with workers have it */
} items[SERVICE_SET_ITEMS] = {
#define ITEM(name, least, most, workers) { #name, least, most, workers },
	SERVICE_SETS(ITEM)
#undef ITEM
};

const char *const set_keys[] = {
	"service",
	"policy",
#define ITEM(name, least, most, workers) #name,
	SERVICE_SETS(ITEM)
#undef ITEM
		NULL,
};

struct set_job {
	struct shard *shard;
	struct service_set set;
};

/* Runs on CPT 0. */
static int set_run(void *arg)
{
	struct set_job *job = arg;

	return job->shard->rpc->server->set(job->shard, &job->set);
}

static int set_read(struct lnet_control_call *call, struct service_set *set)
{
	int rc = lnet_control_text(call, "service", &set->service);

	if (!rc && !set->service)
		return lnet_control_fail(call, -EINVAL,
					 "service: a name is expected");
	if (!rc)
		rc = lnet_control_text(call, "policy", &set->policy);
	for (unsigned int i = 0; i < SERVICE_SET_ITEMS && !rc; i++) {
		int64_t value = -1;

		rc = lnet_control_number(call, items[i].name, items[i].least,
					 items[i].most, &value);
		if (value < 0)
			continue;
		set->values[i] = (uint64_t)value;
		set->given |= 1u << i;
	}
	return rc;
}

static void set_print(const struct service_set *set, FILE *out)
{
	struct yaml y = { .out = out };

	yaml_line(&y, "rpc:");
	y.depth++;
	yaml_name(&y, "service", set->service);
	if (set->has_workers)
		yaml_name(&y, "policy", set->policy_now);
	for (unsigned int i = 0; i < SERVICE_SET_ITEMS; i++)
		if (set->has_workers || !items[i].of_workers)
			yaml_count(&y, items[i].name, set->values[i]);
}

static int set_text(const struct service_set *set, char **output_p)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	int rc = -ENOMEM;

	if (f) {
		set_print(set, f);
		rc = ferror(f) ? -ENOMEM : 0;
		if (fclose(f))
			rc = -ENOMEM;
	}
	if (rc)
		free(text);
	else
		*output_p = text;
	return rc;
}

int on_set(void *arg, struct lnet_control_call *call, char **output_p)
{
	struct ulrpc *rpc = arg;
	struct set_job job = { .shard = &rpc->shards[0] };
	struct service_set *set = &job.set;
	int rc = set_read(call, set);

	if (rc)
		return rc;
	rc = lnet_call(rpc->node, 0, set_run, &job);
	if (rc)
		rc = lnet_control_fail(call, rc,
				       *set->why ? set->why : strerror(-rc));
	else if (!set->given && !set->policy)
		rc = set_text(set, output_p);
	free(set->policy_now);
	return rc;
}
