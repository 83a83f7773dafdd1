/* SPDX-License-Identifier: BSD-3-Clause */
/* The request "rpc set" of the control socket: lnet_control(7). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/rpc.h"
#include "rpc/service_set.h"
#include "rpc/stats/stats.h"
#include "rpc/stats/yaml.h"

struct item {
	const char *name;
	int64_t least, most;
	enum set_of of;
};

static const struct item service_items[SERVICE_SET_ITEMS] = {
#define ITEM(name, least, most, of) { #name, least, most, of },
	SERVICE_SETS(ITEM)
#undef ITEM
};

static const struct item client_items[CLIENT_SET_ITEMS] = {
#define ITEM(name, least, most, of) { #name, least, most, of },
	CLIENT_SETS(ITEM)
#undef ITEM
};

#define HAS(item, items) has_item(item, items, ARRAY_SIZE(items))

static bool has_item(const char *name, const struct item *items, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(items[i].name, name))
			return true;
	return false;
}

/* Arguments of "rpc set". A service and its clients both have a queue_max, and
 * windows of streams. */
const char *const set_keys[] = {
	"service",
	"client",
	"policy",
#define ITEM(name, least, most, of) #name,
	SERVICE_SETS(ITEM)
#undef ITEM
		"inflight_max",
	"queue_bytes",
	"patience",
	NULL,
};

/* ---- arguments ---- */

/* Does the @item of @service follow from something else? What carries streams
 * is as long as their windows allow. */
static bool follows(const char *service, const char *item)
{
	return !strcmp(service, RPC_STREAM_CARRIER) &&
	       (!strcmp(item, "request_limit") || !strcmp(item, "reply_limit"));
}

static int refuse_following(struct lnet_control_call *call, const char *item)
{
	char why[100];

	snprintf(why, sizeof(why),
		 "%s: what " RPC_STREAM_CARRIER
		 " takes follows from the windows of streams",
		 item);
	return lnet_control_fail(call, -EINVAL, why);
}

/* Gets those of the @n @items of @service that are given: bit i of *@given. */
static int items_read(struct lnet_control_call *call, const char *service,
		      const struct item *items, unsigned int n,
		      uint64_t *values, uint32_t *given)
{
	int rc = 0;

	for (unsigned int i = 0; i < n && !rc; i++) {
		int64_t value = -1;

		rc = lnet_control_number(call, items[i].name, items[i].least,
					 items[i].most, &value);
		if (value < 0)
			continue;
		if (follows(service, items[i].name))
			return refuse_following(call, items[i].name);
		values[i] = (uint64_t)value;
		*given |= 1u << i;
	}
	return rc;
}

/* Refuses what only services have, or only clients. */
static int item_refuse(struct lnet_control_call *call, const struct item *item,
		       const char *others)
{
	int64_t value = INT64_MIN;
	int rc = lnet_control_number(call, item->name, INT64_MIN, INT64_MAX,
				     &value);
	char why[64];

	if (rc || value == INT64_MIN)
		return rc;
	snprintf(why, sizeof(why), "%s: only %s have it", item->name, others);
	return lnet_control_fail(call, -EINVAL, why);
}

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

static int service_read(struct lnet_control_call *call, struct service_set *set)
{
	int rc = lnet_control_text(call, "policy", &set->policy);

	for (unsigned int i = 0; i < CLIENT_SET_ITEMS && !rc; i++)
		if (!HAS(client_items[i].name, service_items))
			rc = item_refuse(call, &client_items[i], "clients");
	return rc ? rc
		  : items_read(call, set->service, service_items,
			       SERVICE_SET_ITEMS, set->values, &set->given);
}

static int client_read(struct lnet_control_call *call, struct client_set *set)
{
	const char *policy = NULL;
	int rc = lnet_control_text(call, "policy", &policy);

	if (!rc && policy)
		rc = lnet_control_fail(call, -EINVAL,
				       "policy: only services have it");
	for (unsigned int i = 0; i < SERVICE_SET_ITEMS && !rc; i++)
		if (!HAS(service_items[i].name, client_items))
			rc = item_refuse(call, &service_items[i], "services");
	return rc ? rc
		  : items_read(call, set->service, client_items,
			       CLIENT_SET_ITEMS, set->values, &set->given);
}

/* ---- answers ---- */

