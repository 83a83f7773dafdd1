/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ulrpc_client_open(): checks what the user has configured, and chooses the
 * client's CPT. Any thread; client_attach() runs on the CPT.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/client/client.h"
#include "rpc/client/import.h"
#include "rpc/client/imports.h"
#include "rpc/context/intercept.h"
#include "rpc/flavour.h"
#include "rpc/keys.h"
#include "rpc/sealed.h"
#include "rpc/streaming.h"
#include "rpc/text.h"
#include "secure/digest.h"

#define SERVICE_PID LNET_PID_LUSTRE
/* us: opening a client waits so long, at most, for its name to be known. */
#define NAME_WAIT UINT64_C(1000000)

/* ---- the configuration ---- */

void ulrpc_client_conf_init(struct ulrpc_client_conf *conf)
{
	*conf = (struct ulrpc_client_conf){ 0 };
}

#define refuse(conf, ...) \
	conf_refuse(client_conf_owner(conf), -EINVAL, __VA_ARGS__)

static int client_check_nids(const struct ulrpc_client_conf *conf)
{
	char nid[LNET_NIDSTR_SIZE];

	if (!conf->nids || !conf->nnids)
		return refuse(conf, "nids: there are none");
	if (conf->nnids > ULRPC_NIDS_MAX)
		return refuse(conf, "nnids: %u is more than %d", conf->nnids,
			      ULRPC_NIDS_MAX);
	for (unsigned int i = 0; i < conf->nnids; i++) {
		if (lnet_nid_is_any(&conf->nids[i]))
			return refuse(conf,
				      "nids: LNET_NID_ANY is not the NID of "
				      "one node");
		for (unsigned int j = 0; j < i; j++)
			if (lnet_nid_eq(&conf->nids[i], &conf->nids[j]))
				return refuse(conf, "nids: %s comes twice",
					      lnet_nid_format(&conf->nids[i],
							      nid,
							      sizeof(nid)));
	}
	return 0;
}

int client_conf_check(const struct ulrpc *rpc,
		      const struct ulrpc_client_conf *conf)
{
	int rc = client_check_flavour(rpc, conf);

	if (rc)
		return rc;

	if (!conf->service || !*conf->service)
		return refuse(conf, "service: a name is expected");
	if (strlen(conf->service) >= ULRPC_SERVICE_NAME)
		return refuse(conf, "service: the name has more than %d bytes",
			      ULRPC_SERVICE_NAME - 1);
	if (conf->batch_max > ULRPC_BATCH_MAX)
		return refuse(conf, "batch_max: %u is more than %d",
			      conf->batch_max, ULRPC_BATCH_MAX);
	if ((unsigned int)conf->wait_for_ready > ULRPC_WAIT_NOT)
		return refuse(conf, "wait_for_ready: %u is unknown",
			      (unsigned int)conf->wait_for_ready);
	if (retry_check(conf->retry))
		return refuse(conf, "retry: %u is no policy",
			      (unsigned int)conf->retry->policy);
	return call_interceptors_check(conf->interceptors, conf->ninterceptors,
				       "interceptors", client_conf_owner(conf));
}

/* ---- opening ---- */

static bool rpc_is_open(const struct ulrpc *rpc)
{
	return atomic_load(&rpc->state) == RPC_OPEN &&
	       !lnet_is_forked(rpc->node);
}

/* If this node only calls, and the user has not chosen its NIs, adds those by
 * which this host reaches the server. Returns 0 if one of the NIDs can be
 * reached, as far as this host knows. */
int client_reach(const struct ulrpc *rpc, const struct ulrpc_client_conf *conf)
{
	struct ulnet_id own;
	char nid[LNET_NIDSTR_SIZE];
	bool reached = false;
	int rc = LNetGetId(rpc->node, 0, &own);

	/* If the node listens, its user chooses its addresses. */
	if (rc || !(own.pid & LNET_PID_USERFLAG))
		return rc;
	for (unsigned int i = 0; i < conf->nnids; i++) {
		int one = lnet_ni_reach(rpc->node, &conf->nids[i]);

		reached |= !one;
		rc = one ? one : rc;
	}
	if (reached)
		return 0;
	if (rc == -EXDEV)
		return -EDEADLK;
	return conf_refuse(
		client_conf_owner(conf), rc,
		"nids: this host has no way to %s: %s",
		lnet_nid_format(&conf->nids[conf->nnids - 1], nid, sizeof(nid)),
		strerror(-rc));
}

