/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Watches a prefix of etcd for a name. A list is read once, with the revision
 * of etcd that it is of; from there on changes are watched. A watch that breaks
 * goes on from the last revision seen, so nothing between is missed; only if
 * etcd has forgotten that revision (compaction), or is another etcd than
 * before, the list is read again. A watch that is silent is begun again after
 * a while, as it may be dead. Whatever fails leaves the last list.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "etcd/node.h"

/* How long values are at most. Keys: the prefix and as much. */
#define VALUE_MAX 1024

struct server {
	char *key;
	struct ulnet_address address;
};

struct feed {
	struct etcd_job job; /* the first field */
	uint64_t feed;
	int64_t revision; /* that is known; 0: none */
	int64_t cluster;
	bool more; /* etcd has more servers than there is room for */
	bool told; /* the answer is that of the servers */
	unsigned int n;
	struct server servers[LNET_ADDRESSES_MAX]; /* sorted by key */
};

/* ---- answers ---- */

static void tell(struct feed *f, const struct ulnet_name_answer *a)
{
	/* 0: what is not watched is not good any more. */
	while (lnet_name_answer(f->job.node->lnet, f->feed, a, 0) == -ENOMEM)
		if (etcd_link_pause(&f->job.link, ETCD_RETRY_MIN))
			return;
}

static void tell_servers(struct feed *f)
{
	struct ulnet_address addresses[LNET_ADDRESSES_MAX];
	struct ulnet_name_answer a = { .n = f->n, .addresses = addresses };

	for (unsigned int i = 0; i < f->n; i++)
		addresses[i] = f->servers[i].address;
	if (!f->n) {
		a.status = -ENODATA;
		strcpy(a.why, "no server is registered");
	}
	tell(f, &a);
	f->told = true;
}

static void tell_failure(struct feed *f, int rc)
{
	struct ulnet_name_answer a = { .status = rc };

	memcpy(a.why, f->job.link.why, sizeof(a.why));
	tell(f, &a);
	f->told = false;
}

/* ---- servers ---- */

static void servers_clear(struct feed *f)
{
	while (f->n)
		free(f->servers[--f->n].key);
	f->more = false;
}

/* Where @key is, or has to be; *@there_p: it is. */
static unsigned int server_find(const struct feed *f, const char *key,
				bool *there_p)
{
	unsigned int i = 0;
	int order = -1;

	while (i < f->n && (order = strcmp(f->servers[i].key, key)) < 0)
		i++;
	*there_p = i < f->n && order == 0;
	return i;
}

static void server_del(struct feed *f, const char *key)
{
	bool there;
	unsigned int i = server_find(f, key, &there);

	if (!there)
		return;
	free(f->servers[i].key);
	f->n--;
	memmove(&f->servers[i], &f->servers[i + 1],
		(f->n - i) * sizeof(f->servers[0]));
}

static void server_set(struct feed *f, const char *key,
		       const struct ulnet_address *address)
{
	bool there;
	unsigned int i = server_find(f, key, &there);
	char *copy;

	if (there) {
		f->servers[i].address = *address;
		return;
	}
	copy = f->n < LNET_ADDRESSES_MAX ? strdup(key) : NULL;
	if (!copy) {
		f->more = true;
		return;
	}
	memmove(&f->servers[i + 1], &f->servers[i],
		(f->n - i) * sizeof(f->servers[0]));
	f->servers[i] = (struct server){ copy, *address };
	f->n++;
}

static bool number_take(const json_t *value, const char *key, uint16_t *to)
{
	const json_t *number = json_object_get(value, key);
	json_int_t n = json_integer_value(number);

	if (number && (!json_is_integer(number) || n < 0 || n > UINT16_MAX))
		return false;
	*to = (uint16_t)n;
	return true;
}

