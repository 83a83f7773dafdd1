/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a node has of etcd: jobs, each a thread that watches one prefix for
 * names, or keeps one server registered. They are few, as names in use and
 * services of a process are, and each waits for its own answers in a row.
 */
#ifndef ETCD_NODE_H
#define ETCD_NODE_H

#include <pthread.h>

#include "etcd/request.h"
#include "ulnet/etcd.h"
#include "ulnet/loop.h"
#include "ulnet/thread.h"

/* ms until what has failed is tried again: from, to; doubled each time. */
#define ETCD_RETRY_MIN 250u
#define ETCD_RETRY_MAX 8000u

struct etcd_job {
	struct etcd_job *next; /* etcd_node.jobs */
	struct etcd_node *node;
	struct etcd_link link;
	/* NULL: the layer was closed; whoever closes the job frees it */
	struct ulnet_thread *thread;
	void (*main)(struct etcd_job *job);
	unsigned int retry, retry_max; /* ms: the next pause, and the longest */
	/* Under the node's lock: nobody needs it any more; its thread has
	 * returned. */
	bool closed, done;
};

struct etcd_node {
	struct ulnet_layer layer;
	struct ulnet_name_scheme scheme, tls_scheme;
	struct lnet *lnet;
	struct etcd_times times; /* of jobs that are started from now on */
	pthread_mutex_t lock;
	struct ulnet_cond changed; /* an entry is registered */
	/* of jobs over TLS that are started from now on; may be NULL */
	struct etcd_settings *settings;
	struct etcd_job *jobs;
	/* The layer, and each name that is open: names are closed after the
	 * layer, if they were opened before it. */
	unsigned int refs;
};

struct etcd_node *etcd_node_of(struct lnet *lnet);
/* Starts @job, which is one of malloc(3) in a larger structure, of which it is
 * the first field; frees it if that fails. The thread runs @main. */
int etcd_job_start(struct etcd_node *node, struct etcd_job *job,
		   const struct etcd_text *text,
		   void (*main)(struct etcd_job *job));
/* Ends @job: it is freed when its thread has returned. Does not wait. */
void etcd_job_close(struct etcd_job *job);
/* Waits for that; not in a turn. */
void etcd_job_join(struct etcd_job *job);
/* The job's thread waits before it tries again; 0 or -ESHUTDOWN. */
int etcd_job_retry(struct etcd_job *job);

/* The schemes' functions: feed.c. */
int etcd_feed_open(void *arg, struct lnet *lnet, uint64_t feed,
		   const char *rest, void **priv_p);
int etcd_feed_open_tls(void *arg, struct lnet *lnet, uint64_t feed,
		       const char *rest, void **priv_p);
void etcd_feed_close(void *arg, void *priv);
/* May free @node. */
void etcd_node_put(struct etcd_node *node);
void etcd_node_get(struct etcd_node *node);

#endif