/* Gives the client @c, and its memory, to its CPT. */
static int client_give(struct ulrpc_client *c, const char *server,
		       struct ulrpc_client **client_p)
{
	int rc = 0;

	if (server) {
		c->server = strdup(server);
		rc = c->server ? 0 : -ENOMEM;
	}
	/* The call waits if another thread runs the CPT. */
	if (!rc)
		rc = lnet_call(c->rpc->node, c->shard->cpt, client_attach, c);
	if (rc) {
		if (!c->target)
			import_free(c->imp);
		client_memory_free(c);
		return rc == -EXDEV ? -EDEADLK : rc;
	}
	*client_p = c;
	return 0;
}

/* The calls that carry streams are not those of a program. */
static int client_intercept(struct ulrpc_client *c, const struct ulrpc *rpc,
			    const struct ulrpc_client_conf *conf)
{
	c->carries = !strcmp(conf->service, RPC_STREAM_CARRIER);
	if (c->carries)
		return 0;
	return call_chain_new(conf->interceptors, conf->ninterceptors,
			      rpc->conf.call_interceptors,
			      rpc->conf.ncall_interceptors, &c->chain);
}

/* The owner may look at it already. */
void client_carries_streams(struct ulrpc_client *client, const void *streams)
{
	atomic_store_explicit(&client->streams, streams, memory_order_relaxed);
}

void client_opens_streams(struct ulrpc_client *client, uint32_t head,
			  const void *streams)
{
	client->open_head = head;
	client_carries_streams(client, streams);
}

static struct ulrpc_client *client_new(struct ulrpc *rpc, unsigned int cpt,
				       const struct ulrpc_client_conf *conf)
{
	struct ulrpc_client *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	if (client_intercept(c, rpc, conf)) {
		free(c);
		return NULL;
	}
	client_init(c, &rpc->shards[cpt], conf);
	if (c->least != ULRPC_FLAVOUR_NONE)
		c->sealed_room = (c->seal_head = SEAL_HEAD) + DIGEST_SIZE;
	return c;
}

/* Notes that the user has given these NIDs: no answer about a name changes
 * their ports from now on. */
static int client_nids_given(struct ulrpc_client *c,
			     const struct ulrpc_client_conf *conf)
{
	int rc = 0;

	c->given = calloc(conf->nnids, sizeof(*c->given));
	if (!c->given)
		return -ENOMEM;
	while (!rc && c->ngiven < conf->nnids) {
		c->given[c->ngiven] = conf->nids[c->ngiven];
		rc = lnet_peer_port_claim(c->rpc->node, &c->given[c->ngiven], 0,
					  LNET_PORT_GIVEN);
		c->ngiven += !rc;
	}
	return rc == -ENOSPC ? 0 : rc;
}

int client_open_at(struct ulrpc *rpc, unsigned int cpt,
		   const struct ulrpc_client_conf *conf, bool given,
		   struct ulrpc_client **client_p)
{
	struct ulrpc_client *c = client_new(rpc, cpt, conf);
	int rc;

	if (!c)
		return -ENOMEM;
	rc = given ? client_nids_given(c, conf) : 0;
	if (!rc)
		c->imp = import_new(c->shard, conf->nids, conf->nnids,
				    conf->pid ? conf->pid : SERVICE_PID,
				    c->least != ULRPC_FLAVOUR_NONE);
	if (c->imp)
		return client_give(c, conf->server, client_p);
	client_memory_free(c);
	return rc ? rc : -ENOMEM;
}

struct ulnet_nid client_conf_server(const struct ulrpc_client_conf *conf)
{
	struct ulnet_target target;

	if (conf->nnids)
		return conf->nids[0];
	if (lnet_target_parse(conf->target, &target, NULL) || target.is_name)
		return LNET_NID_ANY;
	return target.nids[0];
}