/* Reads a value: {"nid": "10.0.0.1@tcp", "port": 988, "weight": 1} */
static bool address_take(const char *text, struct ulnet_address *a)
{
	json_t *value = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	const char *nid = json_string_value(json_object_get(value, "nid"));
	bool good = nid && !lnet_nid_parse(nid, &a->nid) &&
		    !lnet_nid_is_any(&a->nid) && !lnet_nid_is_lo(&a->nid) &&
		    number_take(value, "port", &a->port) &&
		    number_take(value, "priority", &a->priority) &&
		    number_take(value, "weight", &a->weight);

	json_decref(value);
	return good;
}

/* Takes what etcd says of one key. */
static void take_key(struct feed *f, const json_t *kv, bool gone)
{
	struct ulnet_address address = { 0 };
	char *key = etcd_bytes(kv, "key", 2 * ETCD_PREFIX_SIZE);
	char *value = etcd_bytes(kv, "value", VALUE_MAX);

	if (key && gone) {
		server_del(f, key);
	} else if (key && value && address_take(value, &address)) {
		server_set(f, key, &address);
	} else if (key) {
		/* A server that cannot be understood cannot be called. */
		server_del(f, key);
		lnet_log(LNET_LOG_WARN, "names",
			 "etcd: what is at %s%s is passed over: it is not as "
			 "{\"nid\": \"10.0.0.1@tcp\", \"port\": 988}",
			 f->job.link.text.prefix,
			 strlen(key) > strlen(f->job.link.text.prefix) ? "..."
								       : "");
	}
	free(key);
	free(value);
}

/* ---- the list ---- */

/* {"key": prefix, "range_end": its end}; NULL: no memory. */
static json_t *range_of(const struct feed *f)
{
	const char *prefix = f->job.link.text.prefix;
	size_t length = strlen(prefix);
	char end[ETCD_PREFIX_SIZE];
	json_t *made = json_object();

	memcpy(end, prefix, length + 1);
	end[length - 1]++;
	json_object_set_new(made, "key", etcd_base64(prefix));
	if (json_object_set_new(made, "range_end", etcd_base64(end))) {
		json_decref(made);
		return NULL;
	}
	return made;
}

static int64_t header_number(const json_t *message, const char *key)
{
	return etcd_number(json_object_get(message, "header"), key);
}

static int list_take(struct feed *f, const json_t *reply)
{
	const json_t *kvs = json_object_get(reply, "kvs");

	f->cluster = header_number(reply, "cluster_id");
	f->revision = header_number(reply, "revision");
	if (f->revision < 1 || (kvs && !json_is_array(kvs))) {
		f->revision = 0;
		etcd_link_why(&f->job.link, "etcd: the answer makes no sense");
		return -EPROTO;
	}
	servers_clear(f);
	for (size_t i = 0; i < json_array_size(kvs); i++)
		take_key(f, json_array_get(kvs, i), false);
	f->more |= json_is_true(json_object_get(reply, "more"));
	if (f->more)
		lnet_log(LNET_LOG_WARN, "names",
			 "etcd: %s has more than %d servers: others are not "
			 "called",
			 f->job.link.text.prefix, LNET_ADDRESSES_MAX);
	tell_servers(f);
	return 0;
}

static int list_read(struct feed *f)
{
	json_t *request = range_of(f), *reply;
	int rc;

	json_object_set_new(request, "limit", json_integer(LNET_ADDRESSES_MAX));
	rc = etcd_ask(&f->job.link, "kv/range", request, &reply);
	if (rc)
		return rc;
	rc = list_take(f, reply);
	json_decref(reply);
	return rc;
}

/* ---- the watch ---- */

/* What ends a watch so that the list is read again. */
#define READ_AGAIN 1

