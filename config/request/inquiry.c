/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/request/inquiry.h"

#include <ctype.h>
#include <errno.h>
#include <time.h>

#include "config/request/request.h"

#define NIDS_MAX	 1024		  /* NIDs in one request */
#define POLL_US		 UINT64_C(100000) /* us that one lnet_poll() may wait */
#define PING_TIMEOUT	 1		  /* s for each NID, by default */
#define DISCOVER_TIMEOUT 30
#define TIMEOUT_MAX	 3600

/* What a request asks peers; borrows from the request. */
struct inquiry {
	enum inquiry_kind kind;
	const struct tree *nids; /* a list of texts */
	uint64_t timeout;	 /* us, for each NID */
	/* PING: the NI to ping from; ANY: any NI */
	struct ulnet_nid source;
	bool force; /* DISCOVER: discovers even peers that are up to date */
};

/* A ping or a discovery of one NID. */
struct question {
	struct inquiries *of;
	/* the NID as it was given, borrowed from the request; if it is one of a
	 * range that was given: @name */
	const char *text;
	char name[LNET_NIDSTR_SIZE];
	struct ulnet_nid nid;
	/* where a connection to the NID is made; 0: where the node makes it
	 * anyway */
	uint16_t port;
	/* the node connects to @port until port_release() */
	bool port_claimed;
	bool ended;
	int status;  /* 0 or -errno, once it has ended */
	bool no_nid; /* the text is no NID */
	struct ulnet_ping_ni *ni;
	unsigned int nnis;
};

/* All pings, or all discoveries, of one request. The thread that waits for them
 * has a reference, and so has each ping or discovery that was started and has
 * not ended: some end only after the waiting is over. */
struct inquiries {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned int refs;
	unsigned int pending;
	bool canceled;
	bool over; /* nobody waits any more: results stay as they are */
	unsigned int n;
	struct question question[];
};

/* ---- canceling ---- */

void cancel_init(struct cancel *c)
{
	*c = (struct cancel){ .wake = NULL };
	pthread_mutex_init(&c->lock, NULL);
}

void cancel_fini(struct cancel *c)
{
	pthread_mutex_destroy(&c->lock);
}

void cancel_now(struct cancel *c)
{
	pthread_mutex_lock(&c->lock);
	atomic_store(&c->canceled, true);
	if (c->wake)
		c->wake(c->arg);
	pthread_mutex_unlock(&c->lock);
}

void cancel_watch(struct cancel *c, void (*wake)(void *arg), void *arg)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->wake = wake;
	c->arg = arg;
	if (wake && atomic_load(&c->canceled))
		wake(arg);
	pthread_mutex_unlock(&c->lock);
}

static void inquiries_cancel(void *arg)
{
	struct inquiries *p = arg;

	pthread_mutex_lock(&p->lock);
	p->canceled = true;
	pthread_cond_signal(&p->changed);
	pthread_mutex_unlock(&p->lock);
}

/* ---- asking ---- */

/* Makes inquiries without a question, and with room for NIDS_MAX. Returns a
 * reference, or NULL: no memory. */
static struct inquiries *inquiries_new(void)
{
	struct inquiries *p =
		calloc(1, sizeof(*p) + NIDS_MAX * sizeof(*p->question));
	pthread_condattr_t attr;

	if (!p)
		return NULL;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->changed, &attr);
	pthread_condattr_destroy(&attr);
	p->refs = 1;
	return p;
}