static void service_print(struct yaml *y, const void *arg)
{
	const struct service_set *set = arg;

	yaml_name(y, "service", set->service);
	if (set->has_workers)
		yaml_name(y, "policy", set->policy_now);
	for (unsigned int i = 0; i < SERVICE_SET_ITEMS; i++)
		if (service_items[i].of == SET_OF_WORKERS   ? set->has_workers
		    : service_items[i].of == SET_OF_STREAMS ? set->has_streams
							    : true)
			yaml_count(y, service_items[i].name, set->values[i]);
}

static void client_print(struct yaml *y, const void *arg)
{
	const struct client_set *set = arg;

	yaml_name(y, "client", set->service);
	yaml_count(y, "clients", set->clients);
	yaml_count(y, "sets", set->sets);
	for (unsigned int i = 0; i < CLIENT_SET_ITEMS; i++)
		if (set->streams || client_items[i].of != SET_OF_STREAMS)
			yaml_count(y, client_items[i].name, set->now[i]);
}

static int set_text(void (*print)(struct yaml *y, const void *set),
		    const void *set, char **output_p)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	int rc = -ENOMEM;

	if (f) {
		struct yaml y = { .out = f };

		yaml_line(&y, "rpc:");
		y.depth++;
		print(&y, set);
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

/* ---- the request ---- */

static int set_service(struct ulrpc *rpc, struct lnet_control_call *call,
		       const char *name, char **output_p)
{
	struct set_job job = { .shard = &rpc->shards[0], .set.service = name };
	struct service_set *set = &job.set;
	int rc = service_read(call, set);

	if (rc)
		return rc;
	rc = lnet_call(rpc->node, 0, set_run, &job);
	if (rc)
		rc = lnet_control_fail(call, rc,
				       *set->why ? set->why : strerror(-rc));
	else if (!set->given && !set->policy)
		rc = set_text(service_print, set, output_p);
	free(set->policy_now);
	return rc;
}

struct clients_job {
	struct shard *shard;
	struct client_set *set;
};

/* Runs on each CPT. */
static int clients_run(void *arg)
{
	struct clients_job *job = arg;

	job->shard->rpc->client->set_clients(job->shard, job->set);
	return 0;
}

/* Changes what @set says, and looks at what there is. */
static int clients_each(struct ulrpc *rpc, struct client_set *set)
{
	int rc = 0;

	for (unsigned int i = 0; i < rpc->ncpts && !rc; i++) {
		struct clients_job job = { &rpc->shards[i], set };

		rc = lnet_call(rpc->node, i, clients_run, &job);
	}
	return rc;
}

/* Refuses what is said of streams, if no client opens any. @there: what there
 * is. */
static int streams_check(struct lnet_control_call *call,
			 const struct client_set *set,
			 const struct client_set *there)
{
	char why[120];

	for (unsigned int i = 0; i < CLIENT_SET_ITEMS && !there->streams; i++)
		if (client_items[i].of == SET_OF_STREAMS &&
		    client_set_has(set, (enum client_set_item)i)) {
			snprintf(why, sizeof(why),
				 "%s: no client of '%.64s' opens streams",
				 client_items[i].name, set->service);
			return lnet_control_fail(call, -EINVAL, why);
		}
	return 0;
}

static int set_clients(struct ulrpc *rpc, struct lnet_control_call *call,
		       const char *name, char **output_p)
{
	struct client_set set = { .service = name }, there = set;
	int rc = client_read(call, &set);

	if (!rc)
		rc = clients_each(rpc, &there);
	if (rc)
		return rc;
	if (!there.clients && !there.sets) {
		char why[100];

		snprintf(why, sizeof(why), "client: there is none of '%.64s'",
			 name);
		return lnet_control_fail(call, -ENOENT, why);
	}
	if (!set.given)
		return set_text(client_print, &there, output_p);
	rc = streams_check(call, &set, &there);
	return rc ? rc : clients_each(rpc, &set);
}

int on_set(void *arg, struct lnet_control_call *call, char **output_p)
{
	const char *service = NULL, *client = NULL;
	int rc = lnet_control_text(call, "service", &service);

	if (!rc)
		rc = lnet_control_text(call, "client", &client);
	if (rc)
		return rc;
	if (!service == !client)
		return lnet_control_fail(
			call, -EINVAL,
			"a name is expected, as service or as client");
	return service ? set_service(arg, call, service, output_p)
		       : set_clients(arg, call, client, output_p);
}
