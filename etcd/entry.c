/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keeps a server registered: a key with a lease, which is kept alive three
 * times as often as it has to be. If the lease has been lost (etcd was away for
 * too long, or does not know it any more), there is another one. If the key has
 * gone without its lease, because somebody has deleted it, it is written again.
 *
 * No pause and no answer takes longer than a third of the lease, so that an
 * etcd that was away for less than that loses no server.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "etcd/node.h"

struct ulnet_etcd_entry {
	struct etcd_job job; /* the first field */
	struct ulnet_address address;
	unsigned int ttl;
	int64_t lease;
	bool registered; /* under the node's lock */
	bool told;	 /* a failure has been logged */
};

static void entry_set(struct ulnet_etcd_entry *e, bool registered)
{
	struct etcd_node *node = e->job.node;

	pthread_mutex_lock(&node->lock);
	e->registered = registered;
	lnet_cond_broadcast(&node->changed);
	pthread_mutex_unlock(&node->lock);
}

/* Asks something of which only the success counts. */
static int ask(struct ulnet_etcd_entry *e, const char *path, json_t *request)
{
	json_t *reply;
	int rc = etcd_ask(&e->job.link, path, request, &reply);

	if (!rc)
		json_decref(reply);
	return rc;
}

static json_t *lease_of(const struct ulnet_etcd_entry *e)
{
	char id[24];

	snprintf(id, sizeof(id), "%jd", (intmax_t)e->lease);
	return json_pack("{s:s}", "ID", id);
}

static int lease_grant(struct ulnet_etcd_entry *e)
{
	json_t *reply;
	int rc = etcd_ask(&e->job.link, "lease/grant",
			  json_pack("{s:i}", "TTL", (int)e->ttl), &reply);

	if (rc)
		return rc;
	e->lease = etcd_number(reply, "ID");
	json_decref(reply);
	if (e->lease)
		return 0;
	etcd_link_why(&e->job.link, "etcd: a lease without a number");
	return -EPROTO;
}

static json_t *value_of(const struct ulnet_address *a)
{
	char nid[LNET_NIDSTR_SIZE], text[LNET_NIDSTR_SIZE + 128];
	char port[24] = "";

	if (a->port)
		snprintf(port, sizeof(port), ", \"port\": %u", a->port);
	snprintf(text, sizeof(text),
		 "{\"nid\": \"%s\"%s, \"priority\": %u, \"weight\": %u}",
		 lnet_nid_format(&a->nid, nid, sizeof(nid)), port, a->priority,
		 a->weight);
	return etcd_base64(text);
}

static json_t *key_of(const struct ulnet_etcd_entry *e)
{
	char nid[LNET_NIDSTR_SIZE], key[ETCD_PREFIX_SIZE + LNET_NIDSTR_SIZE];

	snprintf(key, sizeof(key), "%s%s", e->job.link.text.prefix,
		 lnet_nid_format(&e->address.nid, nid, sizeof(nid)));
	return etcd_base64(key);
}

/* Writes the server's key, with the lease. */
static int entry_put(struct ulnet_etcd_entry *e)
{
	json_t *request = lease_of(e);

	if (request)
		json_object_set(request, "lease",
				json_object_get(request, "ID"));
	json_object_del(request, "ID");
	json_object_set_new(request, "key", key_of(e));
	if (json_object_set_new(request, "value", value_of(&e->address))) {
		json_decref(request);
		request = NULL;
	}
	return ask(e, "kv/put", request);
}

/* -ENOENT: there is no such lease any more. */
static int lease_keep(struct ulnet_etcd_entry *e)
{
	json_t *reply;
	int64_t left;
	int rc = etcd_ask(&e->job.link, "lease/keepalive", lease_of(e), &reply);

	if (rc)
		return rc;
	left = etcd_number(json_object_get(reply, "result"), "TTL");
	json_decref(reply);
	return left > 0 ? 0 : -ENOENT;
}

/* Writes the key again if it has gone. If it is there, but not with this lease,
 * somebody else has registered the same NID, which is his now. */
static int key_keep(struct ulnet_etcd_entry *e)
{
	json_t *reply, *request = json_pack("{s:b}", "count_only", 1);
	int64_t there;
	int rc;

	if (json_object_set_new(request, "key", key_of(e))) {
		json_decref(request);
		request = NULL;
	}
	rc = etcd_ask(&e->job.link, "kv/range", request, &reply);
	if (rc)
		return rc;
	there = etcd_number(reply, "count");
	json_decref(reply);
	if (there)
		return 0;
	entry_set(e, false);
	rc = entry_put(e);
	if (rc)
		return rc;
	lnet_log(LNET_LOG_WARN, "names",
		 "etcd: below %s somebody has deleted the key of this server, "
		 "which was written again",
		 e->job.link.text.prefix);
	entry_set(e, true);
	return 0;
}