/* Drops a reference. Called with the lock held, which it releases. */
static void inquiries_put(struct inquiries *p)
{
	bool last = --p->refs == 0;

	pthread_mutex_unlock(&p->lock);
	if (!last)
		return;
	for (unsigned int i = 0; i < p->n; i++)
		free(p->question[i].ni);
	pthread_cond_destroy(&p->changed);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

static void question_keep(struct question *one,
			  const struct ulnet_ping_info *info)
{
	size_t size = info ? info->nnis * sizeof(*info->ni) : 0;

	if (!size)
		return;
	one->ni = malloc(size);
	if (!one->ni) {
		one->status = -ENOMEM;
		return;
	}
	memcpy(one->ni, info->ni, size);
	one->nnis = info->nnis;
}

static void inquiry_pinged(void *arg, int status,
			   const struct ulnet_ping_info *info)
{
	struct question *one = arg;
	struct inquiries *p = one->of;

	pthread_mutex_lock(&p->lock);
	if (!p->over) {
		one->ended = true;
		one->status = status;
		question_keep(one, info);
	}
	p->pending--;
	pthread_cond_signal(&p->changed);
	inquiries_put(p);
}

static void discovered(void *arg, int status)
{
	inquiry_pinged(arg, status, NULL);
}

/* Makes the node connect to the port of the question. The port is no stronger
 * than what DNS says: whom the node knows at another port, it does not move. */
static int question_claim(struct lnet *node, struct question *one)
{
	int rc;

	if (!one->port)
		return 0;
	rc = lnet_peer_port_claim(node, &one->nid, one->port, LNET_PORT_FOUND);
	one->port_claimed = !rc;
	return rc;
}

static void questions_release(struct lnet *node, struct inquiries *p)
{
	for (unsigned int i = 0; i < p->n; i++)
		if (p->question[i].port_claimed)
			lnet_peer_port_release(node, &p->question[i].nid,
					       LNET_PORT_FOUND);
}

static void question_ask(struct lnet *node, const struct inquiry *q,
			 struct question *one)
{
	struct ulnet_id id = { one->nid, LNET_PID_ANY };
	struct inquiries *p = one->of;
	int rc = question_claim(node, one);

	if (rc) {
		one->ended = true;
		one->status = rc == -EEXIST ? -EADDRINUSE : rc;
		return;
	}

	pthread_mutex_lock(&p->lock);
	p->refs++;
	p->pending++;
	pthread_mutex_unlock(&p->lock);
	if (q->kind == INQUIRY_PING)
		rc = lnet_ping_from(node, &q->source, id, q->timeout,
				    inquiry_pinged, one);
	else
		rc = lnet_discover(node, &one->nid,
				   q->force ? LNET_DISCOVER_FORCE : 0,
				   discovered, one);
	if (rc)
		inquiry_pinged(one, rc, NULL);
}

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static bool has_ended(struct inquiries *p)
{
	bool ended;

	pthread_mutex_lock(&p->lock);
	ended = !p->pending || p->canceled;
	pthread_mutex_unlock(&p->lock);
	return ended;
}

/* Waits until all pings or discoveries have ended or are canceled, or now_us()
 * reaches @until. If the calling thread runs the node, it makes the node's
 * turns meanwhile. */
static void inquiries_wait(struct lnet *node, struct inquiries *p,
			   uint64_t until)
{
	const struct timespec end = {
		.tv_sec = (time_t)(until / 1000000),
		.tv_nsec = (long)(until % 1000000 * 1000),
	};
	uint64_t now = now_us();
	int rc = lnet_poll(node, 0);

	while ((!rc || rc == -EAGAIN) && !has_ended(p) && now < until) {
		rc = lnet_poll(node, MIN(POLL_US, until - now));
		now = now_us();
	}
	rc = 0;
	pthread_mutex_lock(&p->lock);
	while (p->pending && !p->canceled && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&p->changed, &p->lock, &end);
	p->over = true;
	pthread_mutex_unlock(&p->lock);
}

/* ---- results ---- */

static void show_result(struct tree *result, const struct ulnet_nid *primary,
			bool multi_rail, struct tree **nis_p)
{
	show_nid(result, "primary nid", primary);
	tree_text(result, "Multi-Rail", TREE_PLAIN,
		  multi_rail ? "true" : "false");
	*nis_p = tree_seq(result, "peer_ni");
}

static void show_ping(struct lnet *node, const struct question *one,
		      struct tree *result)
{
	struct ulnet_peer_info peer = { 0 };
	bool multi_rail =
		!lnet_peer_info(node, &one->nid, &peer) && peer.multi_rail;
	struct tree *nis;

	/* A node with no NI but lo answers with an empty list. */
	show_result(result, one->nnis ? &one->ni[0].nid : &one->nid, multi_rail,
		    &nis);
	for (unsigned int i = 0; i < one->nnis; i++)
		show_nid(tree_map(nis, NULL), "nid", &one->ni[i].nid);
	if (!one->nnis)
		show_nid(tree_map(nis, NULL), "nid", &one->nid);
}

/* Shows what is known of the peer now. */
static void show_discovered(const struct peer_list *list,
			    const struct question *one, struct tree *result)
{
	const struct ulnet_peer_info *infos = NULL;
	unsigned int span = peer_list_find(list, &one->nid, &infos);
	struct tree *nis;

	show_result(result, span ? &infos->primary : &one->nid,
		    span && infos->multi_rail, &nis);
	for (unsigned int i = 0; i < span; i++)
		show_nid(tree_map(nis, NULL), "nid", &infos[i].nid);
}

static const char *const kind_names[] = { "ping", "discover" };

static int question_status(const struct inquiries *p,
			   const struct question *one)
{
	if (one->ended)
		return one->status;
	return p->canceled ? -ECANCELED : -ETIMEDOUT;
}

/* Returns why @text is no NID. Users try names of hosts, which are not looked
 * up: a NID has to be the same for everybody, at any time. */
static const char *question_no_nid(const char *text)
{
	const char *at = strchr(text, '@');
	uint32_t net;

	if (at && isalpha((unsigned char)*text) && !strchr(text, ':') &&
	    !lnet_net_parse(at + 1, &net))
		return "that is no NID: names of hosts are not looked up, an "
		       "address is needed";
	return "that is no NID";
}

static const char *question_reason(const struct inquiry *q,
				   const struct question *one, int rc)
{
	if (one->no_nid)
		return question_no_nid(one->text);
	if (rc == -EADDRINUSE && one->port)
		return "the node has this NID at another port";
	if (rc == -EINVAL && q->kind == INQUIRY_DISCOVER)
		return "that is a NID of this node";
	if (rc == -EINVAL && !lnet_nid_is_any(&q->source))
		return "the source is no NID of this node";
	return strerror(-rc);
}

static int inquiries_show(struct lnet *node, const struct inquiries *p,
			  const struct scope *s, const struct inquiry *q)
{
	enum inquiry_kind kind = q->kind;
	struct tree *result;
	struct peer_list list = { NULL, 0 };
	int first = 0, rc;

	if (kind == INQUIRY_DISCOVER) {
		rc = peer_list_read(node, &list);
		if (rc)
			return scope_fail(s, NULL, rc, "cannot get peers: %s",
					  strerror(-rc));
	}
	for (unsigned int i = 0; i < p->n; i++) {
		const struct question *one = &p->question[i];

		rc = question_status(p, one);
		if (rc) {
			answer_error(s->answer, &s->subject, rc,
				     "failed to %s %s: %s", kind_names[kind],
				     one->text, question_reason(q, one, rc));
			first = first ? first : rc;
			continue;
		}
		result = tree_item(answer_output(s->answer), kind_names[kind]);
		if (kind == INQUIRY_PING)
			show_ping(node, one, result);
		else
			show_discovered(&list, one, result);
	}
	peer_list_free(&list);
	return first;
}

/* ---- reading the request ---- */

static int read_timeout(const struct scope *s, const struct tree *args,
			struct inquiry *q)
{
	int64_t seconds =
		q->kind == INQUIRY_PING ? PING_TIMEOUT : DISCOVER_TIMEOUT;
	int rc = scope_number(s, tree_get(args, "timeout"), 1, TIMEOUT_MAX,
			      &seconds);

	q->timeout = (uint64_t)seconds * 1000000;
	return rc;
}

static int inquiry_read_options(const struct scope *s, const struct tree *args,
				struct inquiry *q)
{
	const char *own = q->kind == INQUIRY_PING ? "source" : "force";
	const char *const keys[] = { "nids",	   "nid",	  "timeout",
				     own,	   "primary nid", "peer_ni",
				     "Multi-Rail", "seq_no",	  "errno",
				     NULL };
	int rc = scope_keys(s, args, keys);

	if (!rc)
		rc = scope_nid(s, tree_get(args, "source"), &q->source);
	if (!rc)
		rc = scope_bool(s, tree_get(args, "force"), &q->force);
	return rc ? rc : read_timeout(s, args, q);
}

static int inquiry_read(const struct scope *s, const struct tree *args,
			enum inquiry_kind kind, struct inquiry *q)
{
	static const char *const keys[] = { "nids", "nid", "primary nid",
					    NULL };
	int rc;

	*q = (struct inquiry){ .kind = kind, .source = LNET_NID_ANY };
	if (tree_is_text(args)) {
		q->nids = args;
		return read_timeout(s, args, q);
	}
	for (unsigned int i = 0; !q->nids && keys[i]; i++)
		q->nids = tree_get(args, keys[i]);
	rc = inquiry_read_options(s, args, q);
	if (!rc && !q->nids)
		rc = scope_fail(s, args, -EINVAL, "%s: nids is missing",
				kind_names[kind]);
	return rc;
}

/* Adds questions for the NIDs of a range. */
static int questions_of_range(const struct scope *s, const struct tree *t,
			      struct nids *ranges, struct inquiries *p)
{
	unsigned int before = ranges->n;
	int rc = scope_nids(s, t, ranges);

	if (!rc && p->n + ranges->n - before > NIDS_MAX)
		rc = scope_fail(s, t, -EMSGSIZE, "more than %d NIDs", NIDS_MAX);
	for (unsigned int i = before; !rc && i < ranges->n; i++) {
		struct question *one = &p->question[p->n++];

		one->of = p;
		one->nid = ranges->nids[i];
		one->text = lnet_nid_format(&one->nid, one->name,
					    sizeof(one->name));
	}
	return rc;
}

static int question_of_text(const struct scope *s, const struct tree *t,
			    uint16_t port, struct inquiries *p)
{
	struct question *one = &p->question[p->n];

	if (p->n == NIDS_MAX)
		return scope_fail(s, t, -EMSGSIZE, "more than %d NIDs",
				  NIDS_MAX);
	p->n++;
	one->of = p;
	one->port = port;
	one->text = t->text;
	if (lnet_nid_parse(one->text, &one->nid) ||
	    lnet_nid_is_any(&one->nid)) {
		one->ended = true;
		one->status = -EINVAL;
		one->no_nid = true;
	}
	return 0;
}

/* Makes a question of a NID with a port: {nid: 10.0.0.1@tcp, port: 7000}. */
static int question_of_map(const struct scope *s, const struct tree *t,
			   struct inquiries *p)
{
	static const char *const keys[] = { "nid", "port", NULL };
	const struct tree *nid = NULL, *number = NULL;
	const char *text;
	int64_t port = 0;
	int rc = scope_keys(s, t, keys);

	if (!rc)
		rc = scope_need(s, t, "nid", &nid);
	if (!rc)
		rc = scope_text(s, nid, &text);
	if (!rc)
		rc = scope_need(s, t, "port", &number);
	if (!rc)
		rc = scope_number(s, number, 1, UINT16_MAX, &port);
	if (!rc)
		rc = question_of_text(s, nid, (uint16_t)port, p);
	return rc;
}

static int read_nid(const struct scope *s, const struct tree *t,
		    struct nids *ranges, struct inquiries *p)
{
	const char *text;
	int rc;

	if (t->kind == TREE_MAP)
		return question_of_map(s, t, p);
	rc = scope_text(s, t, &text);
	if (rc)
		return rc;
	return strchr(text, '[') ? questions_of_range(s, t, ranges, p)
				 : question_of_text(s, t, 0, p);
}

/* Makes questions of the list @nids. */
static int read_nids(const struct scope *s, const struct tree *nids,
		     struct inquiries *p)
{
	struct nids ranges = { NULL, 0, 0, 0 };
	const struct tree *t = NULL;
	int rc = 0;

	while (!rc && (t = list_next(nids, t)))
		rc = read_nid(s, t, &ranges, p);
	free(ranges.nids);
	if (!rc && !p->n)
		rc = scope_fail(s, nids, -EINVAL, "no NID is given");
	return rc;
}

static int inquire_all(struct lnet *node, const struct scope *s,
		       const struct inquiry *q, struct inquiries *p,
		       struct cancel *cancel)
{
	uint64_t until = now_us() + q->timeout;

	for (unsigned int i = 0; i < p->n; i++)
		if (!p->question[i].ended)
			question_ask(node, q, &p->question[i]);
	cancel_watch(cancel, inquiries_cancel, p);
	inquiries_wait(node, p, until);
	cancel_watch(cancel, NULL, NULL);
	questions_release(node, p);
	return inquiries_show(node, p, s, q);
}

int inquire(struct lnet *node, const struct scope *s, const struct tree *args,
	    enum inquiry_kind kind, struct cancel *cancel)
{
	struct inquiries *p;
	struct inquiry q;
	int rc = inquiry_read(s, args, kind, &q);

	if (rc)
		return rc;
	p = inquiries_new();
	if (!p)
		return scope_fail(s, q.nids, -ENOMEM, "no memory");
	rc = read_nids(s, q.nids, p);
	if (!rc)
		rc = inquire_all(node, s, &q, p, cancel);
	pthread_mutex_lock(&p->lock);
	inquiries_put(p);
	return rc;
}
