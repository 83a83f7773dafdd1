/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes on a simulated fabric, and a small LND that notes what it is told. */
#ifndef TESTS_SIMQP_RIG_H
#define TESTS_SIMQP_RIG_H

#include <criterion/criterion.h>
#include <errno.h>

#include "lnd/o2iblnd/simqp/simqp.h"

#define NODES	3
#define CPTS	2
#define CONNS	256
#define RING	4096 /* bytes of each of a connection's two areas */
#define SERVICE 987
#define WCS	64
#define MSEC	NSEC_PER_MSEC
#define A	0 /* who connects */
#define B	1

/* An event of a completion. */
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
	unsigned int request_cpt; /* what is answered */
	unsigned int requests;
};

enum answer {
	ACCEPT,
	REJECT,
	LATER,	/* the test answers */
	VANISH, /* destroys it unanswered */
};

/* The LND's side of a queue pair. */
struct conn {
	struct rig *rig;
	struct node *node;
	struct ib_qp *qp; /* NULL: none, or destroyed */
	bool passive;
	unsigned int resolved, established, rejected, failed, disconnected;
	uint64_t at;	       /* ns: of the last of these */
	int status;	       /* or reason */
	struct ib_source from; /* passive */
	uint8_t private[IB_PRIVATE_ACCEPT_SIZE];
	size_t private_length;
	struct wc wcs[WCS];
	unsigned int nwcs;
	unsigned int early;	     /* of them, before "established" */
	unsigned int recvs, sends;   /* posted and not ended */
	uint8_t out[RING], in[RING]; /* registered; @in: for writing, too */
	struct ib_mr *out_mr, *in_mr;
	bool created;
	bool destroy_flushed; /* when all has been flushed */
	void (*hook)(struct conn *c, const struct wc *wc);
	void *model; /* the hook's */
};

struct rig {
	struct env_sim *world;
	struct simqp_fabric *fabric;
	const struct ib_verbs *v;
	struct node nodes[NODES];
	struct conn conns[CONNS];
	unsigned int nconns;
	bool in_call;
	/* What passive sides do, and all queue pairs are like: */
	enum answer answer;
	struct ib_port_conf conf;
	struct ib_qp_conf qp_conf;
	unsigned int receives; /* posted by both before they are connected */
	uint32_t receive_size;
	uint64_t digest; /* of all events */
	void *user;	 /* the test's */
	/* Connect requests tell the number of their conn; both sides are
	 * handed to it when there is a request. */
	void (*requested)(struct conn *passive, struct conn *active);
};

extern const struct ib_events rig_events;

/* A call of the LND: no event comes out of it. */
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
/* Disconnects and destroys what is left, closes, and frees all. */
void rig_free(struct rig *r);
/* Lets @ns pass. */
void qp_rig_run(struct rig *r, uint64_t ns);
/* Opens the port of @n, as r->conf says. */
void qp_rig_open(struct rig *r, unsigned int n);
void qp_rig_close(struct rig *r, unsigned int n);
const struct ulnet_nid *rig_nid(struct rig *r, unsigned int n);
/* A NID that no node has. */
struct ulnet_nid rig_nobody(void);

/* From @a on @cpt to @dst: resolve(), and what follows. */
struct conn *rig_connect_to(struct rig *r, unsigned int a, unsigned int cpt,
			    const struct ulnet_nid *dst);
/* Both sides of a new connection from A to B, whose receives are posted.
 * pair[A] is the active one. */
void rig_pair(struct rig *r, struct conn *pair[2]);
/* The last one that was asked for at node @b. NULL: none. */
struct conn *rig_passive(struct rig *r, unsigned int b);

/* All bytes are @with. */
bool rig_is_filled(const uint8_t *p, size_t n, uint8_t with);
/* ... of what @c sends. */
void conn_fill(struct conn *c, uint8_t with);

/* create(), and its receives. */
int conn_create(struct conn *c);
int conn_recv(struct conn *c, uint32_t offset, uint32_t length,
	      uintptr_t cookie);
struct ib_sge conn_sge(struct conn *c, uint32_t offset, uint32_t length);
int conn_send(struct conn *c, uint32_t offset, uint32_t length,
	      uintptr_t cookie);
/* A WRITE of @length bytes of c->out, and a SEND of 8. */
int conn_write(struct conn *c, const void *to, uint32_t rkey, uint32_t offset,
	       uint32_t length, uintptr_t cookie);
void conn_disconnect(struct conn *c);
void conn_destroy(struct conn *c);
/* Ends of the kind that have come: all of @n that were awaited, in order from
 * @first on, with @status. */
void conn_expect(const struct conn *c, bool received, uintptr_t first,
		 unsigned int n, enum ib_wc_status status);
/* The @i-th of the ends of SENDs. */
const struct wc *conn_sent(const struct conn *c, unsigned int i);
unsigned int conn_count(const struct conn *c, bool received,
			enum ib_wc_status status);

#endif