struct ulnet_nid client_server(const struct ulrpc_client *client)
{
	return client->imp->nids[0];
}

int client_open_beside(const struct ulrpc_client *client,
		       const struct ulrpc_client_conf *conf,
		       struct ulrpc_client **client_p)
{
	struct ulrpc_client_conf own = *conf;
	struct ulnet_nid server = client_server(client);

	own.nids = &server;
	own.nnids = 1;
	return client_open_at(client->rpc, client->shard->cpt, &own, false,
			      client_p);
}

void client_pin(struct ulrpc_client *client)
{
	target_pin(client->target);
}

bool client_is_astray(const struct ulrpc_client *client)
{
	return target_is_astray(client->target);
}

void client_unpin(struct ulrpc_client *client)
{
	target_unpin(client->target);
}

static int client_open_nids(struct ulrpc *rpc,
			    const struct ulrpc_client_conf *conf,
			    struct ulrpc_client **client_p)
{
	int rc = client_check_nids(conf);

	if (!rc && !rpc_is_open(rpc))
		rc = -ESHUTDOWN;
	if (!rc)
		rc = client_reach(rpc, conf);
	if (rc)
		return rc;
	return client_open_at(
		rpc, (unsigned int)lnet_cpt_of(rpc->node, &conf->nids[0]), conf,
		true, client_p);
}

int client_name_cpt(struct ulrpc *rpc, const struct ulrpc_client_conf *conf,
		    unsigned int *cpt_p)
{
	struct ulrpc_client_conf one = *conf;
	struct ulnet_name_answer *answer;
	int rc = 0;

	if (lnet_in_turn()) {
		*cpt_p = (unsigned int)MAX(lnet_cpt_current(rpc->node), 0);
		return 0;
	}
	*cpt_p = 0;
	if (lnet_name_lookup_wait(rpc->node, conf->target, NAME_WAIT, &answer,
				  NULL))
		return 0;
	one.nnids = 1;
	if (answer->n)
		*cpt_p = (unsigned int)lnet_cpt_of(rpc->node,
						   &answer->addresses[0].nid);
	for (unsigned int i = 0; i < answer->n; i++) {
		one.nids = &answer->addresses[i].nid;
		rc = client_reach(rpc, &one);
		if (!rc)
			break;
	}
	free(answer);
	return rc;
}

static int client_open_name(struct ulrpc *rpc,
			    const struct ulrpc_client_conf *conf,
			    struct ulrpc_client **client_p)
{
	struct ulrpc_client *c;
	unsigned int cpt;
	int rc = rpc_is_open(rpc) ? client_name_cpt(rpc, conf, &cpt)
				  : -ESHUTDOWN;

	if (rc)
		return rc;
	c = client_new(rpc, cpt, conf);
	if (!c)
		return -ENOMEM;
	c->target =
		target_new(c, conf->target, conf->pid ? conf->pid : SERVICE_PID,
			   &client_target_ops);
	if (c->target)
		return client_give(c, conf->server, client_p);
	client_memory_free(c);
	return -ENOMEM;
}

/* Opens a client whose conf->target is set. */
static int client_open_target(struct ulrpc *rpc,
			      const struct ulrpc_client_conf *conf,
			      struct ulrpc_client **client_p)
{
	struct ulrpc_client_conf plain = *conf;
	struct ulnet_target target;
	struct ulnet_text_error err;

	if (conf->nids || conf->nnids)
		return refuse(conf, "nids: target is set, too");
	if (lnet_target_parse(conf->target, &target, &err))
		return refuse(conf, "target: '%.100s': %s",
			      conf->target + err.offset, err.what);
	if (target.is_name)
		return client_open_name(rpc, conf, client_p);
	plain.nids = target.nids;
	plain.nnids = target.nnids;
	plain.pid = target.pid;
	return client_open_nids(rpc, &plain, client_p);
}

int ulrpc_client_open(struct ulrpc *rpc, const struct ulrpc_client_conf *conf,
		      struct ulrpc_client **client_p)
{
	int rc = client_conf_check(rpc, conf);

	if (rc)
		return rc;
	return conf->target ? client_open_target(rpc, conf, client_p)
			    : client_open_nids(rpc, conf, client_p);
}
