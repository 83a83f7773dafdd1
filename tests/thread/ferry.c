/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/thread/ferry.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/env.h"

struct ferry {
	struct ib_fabric ib; /* must be first: lnd_ni.fabric points to it */
	/* constant */
	uint64_t begun; /* ns: the real time at the simulated world's 0 */
	pthread_t thread;
	/* taken for everything in the simulated world */
	pthread_mutex_t lock;
	pthread_cond_t woken;
	struct env_sim *world;
	struct loop *loop; /* loop of all that the fabric does */
	/* the current loop of the thread that has the mutex */
	struct loop *before;
	struct simqp_fabric *fabric;
	unsigned int ports;
	bool ending;
};

_Static_assert(offsetof(struct ferry, ib) == 0,
	       "a ferry is what lnd_ni.fabric points to");

/* It has a count of references: one of the LND, until close(), one of each
 * queue pair, and one of each event and call on its way. When the count is 0
 * the fabric's port is closed. */
struct ferry_port {
	struct ib_port ib; /* what the LND sees */
	struct ferry *ferry;
	struct ib_port *inner;
	/* what the fabric sees as its NI */
	struct lnd_ni ni;
	struct loop *loops[LNET_CPTS_MAX];
	/* under the mutex */
	unsigned int refs;
	bool deaf;
	bool closed;
};

struct ferry_qp {
	struct ib_qp ib; /* what the LND sees */
	struct ferry_port *port;
	struct loop *loop; /* of its CPT */
	/* under the mutex */
	struct ib_qp *inner; /* NULL: destroyed */
	/* its own, and those of events on their way to the LND */
	unsigned int refs;
	bool quiet; /* the LND is to hear of completions only */
};

enum news_kind {
	NEWS_REQUEST,
	NEWS_RESOLVED,
	NEWS_ESTABLISHED,
	NEWS_REJECTED,
	NEWS_FAILED,
	NEWS_DISCONNECTED,
	NEWS_RECEIVED, /* from here on: completions */
	NEWS_SENT,
	NEWS_PORT, /* about the port: qp is NULL */
};

/* An event on its way to the LND. */
struct news {
	struct work work;
	enum news_kind kind;
	struct ferry_port *port;
	struct ferry_qp *qp;
	struct ib_source from;
	int status; /* or the reason of a failure */
	enum ib_wc_status wc;
	void *cookie;
	bool up, removed;
	const char *why;
	const void *said; /* private data, or NULL */
	size_t length;
	uint8_t private[IB_PRIVATE_ACCEPT_SIZE];
};

static struct ferry_port *port_of(struct ib_port *ib)
{
	return container_of(ib, struct ferry_port, ib);
}

static struct ferry_qp *qp_of(struct ib_qp *ib)
{
	return container_of(ib, struct ferry_qp, ib);
}

/* ---- the mutex ---- */

static void take(struct ferry *f)
{
	struct loop *before = loop_current();

	pthread_mutex_lock(&f->lock);
	loop_enter(f->loop);
	f->before = before;
}

static void give(struct ferry *f)
{
	loop_leave(f->before);
	pthread_cond_signal(&f->woken);
	pthread_mutex_unlock(&f->lock);
}

struct simqp_fabric *ferry_take(struct ferry *f)
{
	take(f);
	return f->fabric;
}

void ferry_give(struct ferry *f)
{
	give(f);
}

/* ---- who refers to what: under the mutex ---- */

static void port_put(struct ferry_port *p)
{
	if (--p->refs)
		return;
	simqp_verbs()->close(p->inner);
	p->ferry->ports--;
	free(p);
}

static struct ferry_qp *qp_new(struct ferry_port *p, unsigned int cpt)
{
	struct ferry_qp *qp = calloc(1, sizeof(*qp));

	BUG_ON(!qp);
	qp->ib.port = &p->ib;
	qp->ib.cpt = cpt;
	qp->port = p;
	qp->loop = p->ib.ni->loops[cpt];
	qp->refs = 1;
	p->refs++;
	return qp;
}

static void qp_put(struct ferry_qp *qp)
{
	if (--qp->refs)
		return;
	port_put(qp->port);
	free(qp);
}

static void qp_destroy(struct ferry_qp *qp)
{
	simqp_verbs()->destroy(qp->inner);
	qp->inner = NULL;
	qp_put(qp);
}

/* ---- events: at the LND ---- */

/* Has the LND closed, or destroyed, what the event is about? */
static bool is_late(const struct news *n)
{
	if (n->kind == NEWS_PORT)
		return n->port->closed;
	return !n->qp->inner || (n->qp->quiet && n->kind < NEWS_RECEIVED);
}