static int step(struct ulnet_etcd_entry *e)
{
	int rc;

	if (e->lease) {
		rc = lease_keep(e);
		if (!rc)
			rc = key_keep(e);
		if (rc != -ENOENT)
			return rc;
		e->lease = 0;
		entry_set(e, false);
	}
	rc = lease_grant(e);
	if (!rc)
		rc = entry_put(e);
	if (rc) {
		/* Whoever withdraws revokes the lease of a key that may have
		 * been written. */
		if (rc != -ESHUTDOWN)
			e->lease = 0;
		return rc;
	}
	lnet_log(LNET_LOG_INFO, "names", "etcd: registered below %s",
		 e->job.link.text.prefix);
	entry_set(e, true);
	return 0;
}

static void entry_failed(struct ulnet_etcd_entry *e)
{
	if (!e->told)
		lnet_log(LNET_LOG_WARN, "names",
			 "etcd: below %s this server is not registered, or "
			 "will not be for long: %s; it is tried again",
			 e->job.link.text.prefix, e->job.link.why);
	e->told = true;
}

static void entry_main(struct etcd_job *job)
{
	struct ulnet_etcd_entry *e = (struct ulnet_etcd_entry *)(void *)job;
	unsigned int third = e->ttl * 1000 / 3;
	struct etcd_times *times = &job->link.times;
	int rc = 0;

	job->retry_max = MIN(job->retry_max, third);
	times->connect = MIN(times->connect, third);
	times->answer = MIN(times->answer, third);
	while (rc != -ESHUTDOWN) {
		rc = step(e);
		if (!rc) {
			e->told = false;
			job->retry = ETCD_RETRY_MIN;
			rc = etcd_link_pause(&job->link, third);
		} else if (rc != -ESHUTDOWN) {
			entry_failed(e);
			rc = etcd_job_retry(job);
		}
	}
	job->link.deaf = true;
	if (e->lease)
		(void)ask(e, "lease/revoke", lease_of(e));
}

/* ---- for users ---- */

/* Returns how long the scheme is with which @text begins; 0: it is not one of
 * etcd. */
static size_t scheme_of(const char *text, bool *tls_p)
{
	static const char plain[] = "etcd://", tls[] = "etcds://";

	*tls_p = !strncmp(text, tls, sizeof(tls) - 1);
	if (*tls_p)
		return sizeof(tls) - 1;
	return strncmp(text, plain, sizeof(plain) - 1) ? 0 : sizeof(plain) - 1;
}

static int text_check(const char *text, unsigned int ttl, struct etcd_text *to,
		      struct ulnet_text_error *err)
{
	struct ulnet_text_error own = { .what = "" };
	size_t scheme = scheme_of(text, &to->tls);
	int rc;

	err = err ? err : &own;
	*err = (struct ulnet_text_error){ .what = "" };
	if (!scheme) {
		snprintf(err->what, sizeof(err->what),
			 "etcd://HOST:PORT/PREFIX is expected");
		return -EINVAL;
	}
	if (ttl < LNET_ETCD_TTL_MIN || ttl > LNET_ETCD_TTL_MAX) {
		snprintf(err->what, sizeof(err->what),
			 "the lease is not within %u..%u s", LNET_ETCD_TTL_MIN,
			 LNET_ETCD_TTL_MAX);
		return -EINVAL;
	}
	rc = etcd_text_parse(text + scheme, to, err);
	if (rc)
		err->offset += scheme;
	return rc;
}

int lnet_etcd_register(struct lnet *lnet, const char *text,
		       const struct ulnet_address *address, unsigned int ttl,
		       struct ulnet_etcd_entry **entry_p,
		       struct ulnet_text_error *err)
{
	struct etcd_node *node = etcd_node_of(lnet);
	struct ulnet_etcd_entry *e;
	struct etcd_text to;
	int rc = text_check(text, ttl, &to, err);

	if (rc)
		return rc;
	if (!node)
		return -ENXIO;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->address = *address;
	e->ttl = ttl;
	rc = etcd_job_start(node, &e->job, &to, entry_main);
	if (!rc)
		*entry_p = e;
	return rc;
}

int lnet_etcd_wait(struct ulnet_etcd_entry *e, uint64_t timeout)
{
	struct etcd_node *node = e->job.node;
	uint64_t until = lnet_now(node->lnet, 0) +
			 MIN(timeout, UINT64_MAX / 2000) * 1000;
	int rc = 0;

	pthread_mutex_lock(&node->lock);
	while (!e->registered && rc != -ETIMEDOUT)
		rc = lnet_cond_wait(&node->changed, &node->lock, until);
	rc = e->registered ? 0 : -ETIMEDOUT;
	pthread_mutex_unlock(&node->lock);
	return rc;
}

void lnet_etcd_withdraw(struct ulnet_etcd_entry *e)
{
	if (e)
		etcd_job_join(&e->job);
}