static int events_take(struct feed *f, const json_t *events)
{
	bool gone = false;

	for (size_t i = 0; i < json_array_size(events); i++) {
		const json_t *event = json_array_get(events, i);
		const char *type =
			json_string_value(json_object_get(event, "type"));

		bool del = type && !strcmp(type, "DELETE");

		take_key(f, json_object_get(event, "kv"), del);
		gone |= del;
		/* Not that of the message: while a watch catches up, that is
		 * ahead of what it tells. */
		f->revision = MAX(f->revision,
				  etcd_number(json_object_get(event, "kv"),
					      "mod_revision"));
	}
	if (json_array_size(events) || !f->told)
		tell_servers(f);
	/* One that had no room may have some now. */
	return f->more && gone ? READ_AGAIN : 0;
}

static int on_message(void *arg, json_t *message)
{
	struct feed *f = arg;
	const json_t *result = json_object_get(message, "result");
	int64_t revision = header_number(result, "revision");

	/* etcd has lost what it knew, or it is another one. */
	if (revision < f->revision ||
	    header_number(result, "cluster_id") != f->cluster)
		return READ_AGAIN;
	/* A compaction: etcd does not know any more what has changed. */
	if (json_is_true(json_object_get(result, "canceled")))
		return READ_AGAIN;
	f->job.retry = ETCD_RETRY_MIN;
	/* That the watch was made says nothing of what comes before it. */
	if (json_is_true(json_object_get(result, "created")))
		return f->told ? 0 : events_take(f, NULL);
	return events_take(f, json_object_get(result, "events"));
}

static int watch(struct feed *f)
{
	json_t *create = range_of(f), *request = NULL;

	if (!json_object_set_new(create, "start_revision",
				 json_integer(f->revision < INT64_MAX
						      ? f->revision + 1
						      : f->revision)))
		request = json_pack("{s:o}", "create_request", create);
	else
		json_decref(create);
	return etcd_stream(&f->job.link, "watch", request, on_message, f);
}

static void feed_main(struct etcd_job *job)
{
	struct feed *f = (struct feed *)(void *)job;
	int rc = READ_AGAIN;

	while (rc != -ESHUTDOWN) {
		if (rc == READ_AGAIN || !f->revision)
			rc = list_read(f);
		else
			rc = 0;
		if (!rc)
			rc = watch(f);
		if (rc == READ_AGAIN) {
			if (etcd_job_retry(job))
				break;
			continue;
		}
		if (rc == -ESHUTDOWN)
			break;
		/* What has happened meanwhile is heard of then, if the watch
		 * was dead. */
		if (rc == -EAGAIN)
			continue;
		/* A watch that was cut is begun again first. */
		if (rc != -ECONNRESET)
			tell_failure(f, rc);
		if (etcd_job_retry(job))
			break;
	}
	servers_clear(f);
}

/* ---- the scheme ---- */

static int feed_open(void *arg, struct lnet *lnet, uint64_t feed,
		     const char *rest, bool tls, void **priv_p)
{
	struct etcd_node *node = arg;
	struct ulnet_name_answer wrong = { .status = -EINVAL };
	struct ulnet_text_error err = { .what = "" };
	struct etcd_text text;
	struct feed *f;
	int rc = etcd_text_parse(rest, &text, &err);

	*priv_p = NULL;
	if (rc) {
		snprintf(wrong.why, sizeof(wrong.why), "%s", err.what);
		return lnet_name_answer(lnet, feed, &wrong, 0);
	}
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->feed = feed;
	text.tls = tls;
	rc = etcd_job_start(node, &f->job, &text, feed_main);
	if (rc)
		return rc;
	etcd_node_get(node);
	*priv_p = f;
	return 0;
}

int etcd_feed_open(void *arg, struct lnet *lnet, uint64_t feed,
		   const char *rest, void **priv_p)
{
	return feed_open(arg, lnet, feed, rest, false, priv_p);
}

int etcd_feed_open_tls(void *arg, struct lnet *lnet, uint64_t feed,
		       const char *rest, void **priv_p)
{
	return feed_open(arg, lnet, feed, rest, true, priv_p);
}

void etcd_feed_close(void *arg, void *priv)
{
	struct feed *f = priv;

	if (!f)
		return;
	etcd_job_close(&f->job);
	etcd_node_put(arg);
}