/* A connection request that the LND can no longer answer. */
static bool is_unwanted(const struct news *n)
{
	return n->kind == NEWS_REQUEST && n->port->deaf && n->qp->inner;
}

static void tell(const struct news *n)
{
	const struct ib_events *to = n->port->ib.events;
	struct ib_qp *qp = n->qp ? &n->qp->ib : NULL;

	switch (n->kind) {
	case NEWS_REQUEST:
		to->request(&n->port->ib, qp, &n->from, n->said, n->length);
		break;
	case NEWS_RESOLVED:
		to->resolved(qp);
		break;
	case NEWS_ESTABLISHED:
		to->established(qp, n->said, n->length);
		break;
	case NEWS_REJECTED:
		to->rejected(qp, n->status, n->said, n->length);
		break;
	case NEWS_FAILED:
		to->failed(qp, n->status);
		break;
	case NEWS_DISCONNECTED:
		to->disconnected(qp);
		break;
	case NEWS_RECEIVED:
		to->received(qp, n->cookie, (uint32_t)n->length, n->wc);
		break;
	case NEWS_SENT:
		to->sent(qp, n->cookie, n->wc);
		break;
	case NEWS_PORT:
		to->port_changed(&n->port->ib, n->up, n->removed, n->why);
		break;
	}
}

static void on_news(struct work *w)
{
	struct news *n = container_of(w, struct news, work);
	struct ferry *f = n->port->ferry;
	bool late;

	take(f);
	if (is_unwanted(n))
		qp_destroy(n->qp);
	late = is_late(n);
	give(f);
	if (!late)
		tell(n);
	take(f);
	if (n->qp)
		qp_put(n->qp);
	port_put(n->port);
	give(f);
	free(n);
}

/* ---- events: of the fabric, with the mutex held ---- */

static struct news *news_new(struct ferry_port *p, struct ferry_qp *qp,
			     enum news_kind kind)
{
	struct news *n = calloc(1, sizeof(*n));

	BUG_ON(!n);
	n->work.fn = on_news;
	n->kind = kind;
	n->port = p;
	n->qp = qp;
	p->refs++;
	if (qp)
		qp->refs++;
	return n;
}

static struct news *qp_news(struct ib_qp *inner, enum news_kind kind)
{
	struct ferry_qp *qp = inner->user;

	return news_new(qp->port, qp, kind);
}

static void news_say(struct news *n, const void *private, size_t length)
{
	BUG_ON(length > sizeof(n->private));
	if (!private)
		return;
	memcpy(n->private, private, length);
	n->said = n->private;
	n->length = length;
}

static void qp_post(struct news *n)
{
	loop_post(n->qp->loop, &n->work);
}

static unsigned int on_request_cpt(struct ib_port *inner, const void *private,
				   size_t length)
{
	struct ferry_port *p = inner->user;

	return p->ib.events->request_cpt(&p->ib, private, length);
}

static void on_request(struct ib_port *inner, struct ib_qp *qp,
		       const struct ib_source *from, const void *private,
		       size_t length)
{
	struct ferry_port *p = inner->user;
	struct ferry_qp *outer = qp_new(p, qp->cpt);
	struct news *n = news_new(p, outer, NEWS_REQUEST);

	outer->inner = qp;
	qp->user = outer;
	n->from = *from;
	news_say(n, private, length);
	qp_post(n);
}

static void on_resolved(struct ib_qp *qp)
{
	qp_post(qp_news(qp, NEWS_RESOLVED));
}

static void on_established(struct ib_qp *qp, const void *private, size_t length)
{
	struct news *n = qp_news(qp, NEWS_ESTABLISHED);

	news_say(n, private, length);
	qp_post(n);
}

static void on_rejected(struct ib_qp *qp, int reason, const void *private,
			size_t length)
{
	struct news *n = qp_news(qp, NEWS_REJECTED);

	n->status = reason;
	news_say(n, private, length);
	qp_post(n);
}

static void on_failed(struct ib_qp *qp, int status)
{
	struct news *n = qp_news(qp, NEWS_FAILED);

	n->status = status;
	qp_post(n);
}

static void on_disconnected(struct ib_qp *qp)
{
	qp_post(qp_news(qp, NEWS_DISCONNECTED));
}

static void on_received(struct ib_qp *qp, void *cookie, uint32_t length,
			enum ib_wc_status status)
{
	struct news *n = qp_news(qp, NEWS_RECEIVED);

	n->cookie = cookie;
	n->length = length;
	n->wc = status;
	qp_post(n);
}

