/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of transfers share: a service's side of one bulk, and a caller
 * made of raw match entries. */
#ifndef TESTS_TRANSFER_RIG_H
#define TESTS_TRANSFER_RIG_H

#include <criterion/criterion.h>
#include "base/crc32c.h"
#include "rpc/bulk/transfer_priv.h"
#include "rpc/wire/wire_put.h"
#include "tests/unit/rpc/bulk/bulk_rig.h"

#define MATCH UINT64_C(0x123456700)

/* Memory of the caller, and its description on the wire. */
struct lent {
	struct rig *g;
	struct memory m; /* one fragment */
	struct wire_segments s;
	uint32_t length[ULRPC_SEGMENTS_MAX], crc[ULRPC_SEGMENTS_MAX];
	struct ulnet_md_handle md[ULRPC_SEGMENTS_MAX];
	unsigned int linked; /* MDs, of all attempts */
};

/* Lends the same memory for another attempt, with new match values. */
void lend_again(struct lent *l);

/* @n segments of the given lengths. */
void lend(struct rig *g, struct lent *l, enum ulrpc_bulk_access access,
	  const uint32_t *length, unsigned int n);
void lend_equal(struct rig *g, struct lent *l, enum ulrpc_bulk_access access,
		uint32_t length, unsigned int n);

/* The call is over: retires the memory as soon as nothing of it is linked. */
void take_back(struct lent *l);

/* @deadline: ms from now; 0: never. */
struct transfers_conf conf_of(struct rig *g, uint64_t deadline,
			      unsigned int window);

/* A call that lends @s, decoded from the wire; valid until the next one. */
const struct wire_call *call_of(const struct wire_segments *s, unsigned int n);
int serve_rc(struct rig *g, const struct wire_segments *s, unsigned int n,
	     uint64_t deadline, unsigned int window, struct transfers **t);

/* How a transfer ended. */
struct ending {
	struct rig *g;
	unsigned int n;
	int status;
	uint64_t moved;
	uint64_t at;	       /* ns */
	struct memory *retire; /* when it ends */
};

void end(void *arg, int status, uint64_t moved);
enum ulrpc_bulk_access access_of(bool put);

/* One bulk, from both sides. */
struct stage {
	struct rig g;
	struct lent l;
	struct memory m; /* the service's */
	struct transfers *t;
	struct ending e;
};

/* 0: the usual value. */
struct plan {
	enum ulrpc_bulk_access access; /* usually ULRPC_BULK_SOURCE */
	uint32_t length;	       /* of a segment: 100 */
	uint32_t n;		       /* segments: 10 */
	size_t own;	     /* memory of the service's: as much as is lent */
	size_t fragment;     /* of that, as memory_new(): one only */
	uint64_t deadline;   /* ms: never */
	unsigned int window; /* 4 */
	uint64_t seed;	     /* 1 */
};

/* Makes the transfers of the bulk, as a request does. */
void stage_serve(struct stage *s, uint64_t deadline, unsigned int window);
/* The service's memory has the bytes of tag 2, the caller's those of tag 1. */
void stage_open(struct stage *s, const struct plan *p);

/* Frees the transfers. */
void stage_leave(struct stage *s);
void stage_close(struct stage *s);
int start_of(struct stage *s, enum ulrpc_bulk_access access, uint64_t offset,
	     struct memory *m, struct ending *e);

/* Starts a transfer to or from all of the service's memory. */
int start(struct stage *s, uint64_t offset);

/* Starts a transfer of length 0. */
int start_nothing(struct stage *s, uint64_t offset, struct ending *e);

/* Runs until the transfer ends, and checks that it does so once, with
 * @status. */
void ends(struct stage *s, int status);

/* Are all bytes where they belong? */
bool all_moved(const struct stage *s);

/* Networks: all messages are lost; all are refused; all is well. */
extern const struct ulnet_sim_link link_loses_all, link_refuses_all, link_good;

#endif
