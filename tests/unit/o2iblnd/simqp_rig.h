/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes on a simulated fabric, with a small LND that records its events. */
#ifndef TESTS_SIMQP_RIG_H
#define TESTS_SIMQP_RIG_H

#include <criterion/criterion.h>
#include <errno.h>

#include "lnd/o2iblnd/simqp/simqp.h"

#define NODES	3
#define CPTS	2
#define CONNS	256
#define RING	4096 /* size of each of a connection's two buffers */
#define SERVICE 987
#define WCS	64
#define MSEC	NSEC_PER_MSEC
#define A	0 /* who opens connections */
#define B	1

/* A completion event. */
struct wc {
	bool received;
	uintptr_t cookie;
	uint32_t length;
	enum ib_wc_status status;
};

struct node {
	struct lnd_ni ni;
	struct loop *loops[CPTS];
	struct ib_port *port;
	unsigned int changes, ups, removals;
	const char *why;
	unsigned int request_cpt; /* how requests are answered */
	unsigned int requests;
};

enum answer {
	ACCEPT,
	REJECT,
	LATER,	/* left to the test */
	VANISH, /* destroyed without answer */
};

/* The LND's side of a queue pair. */
struct conn {
	struct rig *rig;
	struct node *node;
	struct ib_qp *qp; /* NULL: none, or destroyed */
	bool passive;
	unsigned int resolved, established, rejected, failed, disconnected;
	uint64_t at;	       /* ns: time of the last of these events */
	int status;	       /* status or reason of it */
	struct ib_source from; /* passive side */
	uint8_t private[IB_PRIVATE_ACCEPT_SIZE];
	size_t private_length;
	struct wc wcs[WCS];
	unsigned int nwcs;
	unsigned int early;	   /* completions before "established" */
	unsigned int recvs, sends; /* posted, not completed */
	/* registered memory; @in also for WRITEs */
	uint8_t out[RING], in[RING];
	struct ib_mr *out_mr, *in_mr;
	bool created;
	bool destroy_flushed; /* destroy once all is flushed */
	void (*hook)(struct conn *c, const struct wc *wc);
	void *model; /* for the hook */
};

struct rig {
	struct env_sim *world;
	struct simqp_fabric *fabric;
	const struct ib_verbs *v;
	struct node nodes[NODES];
	struct conn conns[CONNS];
	unsigned int nconns;
	bool in_call;
	/* what passive sides do, and the conf of all queue pairs */
	enum answer answer;
	struct ib_port_conf conf;
	struct ib_qp_conf qp_conf;
	/* receives posted by both before they are connected */
	unsigned int receives;
	uint32_t receive_size;
	uint64_t digest; /* called for all events */
	void *user;	 /* for the test */
	/* The private data of a request is the number of its conn, by which the
	 * passive side finds it. */
	void (*requested)(struct conn *passive, struct conn *active);
};

extern const struct ib_events rig_events;

/* Calls the LND's function, and checks that it makes no event. */
#define CALL(rig, what)                           \
	__extension__({                           \
		cr_assert(!(rig)->in_call);       \
		(rig)->in_call = true;            \
		__typeof__(what) result = (what); \
		(rig)->in_call = false;           \
		result;                           \
	})
#define CALL_VOID(rig, what)                \
	do {                                \
		cr_assert(!(rig)->in_call); \
		(rig)->in_call = true;      \
		(what);                     \
		(rig)->in_call = false;     \
	} while (0)

struct rig *rig_new(uint64_t seed, const struct simqp_conf *conf);
/* Disconnects and destroys what is left, closes the ports, and frees all. */
void rig_free(struct rig *r);
/* Lets @ns pass. */
void qp_rig_run(struct rig *r, uint64_t ns);
/* Opens the port of @n with r->conf. */
void qp_rig_open(struct rig *r, unsigned int n);
void qp_rig_close(struct rig *r, unsigned int n);
const struct ulnet_nid *rig_nid(struct rig *r, unsigned int n);
/* A NID that no node has. */
struct ulnet_nid rig_nobody(void);

/* Resolves from @a on @cpt to @dst, and goes on with the events. */
struct conn *rig_connect_to(struct rig *r, unsigned int a, unsigned int cpt,
			    const struct ulnet_nid *dst);
/* Makes a connection from A to B, with receives posted. pair[A] is the active
 * side. */
void rig_pair(struct rig *r, struct conn *pair[2]);
/* The last one requested at node @b, or NULL. */
struct conn *rig_passive(struct rig *r, unsigned int b);

/* Are all bytes equal to @with? */
bool rig_is_filled(const uint8_t *p, size_t n, uint8_t with);
/* The same for the received bytes of what @c has sent. */
void conn_fill(struct conn *c, uint8_t with);

/* create(), and posts receives. */
int conn_create(struct conn *c);
int conn_recv(struct conn *c, uint32_t offset, uint32_t length,
	      uintptr_t cookie);
struct ib_sge conn_sge(struct conn *c, uint32_t offset, uint32_t length);
int conn_send(struct conn *c, uint32_t offset, uint32_t length,
	      uintptr_t cookie);
/* Posts a WRITE of @length bytes of c->out, and a SEND of 8 bytes. */
int conn_write(struct conn *c, const void *to, uint32_t rkey, uint32_t offset,
	       uint32_t length, uintptr_t cookie);
void conn_disconnect(struct conn *c);
void conn_destroy(struct conn *c);
/* Checks completions of a kind: all @n expected ones, in order from @first,
 * with @status. */
void conn_expect(const struct conn *c, bool received, uintptr_t first,
		 unsigned int n, enum ib_wc_status status);
/* The @i-th completion of a SEND. */
const struct wc *conn_sent(const struct conn *c, unsigned int i);
unsigned int conn_count(const struct conn *c, bool received,
			enum ib_wc_status status);

#endif