static void on_sent(struct ib_qp *qp, void *cookie, enum ib_wc_status status)
{
	struct news *n = qp_news(qp, NEWS_SENT);

	n->cookie = cookie;
	n->wc = status;
	qp_post(n);
}

static void on_port_changed(struct ib_port *inner, bool up, bool removed,
			    const char *why)
{
	struct ferry_port *p = inner->user;
	struct news *n = news_new(p, NULL, NEWS_PORT);

	n->up = up;
	n->removed = removed;
	n->why = why;
	loop_post(p->ib.ni->loops[0], &n->work);
}

static const struct ib_events inner_events = {
	.request_cpt = on_request_cpt,
	.request = on_request,
	.resolved = on_resolved,
	.established = on_established,
	.rejected = on_rejected,
	.failed = on_failed,
	.disconnected = on_disconnected,
	.received = on_received,
	.sent = on_sent,
	.port_changed = on_port_changed,
};

/* ---- calls of the LND ---- */

static int ferry_open(struct lnd_ni *ni, const struct ib_port_conf *conf,
		      const struct ib_events *events, void *user,
		      struct ib_port **port_p, const char **why)
{
	struct ferry *f = ni->fabric;
	struct ferry_port *p = calloc(1, sizeof(*p));
	int rc;

	BUG_ON(!p || ni->cpts > LNET_CPTS_MAX);
	loop_assert_owner(ni->loops[0]);
	p->ferry = f;
	p->refs = 1;
	for (unsigned int i = 0; i < ni->cpts; i++)
		p->loops[i] = f->loop;
	p->ni.nid = ni->nid;
	p->ni.cpts = ni->cpts;
	p->ni.loops = p->loops;
	p->ni.fabric = f->fabric;
	p->ib = (struct ib_port){
		.verbs = f->ib.verbs, .events = events, .ni = ni, .user = user
	};
	take(f);
	rc = simqp_verbs()->open(&p->ni, conf, &inner_events, p, &p->inner,
				 why);
	f->ports += !rc;
	give(f);
	if (rc) {
		free(p);
		return rc;
	}
	p->ib.limits = p->inner->limits;
	*port_p = &p->ib;
	return 0;
}

static void ferry_stop_listening(struct ib_port *ib)
{
	struct ferry_port *p = port_of(ib);

	take(p->ferry);
	p->deaf = true;
	simqp_verbs()->stop_listening(p->inner);
	give(p->ferry);
}

static void ferry_close(struct ib_port *ib)
{
	struct ferry_port *p = port_of(ib);
	struct ferry *f = p->ferry;

	loop_assert_owner(p->ib.ni->loops[0]);
	ferry_stop_listening(ib);
	take(f);
	p->closed = true;
	port_put(p);
	give(f);
}

static int ferry_resolve(struct ib_port *ib, unsigned int cpt,
			 const struct ulnet_nid *dst, void *user,
			 struct ib_qp **qp_p)
{
	struct ferry_port *p = port_of(ib);
	struct ferry *f = p->ferry;
	struct ferry_qp *qp;
	int rc;

	loop_assert_owner(ib->ni->loops[cpt]);
	take(f);
	qp = qp_new(p, cpt);
	qp->ib.user = user;
	rc = simqp_verbs()->resolve(p->inner, cpt, dst, qp, &qp->inner);
	if (rc)
		qp_put(qp);
	else
		*qp_p = &qp->ib;
	give(f);
	return rc;
}

/* Begins a call for @qp, on its CPT's thread. */
static struct ib_qp *call_begin(struct ferry_qp *qp)
{
	loop_assert_owner(qp->loop);
	take(qp->port->ferry);
	return qp->inner;
}

static int call_end(struct ferry_qp *qp, int rc)
{
	give(qp->port->ferry);
	return rc;
}

static int ferry_create(struct ib_qp *ib, const struct ib_qp_conf *conf)
{
	struct ferry_qp *qp = qp_of(ib);
	struct ib_qp *inner = call_begin(qp);
	int rc = simqp_verbs()->create(inner, conf);

	ib->max_inline = inner->max_inline;
	return call_end(qp, rc);
}

static int ferry_connect(struct ib_qp *ib, const void *private, size_t length)
{
	struct ferry_qp *qp = qp_of(ib);
	int rc = simqp_verbs()->connect(call_begin(qp), private, length);

	qp->quiet = qp->quiet || rc;
	return call_end(qp, rc);
}

static int ferry_accept(struct ib_qp *ib, const void *private, size_t length)
{
	struct ferry_qp *qp = qp_of(ib);
	int rc = simqp_verbs()->accept(call_begin(qp), private, length);

	qp->quiet = qp->quiet || rc;
	return call_end(qp, rc);
}

