/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The backend of o2iblnd on rdma-core (lnd/o2iblnd/verbs.h), on loops in
 * threads of their own, with two RDMA devices of one host:
 *
 *	o2ib_verbs [ADDRESS ADDRESS [INTERFACE DEVICE]]
 *
 * INTERFACE, the first address's, is taken down and up, and loses that address
 * for a while; its Soft-RoCE device, DEVICE, is deleted, and made anew. Exit
 * status 77: there is no RDMA device.
 */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lnd/o2iblnd/rdma.h"
#include "tests/thread/check.h"

#define CPTS	 2
#define RECVS	 256
#define SENDS	 256
#define MESSAGE	 4096
#define WRITTEN	 (1 << 20)
#define PIECES	 4
#define MANY	 32
#define WAIT_SEC 30

static const struct ib_verbs *verbs;
/* protects all that events report */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;

enum answer { ACCEPT, REJECT, HOLD };

struct side {
	struct lnd_ni ni;
	struct loop *loops[CPTS];
	pthread_t threads[CPTS];
	struct ib_port *port;
	/* each end uses a part of it */
	uint8_t *memory;
	struct ib_mr *mr;
	/* what is done with connection requests */
	enum answer answer;
	unsigned int cpt;
	/* for connections that are accepted, or kept waiting */
	struct end *ends;
	unsigned int nends, taken;
	/* of the port */
	bool up, removed;
	unsigned int changes;
};

/* One end of a connection. Its memory has what it sends, and a buffer for each
 * receive. */
struct end {
	struct side *side;
	struct ib_qp *qp;
	uint8_t *memory;
	unsigned int cpt;
	bool resolved, established, rejected, disconnected;
	int failed, reason;
	size_t private_length;
	uint8_t private[256];
	struct ib_source from;
	unsigned int posted; /* receives */
	unsigned int sending;
	unsigned int received[IB_WC_STATUSES], sent[IB_WC_STATUSES];
	unsigned int bytes, wrong;
	int rc; /* result of a call made in an event */
	/* arguments of what loop_call() runs */
	const struct ulnet_nid *dst;
	struct ib_qp_conf conf;
	unsigned int count;
	uint32_t rkey;
	uint8_t *to;
};

#define END_MEMORY ((size_t)MESSAGE * (RECVS + 1))

/* ---- waiting ---- */

static void tell(void)
{
	pthread_cond_broadcast(&news);
}

