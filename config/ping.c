/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/ping.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "config/show.h"

#define PINGS_MAX 1024		   /* in one request */
#define TURN	  UINT64_C(100000) /* us, of a node that this thread runs */

struct ping {
	struct pings *pings;
	const char *text; /* borrowed while the request lasts */
	struct ulnet_nid nid;
	int status;
	struct ulnet_ping_ni *ni;
	unsigned int nnis;
};

/* Who waits, and each ping on its way, has a reference: those that are waited
 * for no more end after it has gone. */
struct pings {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned int refs;
	unsigned int pending;
	bool canceled;
	unsigned int n;
	struct ping ping[];
};

/* ---- ending ---- */

void cancel_init(struct cancel *c)
{
	*c = (struct cancel){ .canceled = false };
	pthread_mutex_init(&c->lock, NULL);
}

void cancel_fini(struct cancel *c)
{
	pthread_mutex_destroy(&c->lock);
}

static void pings_cancel(struct pings *p)
{
	pthread_mutex_lock(&p->lock);
	p->canceled = true;
	pthread_cond_signal(&p->changed);
	pthread_mutex_unlock(&p->lock);
}

void cancel_now(struct cancel *c)
{
	pthread_mutex_lock(&c->lock);
	c->canceled = true;
	if (c->waiting)
		pings_cancel(c->waiting);
	pthread_mutex_unlock(&c->lock);
}

static void cancel_watch(struct cancel *c, struct pings *p)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->waiting = p;
	if (p && c->canceled)
		pings_cancel(p);
	pthread_mutex_unlock(&c->lock);
}

/* ---- the pings ---- */

static struct pings *pings_new(unsigned int n)
{
	struct pings *p = calloc(1, sizeof(*p) + n * sizeof(p->ping[0]));

	if (!p)
		return NULL;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->changed, NULL);
	p->refs = 1;
	p->n = n;
	return p;
}

/* Called with the lock held, and returns without it. */
static void pings_put(struct pings *p)
{
	bool last = --p->refs == 0;

	pthread_mutex_unlock(&p->lock);
	if (!last)
		return;
	for (unsigned int i = 0; i < p->n; i++)
		free(p->ping[i].ni);
	pthread_cond_destroy(&p->changed);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

static void ping_done(void *arg, int status, const struct ulnet_ping_info *info)
{
	struct ping *one = arg;
	struct pings *p = one->pings;
	size_t size = info ? info->nnis * sizeof(*info->ni) : 0;

	pthread_mutex_lock(&p->lock);
	one->status = status;
	if (size) {
		one->ni = malloc(size);
		if (one->ni) {
			memcpy(one->ni, info->ni, size);
			one->nnis = info->nnis;
		} else {
			one->status = -ENOMEM;
		}
	}
	p->pending--;
	pthread_cond_signal(&p->changed);
	pings_put(p);
}

static void ping_start(struct lnet *node, struct ping *one, uint64_t timeout)
{
	struct ulnet_id id = { one->nid, LNET_PID_ANY };
	struct pings *p = one->pings;
	int rc;

	pthread_mutex_lock(&p->lock);
	p->refs++;
	p->pending++;
	pthread_mutex_unlock(&p->lock);
	rc = lnet_ping(node, id, timeout, ping_done, one);
	if (rc)
		ping_done(one, rc, NULL);
}

static bool pings_ended(struct pings *p)
{
	bool ended;

	pthread_mutex_lock(&p->lock);
	ended = !p->pending || p->canceled;
	pthread_mutex_unlock(&p->lock);
	return ended;
}

static void pings_wait(struct lnet *node, struct pings *p)
{
	int rc = lnet_poll(node, 0);

	/* A node whose turns this thread makes does not run while the thread
	 * waits. */
	while ((!rc || rc == -EAGAIN) && !pings_ended(p))
		rc = lnet_poll(node, TURN);
	pthread_mutex_lock(&p->lock);
	while (p->pending && !p->canceled)
		pthread_cond_wait(&p->changed, &p->lock);
	pthread_mutex_unlock(&p->lock);
}

/* ---- results ---- */

static void ping_show(const struct ping *one, struct tree *results)
{
	struct tree *result = tree_map(results, NULL), *nis;

	/* A node without NIs has only 0@lo, which is not in its answer. */
	show_nid(result, "primary nid",
		 one->nnis ? &one->ni[0].nid : &one->nid);
	/* What discovery finds out, and a ping does not. */
	tree_text(result, "Multi-Rail", TREE_PLAIN, "false");
	nis = tree_seq(result, "peer_ni");
	for (unsigned int i = 0; i < one->nnis; i++)
		show_nid(tree_map(nis, NULL), "nid", &one->ni[i].nid);
	if (!one->nnis)
		show_nid(tree_map(nis, NULL), "nid", &one->nid);
}

static int pings_show(struct pings *p, const struct scope *s)
{
	struct tree *results = NULL;
	int first = 0;

	pthread_mutex_lock(&p->lock);
	for (unsigned int i = 0; i < p->n; i++) {
		const struct ping *one = &p->ping[i];
		int rc = one->status;

		if (!rc && !results)
			results = tree_seq(answer_output(s->answer), "ping");
		if (!rc) {
			ping_show(one, results);
			continue;
		}
		answer_error(s->answer, &s->subject, rc,
			     "failed to ping %s: %s", one->text, strerror(-rc));
		first = first ? first : rc;
	}
	pthread_mutex_unlock(&p->lock);
	return first;
}

static int read_nids(const struct scope *s, const struct tree *nids,
		     struct pings *p)
{
	const struct tree *t = NULL;
	unsigned int i = 0;
	int rc;

	while ((t = list_next(nids, t))) {
		struct ping *one = &p->ping[i++];

		rc = scope_text(s, t, &one->text);
		if (rc)
			return rc;
		one->pings = p;
		/* This remains for pings that are still on their way when the
		 * wait is over. */
		one->status = -ECANCELED;
		if (lnet_nid_parse(one->text, &one->nid) ||
		    lnet_nid_is_any(&one->nid))
			one->status = -EINVAL;
	}
	return 0;
}

int ping_all(struct lnet *node, const struct scope *s, const struct tree *nids,
	     uint64_t timeout, struct cancel *cancel)
{
	const struct tree *t = NULL;
	unsigned int n = 0;
	struct pings *p;
	int rc;

	while ((t = list_next(nids, t)))
		n++;
	if (!n)
		return scope_fail(s, nids, -EINVAL, "no NID is given");
	if (n > PINGS_MAX)
		return scope_fail(s, nids, -EMSGSIZE, "more than %d NIDs",
				  PINGS_MAX);
	p = pings_new(n);
	if (!p)
		return scope_fail(s, nids, -ENOMEM, "no memory");
	rc = read_nids(s, nids, p);
	if (!rc) {
		for (unsigned int i = 0; i < n; i++)
			if (p->ping[i].status != -EINVAL)
				ping_start(node, &p->ping[i], timeout);
		cancel_watch(cancel, p);
		pings_wait(node, p);
		cancel_watch(cancel, NULL);
		rc = pings_show(p, s);
	}
	pthread_mutex_lock(&p->lock);
	pings_put(p);
	return rc;
}