static void ferry_reject(struct ib_qp *ib, const void *private, size_t length)
{
	struct ferry_qp *qp = qp_of(ib);

	simqp_verbs()->reject(call_begin(qp), private, length);
	qp->quiet = true;
	call_end(qp, 0);
}

static void ferry_disconnect(struct ib_qp *ib)
{
	struct ferry_qp *qp = qp_of(ib);

	simqp_verbs()->disconnect(call_begin(qp));
	qp->quiet = true;
	call_end(qp, 0);
}

static void ferry_destroy(struct ib_qp *ib)
{
	struct ferry_qp *qp = qp_of(ib);
	struct ferry *f = qp->port->ferry;

	call_begin(qp);
	qp_destroy(qp);
	give(f);
}

static int ferry_post_recv(struct ib_qp *ib, const struct ib_sge *sge,
			   void *cookie)
{
	struct ferry_qp *qp = qp_of(ib);

	return call_end(qp,
			simqp_verbs()->post_recv(call_begin(qp), sge, cookie));
}

static int ferry_post_send(struct ib_qp *ib, const struct ib_wr *wrs,
			   unsigned int n)
{
	struct ferry_qp *qp = qp_of(ib);

	return call_end(qp, simqp_verbs()->post_send(call_begin(qp), wrs, n));
}

static int ferry_reg(struct ib_port *ib, void *addr, size_t length, bool remote,
		     struct ib_mr **mr_p)
{
	struct ferry_port *p = port_of(ib);
	int rc;

	take(p->ferry);
	rc = simqp_verbs()->reg(p->inner, addr, length, remote, mr_p);
	give(p->ferry);
	return rc;
}

static void ferry_dereg(struct ib_port *ib, struct ib_mr *mr)
{
	struct ferry_port *p = port_of(ib);

	take(p->ferry);
	simqp_verbs()->dereg(p->inner, mr);
	give(p->ferry);
}

static const struct ib_verbs ferry_verbs = {
	.name = "simulated, for threads",
	.open = ferry_open,
	.close = ferry_close,
	.stop_listening = ferry_stop_listening,
	.resolve = ferry_resolve,
	.create = ferry_create,
	.connect = ferry_connect,
	.accept = ferry_accept,
	.reject = ferry_reject,
	.disconnect = ferry_disconnect,
	.destroy = ferry_destroy,
	.post_recv = ferry_post_recv,
	.post_send = ferry_post_send,
	.reg = ferry_reg,
	.dereg = ferry_dereg,
};

/* ---- the world ---- */

static uint64_t real_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* Waits until the next event is due, or a call may have brought an earlier one.
 */
static void world_wait(struct ferry *f)
{
	uint64_t next = loop_next(f->loop);
	struct timespec until;

	if (next == TIME_NEVER) {
		pthread_cond_wait(&f->woken, &f->lock);
		return;
	}
	next += f->begun;
	until.tv_sec = (time_t)(next / NSEC_PER_SEC);
	until.tv_nsec = (long)(next % NSEC_PER_SEC);
	pthread_cond_timedwait(&f->woken, &f->lock, &until);
}

static void *world_run(void *arg)
{
	struct ferry *f = arg;

	pthread_mutex_lock(&f->lock);
	loop_take_over(f->loop);
	while (!f->ending) {
		if (!env_sim_step(f->world, real_ns() - f->begun))
			world_wait(f);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

static void woken_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

struct ferry *ferry_new(const struct simqp_conf *conf)
{
	struct ferry *f = calloc(1, sizeof(*f));
	struct env *env;

	BUG_ON(!f);
	f->ib.verbs = &ferry_verbs;
	f->begun = real_ns();
	pthread_mutex_init(&f->lock, NULL);
	woken_init(&f->woken);
	BUG_ON(env_sim_new(1, &f->world) || env_sim_env(f->world, &env) ||
	       loop_new(env, &f->loop) ||
	       simqp_fabric_new(f->world, conf, &f->fabric) ||
	       pthread_create(&f->thread, NULL, world_run, f));
	return f;
}

bool ferry_free(struct ferry *f)
{
	bool closed;

	take(f);
	f->ending = true;
	closed = !f->ports;
	give(f);
	pthread_join(f->thread, NULL);
	if (!closed)
		return false;
	loop_take_over(f->loop);
	simqp_fabric_free(f->fabric);
	loop_free(f->loop);
	env_sim_free(f->world);
	pthread_cond_destroy(&f->woken);
	pthread_mutex_destroy(&f->lock);
	free(f);
	return true;
}

void *ferry_fabric(struct ferry *f)
{
	return f;
}