#define wait_for(cond)                                                  \
	({                                                              \
		struct timespec until;                                  \
		bool is;                                                \
		clock_gettime(CLOCK_REALTIME, &until);                  \
		until.tv_sec += WAIT_SEC;                               \
		pthread_mutex_lock(&lock);                              \
		while (!(is = (cond)) &&                                \
		       !pthread_cond_timedwait(&news, &lock, &until))   \
			;                                               \
		pthread_mutex_unlock(&lock);                            \
		check_at(is, "waited for: " #cond, __FILE__, __LINE__); \
	})

static unsigned int all_of(const unsigned int *n)
{
	unsigned int sum = 0;

	for (unsigned int i = 0; i < IB_WC_STATUSES; i++)
		sum += n[i];
	return sum;
}

/* ---- an end ---- */

static uint8_t *recv_memory(const struct end *e, unsigned int i)
{
	return e->memory + (size_t)MESSAGE * (1 + i % RECVS);
}

static int end_post_recv(struct end *e)
{
	struct ib_sge sge = { .addr = recv_memory(e, e->posted),
			      .length = MESSAGE,
			      .lkey = e->side->mr->lkey };
	int rc = verbs->post_recv(e->qp, &sge, sge.addr);

	if (!rc)
		e->posted++;
	return rc;
}

static int end_create(struct end *e)
{
	const struct ib_qp_conf conf = { .max_send_wr = SENDS,
					 .max_recv_wr = RECVS,
					 .max_send_sge = 2,
					 .max_inline = 128 };
	int rc = verbs->create(e->qp, e->conf.max_send_wr ? &e->conf : &conf);

	for (unsigned int i = 0; i < RECVS && !rc; i++)
		rc = end_post_recv(e);
	return rc;
}

static void end_private(struct end *e, const void *private, size_t length)
{
	e->private_length = length;
	memcpy(e->private, private, MIN(length, sizeof(e->private)));
}

/* ---- events ---- */

static unsigned int on_request_cpt(struct ib_port *port, const void *private,
				   size_t length)
{
	struct side *s = port->user;

	(void)private;
	check(length == IB_PRIVATE_REQUEST_SIZE);
	return s->cpt;
}

static void on_request(struct ib_port *port, struct ib_qp *qp,
		       const struct ib_source *from, const void *private,
		       size_t length)
{
	struct side *s = port->user;
	struct end *e;

	check(loop_is_owner(s->loops[qp->cpt]));
	pthread_mutex_lock(&lock);
	check(qp->cpt == s->cpt);
	if (s->answer == REJECT || s->taken == s->nends) {
		verbs->reject(qp, "no, thanks", 10);
		verbs->destroy(qp);
	} else {
		e = &s->ends[s->taken++];
		e->qp = qp;
		qp->user = e;
		e->cpt = qp->cpt;
		e->from = *from;
		end_private(e, private, length);
		if (s->answer == ACCEPT) {
			e->rc = end_create(e);
			if (!e->rc)
				e->rc = verbs->accept(qp, "welcome", 7);
		}
	}
	tell();
	pthread_mutex_unlock(&lock);
}

static struct end *event_begin(struct ib_qp *qp)
{
	struct end *e = qp->user;

	check(loop_is_owner(e->side->loops[qp->cpt]));
	pthread_mutex_lock(&lock);
	return e;
}

static void event_end(void)
{
	tell();
	pthread_mutex_unlock(&lock);
}

static void on_resolved(struct ib_qp *qp)
{
	struct end *e = event_begin(qp);

	e->resolved = true;
	e->rc = end_create(e);
	if (!e->rc)
		e->rc = verbs->connect(qp, "hello", 5);
	event_end();
}

static void on_established(struct ib_qp *qp, const void *private, size_t length)
{
	struct end *e = event_begin(qp);

	e->established = true;
	if (private)
		end_private(e, private, length);
	event_end();
}

static void on_rejected(struct ib_qp *qp, int reason, const void *private,
			size_t length)
{
	struct end *e = event_begin(qp);

	e->rejected = true;
	e->reason = reason;
	end_private(e, private, length);
	event_end();
}

static void on_failed(struct ib_qp *qp, int status)
{
	struct end *e = event_begin(qp);

	check(!e->failed);
	e->failed = status;
	event_end();
}

static void on_disconnected(struct ib_qp *qp)
{
	struct end *e = event_begin(qp);

	e->disconnected = true;
	event_end();
}

static void on_received(struct ib_qp *qp, void *cookie, uint32_t length,
			enum ib_wc_status status)
{
	struct end *e = event_begin(qp);
	const uint8_t *m = cookie;

	check(m == recv_memory(e, all_of(e->received)));
	e->received[status]++;
	if (status == IB_WC_OK) {
		e->bytes += length;
		for (uint32_t i = 1; i < length; i++)
			e->wrong += m[i] != m[0];
		end_post_recv(e);
	}
	event_end();
}

static void on_sent(struct ib_qp *qp, void *cookie, enum ib_wc_status status)
{
	struct end *e = event_begin(qp);

	check(cookie == e + 1);
	e->sent[status]++;
	event_end();
}

static void on_port_changed(struct ib_port *port, bool up, bool removed,
			    const char *why)
{
	struct side *s = port->user;

	check(loop_is_owner(s->loops[0]));
	printf("  %s\n", why);
	pthread_mutex_lock(&lock);
	s->up = up;
	s->removed = s->removed || removed;
	s->changes++;
	event_end();
}

static const struct ib_events events = {
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

/* ---- what is done on an end's loop ---- */

static int end_do(struct end *e, int (*fn)(void *arg))
{
	return loop_call(e->side->loops[e->cpt], fn, e);
}

static int do_resolve(void *arg)
{
	struct end *e = arg;
	int rc;

	pthread_mutex_lock(&lock);
	rc = verbs->resolve(e->side->port, e->cpt, e->dst, e, &e->qp);
	pthread_mutex_unlock(&lock);
	return rc;
}

static int do_accept(void *arg)
{
	struct end *e = arg;
	int rc;

	pthread_mutex_lock(&lock);
	rc = end_create(e);
	pthread_mutex_unlock(&lock);
	return rc ? rc : verbs->accept(e->qp, "welcome", 7);
}

static int do_disconnect(void *arg)
{
	struct end *e = arg;

	verbs->disconnect(e->qp);
	return 0;
}

static int do_destroy(void *arg)
{
	struct end *e = arg;

	verbs->destroy(e->qp);
	return 0;
}

static int do_resolve_and_destroy(void *arg)
{
	int rc = do_resolve(arg);

	return rc ? rc : do_destroy(arg);
}

static int end_post_send(struct end *e, const struct ib_wr *wrs, unsigned int n)
{
	int rc;

	pthread_mutex_lock(&lock);
	rc = verbs->post_send(e->qp, wrs, n);
	if (!rc)
		e->sending++;
	pthread_mutex_unlock(&lock);
	return rc;
}

/* Posts e->count sends at once, of e->conf.max_inline bytes if that is set. */
static int do_send(void *arg)
{
	struct end *e = arg;
	uint32_t inlined = e->conf.max_inline;
	struct ib_sge sge = { .addr = e->memory,
			      .length = inlined ? inlined : MESSAGE,
			      .lkey = e->side->mr->lkey };
	struct ib_wr wr = { .type = IB_WR_SEND,
			    .sge = &sge,
			    .nsge = 1,
			    .inlined = inlined,
			    .cookie = e + 1 };
	int rc = 0;

	for (unsigned int i = 0; i < e->count && !rc; i++)
		rc = end_post_send(e, &wr, 1);
	return rc;
}

/* Writes WRITTEN bytes, from memory that does not belong to this end. */
static int do_write(void *arg)
{
	struct end *e = arg;
	struct ib_wr wrs[PIECES + 1];
	struct ib_sge sges[PIECES + 1];
	uint32_t size = WRITTEN / PIECES;

	for (unsigned int i = 0; i < PIECES; i++) {
		sges[i] = (struct ib_sge){ e->side->memory + (size_t)i * size,
					   size, e->side->mr->lkey };
		wrs[i] = (struct ib_wr){ .type = IB_WR_WRITE,
					 .sge = &sges[i],
					 .nsge = 1,
					 .remote_addr = (uintptr_t)e->to +
							(size_t)i * size,
					 .rkey = e->rkey };
	}
	sges[PIECES] = (struct ib_sge){ e->memory, MESSAGE, e->side->mr->lkey };
	wrs[PIECES] = (struct ib_wr){ .type = IB_WR_SEND,
				      .sge = &sges[PIECES],
				      .nsge = 1,
				      .cookie = e + 1 };
	return end_post_send(e, wrs, PIECES + 1);
}

/* ---- sides ---- */

static void *run(void *arg)
{
	loop_run(arg);
	return NULL;
}

static void side_init(struct side *s, const char *nid)
{
	BUG_ON(lnet_nid_parse(nid, &s->ni.nid));
	s->ni.cpts = CPTS;
	s->ni.loops = s->loops;
	s->ni.numa_node = -1;
	s->up = true;
	for (unsigned int i = 0; i < CPTS; i++) {
		struct env *env;

		BUG_ON(env_ev_new(NULL, &env) || loop_new(env, &s->loops[i]));
		BUG_ON(pthread_create(&s->threads[i], NULL, run, s->loops[i]));
	}
}

static void side_fini(struct side *s)
{
	for (unsigned int i = 0; i < CPTS; i++) {
		loop_stop(s->loops[i]);
		pthread_join(s->threads[i], NULL);
		loop_free(s->loops[i]);
	}
}

struct opening {
	struct side *s;
	struct ib_port_conf conf;
	struct ib_port *port;
	const char *why;
};

static int do_open(void *arg)
{
	struct opening *o = arg;

	o->why = NULL;
	return verbs->open(&o->s->ni, &o->conf, &events, o->s, &o->port,
			   &o->why);
}

static int do_close(void *arg)
{
	verbs->close(arg);
	return 0;
}

static int do_stop_listening(void *arg)
{
	verbs->stop_listening(arg);
	return 0;
}

static const struct ib_port_conf usual = { .service = 987,
					   .listen = true,
					   .privileged = true,
					   .tos = 8,
					   .retry_count = 5,
					   .rnr_retry_count = 6,
					   .resolve_ms = 3000 };

static int side_open(struct side *s)
{
	struct opening o = { .s = s, .conf = usual };
	size_t size = WRITTEN + END_MEMORY * MANY;
	int rc = loop_call(s->loops[0], do_open, &o);

	if (rc) {
		printf("%s\n", o.why ? o.why : strerror(-rc));
		return rc;
	}
	s->port = o.port;
	s->memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	BUG_ON(s->memory == MAP_FAILED);
	rc = verbs->reg(s->port, s->memory, size, true, &s->mr);
	check(!rc);
	return rc;
}

static void side_close(struct side *s)
{
	verbs->dereg(s->port, s->mr);
	munmap(s->memory, WRITTEN + END_MEMORY * MANY);
	loop_call(s->loops[0], do_close, s->port);
}

/* ---- connections ---- */

static struct side a, b;
static struct end active[MANY + 1], passive[MANY + 1];

static void end_init(struct end *e, struct side *s, unsigned int i)
{
	memset(e, 0, sizeof(*e));
	e->side = s;
	e->memory = s->memory + WRITTEN + END_MEMORY * i;
	memset(e->memory, (int)i + 1, MESSAGE);
}

static void connect_to(const struct side *to, unsigned int i)
{
	struct end *e = &active[i];

	e->cpt = i % CPTS;
	e->dst = &to->ni.nid;
	check(!end_do(e, do_resolve));
}

/* Makes two ends, and connects a to b. */
static void attempt(enum answer answer)
{
	end_init(&active[0], &a, 0);
	end_init(&passive[0], &b, 0);
	pthread_mutex_lock(&lock);
	b.answer = answer;
	b.ends = passive;
	b.nends = 1;
	b.taken = 0;
	pthread_mutex_unlock(&lock);
	connect_to(&b, 0);
}

static void connect_both(void)
{
	attempt(ACCEPT);
	wait_for(active[0].established && passive[0].established);
	check(!active[0].rc && !passive[0].rc);
}

/* Closes an end: all that was posted must end. */
static void end_close(struct end *e)
{
	if (!e->qp)
		return;
	end_do(e, do_disconnect);
	wait_for(all_of(e->received) == e->posted &&
		 all_of(e->sent) == e->sending);
	end_do(e, do_destroy);
}

static void close_both(void)
{
	end_close(&active[0]);
	end_close(&passive[0]);
}

/* ---- tests ---- */

static void say(const char *what)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	printf("%lld.%02ld %s\n", (long long)t.tv_sec, t.tv_nsec / 10000000,
	       what);
	fflush(stdout);
}

static void test_open(void)
{
	struct opening o = { .s = &a, .conf = usual };
	struct ulnet_nid nid = a.ni.nid;

	say("ports that cannot be opened");
	check(loop_call(a.loops[0], do_open, &o) == -EADDRINUSE && o.why);
	check(!lnet_nid_parse("192.0.2.1@o2ib", &a.ni.nid));
	check(loop_call(a.loops[0], do_open, &o) == -ENODEV && o.why);
	check(!lnet_nid_parse("127.0.0.1@o2ib", &a.ni.nid));
	check(loop_call(a.loops[0], do_open, &o) == -ENODEV && o.why);
	a.ni.nid = nid;
}

static void test_connect(void)
{
	static const uint8_t zeros[IB_PRIVATE_ACCEPT_SIZE];

	say("a connection, and what is said with it");
	connect_both();
	check(passive[0].private_length == IB_PRIVATE_REQUEST_SIZE);
	check(!memcmp(passive[0].private, "hello", 5));
	check(!memcmp(passive[0].private + 5, zeros,
		      IB_PRIVATE_REQUEST_SIZE - 5));
	check(active[0].private_length == IB_PRIVATE_ACCEPT_SIZE);
	check(!memcmp(active[0].private, "welcome", 7));
	check(!memcmp(active[0].private + 7, zeros,
		      IB_PRIVATE_ACCEPT_SIZE - 7));
	check(passive[0].from.port && passive[0].from.port < 1024);
	check(lnet_nid_eq(&passive[0].from.nid, &active[0].side->ni.nid));
	check(active[0].qp->max_inline >= 48);

	say("SENDs, both ways, more than a turn takes");
	active[0].count = SENDS;
	passive[0].count = SENDS;
	check(!end_do(&active[0], do_send));
	check(!end_do(&passive[0], do_send));
	wait_for(active[0].received[IB_WC_OK] == SENDS &&
		 passive[0].received[IB_WC_OK] == SENDS &&
		 active[0].sent[IB_WC_OK] == SENDS &&
		 passive[0].sent[IB_WC_OK] == SENDS);
	check(passive[0].bytes == SENDS * MESSAGE && !passive[0].wrong);
	check(active[0].bytes == SENDS * MESSAGE && !active[0].wrong);

	say("an inlined SEND");
	active[0].count = 1;
	active[0].conf.max_inline = 48;
	check(!end_do(&active[0], do_send));
	wait_for(passive[0].received[IB_WC_OK] == SENDS + 1);
	check(passive[0].bytes == SENDS * MESSAGE + 48);

	say("a WRITE");
	for (size_t i = 0; i < WRITTEN; i++)
		a.memory[i] = (uint8_t)(i * 7 + i / 4096);
	memset(b.memory, 0, WRITTEN);
	active[0].rkey = b.mr->rkey;
	active[0].to = b.memory;
	check(!end_do(&active[0], do_write));
	wait_for(passive[0].received[IB_WC_OK] == SENDS + 2);
	check(!memcmp(a.memory, b.memory, WRITTEN));

	say("the end of a connection");
	end_do(&active[0], do_disconnect);
	wait_for(passive[0].disconnected);
	check(!passive[0].failed && !active[0].failed);
	check(!active[0].disconnected);
	close_both();
	check(active[0].received[IB_WC_FLUSHED] == RECVS);
	check(passive[0].received[IB_WC_FLUSHED] == RECVS);
	check(all_of(active[0].sent) == SENDS + 2);
	check(all_of(passive[0].sent) == SENDS);
}

static void expect_refused_write(void)
{
	check(!end_do(&active[0], do_write));
	wait_for(all_of(active[0].sent) == 1);
	check(active[0].sent[IB_WC_REMOTE_ACCESS] == 1);
	wait_for(passive[0].failed || all_of(passive[0].received) == RECVS);
	check(!passive[0].failed || passive[0].failed == -EIO);
	check(!passive[0].received[IB_WC_OK]);
	close_both();
	check(all_of(active[0].sent) == 1);
}

static void test_keys(void)
{
	struct ib_mr *mr;

	say("a WRITE with a wrong key");
	connect_both();
	active[0].rkey = b.mr->rkey ^ 0x5500;
	active[0].to = b.memory;
	expect_refused_write();

	say("beyond what is registered");
	connect_both();
	active[0].rkey = b.mr->rkey;
	active[0].to = b.memory + b.mr->length - WRITTEN / 2;
	expect_refused_write();

	say("to what is registered for this side only");
	check(!verbs->reg(b.port, b.memory, WRITTEN, false, &mr));
	connect_both();
	active[0].rkey = mr->rkey;
	active[0].to = b.memory;
	expect_refused_write();
	verbs->dereg(b.port, mr);

	say("to what is registered no more");
	check(!verbs->reg(b.port, b.memory, WRITTEN, true, &mr));
	connect_both();
	active[0].rkey = mr->rkey;
	active[0].to = b.memory;
	verbs->dereg(b.port, mr);
	expect_refused_write();
}

static void test_fence(void)
{
	say("disconnected, nothing more is written");
	for (unsigned int i = 0; i < 8; i++) {
		bool still;

		connect_both();
		memset(a.memory, 0xff, WRITTEN);
		memset(b.memory, 0, WRITTEN);
		active[0].rkey = b.mr->rkey;
		active[0].to = b.memory;
		check(!end_do(&active[0], do_write));
		usleep(500 * i);
		end_do(&passive[0], do_disconnect);
		still = !memchr(b.memory, 0, WRITTEN);
		memset(b.memory, 0, WRITTEN);
		usleep(20000);
		check(still || !memchr(b.memory, 0xff, WRITTEN));
		close_both();
		check(all_of(active[0].sent) == 1);
	}
}

static void test_refused(void)
{
	say("a connection that is rejected");
	attempt(REJECT);
	wait_for(active[0].rejected);
	check(active[0].reason == IB_CM_REJECT_CONSUMER);
	check(active[0].private_length == IB_PRIVATE_REJECT_SIZE);
	check(!memcmp(active[0].private, "no, thanks\0", 11));
	end_close(&active[0]);
	check(active[0].received[IB_WC_FLUSHED] == RECVS);

	say("an address that nobody has");
	end_init(&active[0], &a, 0);
	{
		struct side nobody = b;

		nobody.ni.nid.addr[3] = 77;
		connect_to(&nobody, 0);
		wait_for(active[0].failed);
	}
	check(active[0].failed == -EHOSTUNREACH ||
	      active[0].failed == -ETIMEDOUT);
	end_do(&active[0], do_destroy);

	say("queues that are too large");
	end_init(&active[0], &a, 0);
	active[0].conf = (struct ib_qp_conf){ .max_send_wr = 1u << 30,
					      .max_recv_wr = 10,
					      .max_send_sge = 1 };
	connect_to(&b, 0);
	wait_for(active[0].resolved);
	check(active[0].rc == -ENOMEM);
	end_do(&active[0], do_destroy);
}

static void test_given_up(void)
{
	say("given up while the peer is looked for");
	for (unsigned int i = 0; i < 4; i++) {
		end_init(&active[0], &a, 0);
		active[0].cpt = i % CPTS;
		active[0].dst = &b.ni.nid;
		check(!end_do(&active[0], do_resolve_and_destroy));
	}
	say("given up while the peer thinks about it");
	attempt(HOLD);
	wait_for(passive[0].qp);
	end_close(&active[0]);
	usleep(100000);
	check(end_do(&passive[0], do_accept) || passive[0].failed);
	end_close(&passive[0]);
	say("and while it does not answer, to be rejected later");
	attempt(HOLD);
	wait_for(passive[0].qp);
	end_do(&passive[0], do_destroy);
	wait_for(active[0].rejected || active[0].failed);
	end_close(&active[0]);
}

static bool all_are_done(const struct end *ends, unsigned int sent)
{
	for (unsigned int i = 0; i < MANY; i++)
		if (!ends[i].established || ends[i].sent[IB_WC_OK] != sent)
			return false;
	return true;
}

static void test_many(void)
{
	unsigned int wrong = 0;

	say("many connections");
	for (unsigned int i = 0; i < MANY; i++) {
		end_init(&active[i], &a, i);
		end_init(&passive[i], &b, i);
	}
	pthread_mutex_lock(&lock);
	b.answer = ACCEPT;
	b.ends = passive;
	b.nends = MANY;
	b.taken = 0;
	pthread_mutex_unlock(&lock);
	for (unsigned int i = 0; i < MANY; i++) {
		pthread_mutex_lock(&lock);
		b.cpt = i / 2 % CPTS;
		pthread_mutex_unlock(&lock);
		connect_to(&b, i);
		wait_for(b.taken == i + 1);
	}
	wait_for(all_are_done(active, 0) && all_are_done(passive, 0));
	for (unsigned int i = 0; i < MANY; i++) {
		active[i].count = 50;
		passive[i].count = 50;
		check(!end_do(&active[i], do_send));
		check(!end_do(&passive[i], do_send));
	}
	wait_for(all_are_done(active, 50) && all_are_done(passive, 50));
	for (unsigned int i = 0; i < MANY; i++) {
		wrong += active[i].wrong + passive[i].wrong;
		wait_for(active[i].received[IB_WC_OK] == 50 &&
			 passive[i].received[IB_WC_OK] == 50);
	}
	check(!wrong);
	for (unsigned int i = 0; i < MANY; i++) {
		end_close(&active[i]);
		end_close(&passive[i]);
	}
	b.cpt = 0;
}

static void test_deaf(void)
{
	say("a port that nobody listens on");
	loop_call(b.loops[0], do_stop_listening, b.port);
	attempt(ACCEPT);
	wait_for(active[0].rejected);
	check(active[0].reason == IB_CM_REJECT_NO_LISTENER);
	end_close(&active[0]);
}

static int shell(const char *fmt, ...)
{
	char command[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(command, sizeof(command), fmt, args);
	va_end(args);
	fflush(stdout);
	return system(command);
}

static void test_link(const char *interface)
{
	say("a link that goes and comes");
	check(!shell("ip link set %s down", interface));
	wait_for(!a.up);
	check(!shell("ip link set %s up", interface));
	wait_for(a.up);
	check(!a.removed);
}

static void test_address(const char *interface, const char *address)
{
	say("an address that goes and comes");
	check(!shell("ip addr del %s/32 dev %s", address, interface));
	wait_for(!a.up);
	check(!shell("ip addr add %s/32 dev %s", address, interface));
	wait_for(a.up);
}

/* Pretends that the CM has reported the removal, as it does if its module hears
 * of it first. */
static int do_remove_port(void *arg)
{
	ibr_removal_begin(ibr_port(arg));
	return 0;
}

static int do_remove(void *arg)
{
	struct end *e = arg;

	ibr_conn_abort(ibr_qp(e->qp), -ENODEV);
	return 0;
}

static void removed(void)
{
	wait_for(a.removed && !a.up);
	wait_for(active[0].failed == -ENODEV);
	wait_for(active[0].received[IB_WC_FLUSHED] == RECVS);
	active[0].count = 1;
	check(end_do(&active[0], do_send) == -ENOTCONN);
	end_close(&active[0]);
	side_close(&a);
	end_close(&passive[0]);
}

static void a_open(void)
{
	a.up = true;
	a.removed = false;
	check(!side_open(&a));
}

static void test_removal(void)
{
	say("a device that goes, as the CM says");
	connect_both();
	loop_call(a.loops[0], do_remove_port, a.port);
	end_do(&active[0], do_remove);
	removed();
	a_open();
}

/* The device is not removed while this process has it open in any way. */
static void test_deleted(const char *interface, const char *device)
{
	struct opening o = { .s = &a, .conf = usual };
	char command[128];
	FILE *going;

	say("a device that is deleted");
	connect_both();
	snprintf(command, sizeof(command), "rdma link delete %s", device);
	going = popen(command, "r");
	BUG_ON(!going);
	removed();
	check(!pclose(going));
	check(loop_call(a.loops[0], do_open, &o) == -ENODEV);
	check(!shell("rdma link add %s type rxe netdev %s", device, interface));
	a_open();
	connect_both();
	close_both();
}

int main(int argc, char **argv)
{
	char nids[2][LNET_NIDSTR_SIZE];
	int rc;

	verbs = ib_verbs_rdma();
	if (!verbs) {
		printf("built without RDMA\n");
		return 77;
	}
	snprintf(nids[0], sizeof(nids[0]), "%s@o2ib",
		 argc > 2 ? argv[1] : "10.77.9.1");
	snprintf(nids[1], sizeof(nids[1]), "%s@o2ib",
		 argc > 2 ? argv[2] : "10.77.9.2");
	side_init(&a, nids[0]);
	side_init(&b, nids[1]);
	rc = side_open(&a);
	if (rc) {
		side_fini(&a);
		side_fini(&b);
		return rc == -ENODEV || rc == -EACCES ? 77 : 1;
	}
	if (side_open(&b))
		return 1;
	test_open();
	test_connect();
	test_keys();
	test_fence();
	test_refused();
	test_given_up();
	test_many();
	test_removal();
	if (argc > 4)
		test_deleted(argv[3], argv[4]);
	test_deaf();
	/* the last test: it removes routes, so nothing connects after it */
	if (argc > 3) {
		test_link(argv[3]);
		test_address(argv[3], argv[1]);
	}
	side_close(&a);
	side_close(&b);
	side_fini(&a);
	side_fini(&b);
	printf("%u failures\n", failures);
	return failures ? 1 : 0;
}
