/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of transfers share: a service's side of one bulk, and a caller
 * that is played by raw match entries. */
#ifndef TESTS_TRANSFER_RIG_H
#define TESTS_TRANSFER_RIG_H

#include <criterion/criterion.h>
#include "base/crc32c.h"
#include "rpc/bulk/transfer_priv.h"
#include "rpc/wire/wire_put.h"
#include "tests/unit/rpc/bulk/bulk_rig.h"

#define MATCH UINT64_C(0x123456700)

/* Memory of the caller, as the wire has it. */
struct lent {
	struct rig *g;
	struct memory m; /* one fragment */
	struct wire_segments s;
	uint32_t length[ULRPC_SEGMENTS_MAX], crc[ULRPC_SEGMENTS_MAX];
	struct ulnet_md_handle md[ULRPC_SEGMENTS_MAX];
	unsigned int linked; /* MDs, of all attempts */
};

/* For another attempt: the same memory, with match values of its own. */
void lend_again(struct lent *l);

/* @n segments of the given lengths. */
void lend(struct rig *g, struct lent *l, enum ulrpc_bulk_access access,
	  const uint32_t *length, unsigned int n);
void lend_equal(struct rig *g, struct lent *l, enum ulrpc_bulk_access access,
		uint32_t length, unsigned int n);

/* The call is over. As soon as nothing of its memory is linked, nobody may
 * touch the memory, though messages for it are still on their way. */
void take_back(struct lent *l);

/* @deadline: ms from now; 0: never. */
struct transfers_conf conf_of(struct rig *g, uint64_t deadline,
			      unsigned int window);

/* A call that lends @s, as it comes by way of the wire; valid until the next
 * one does. */
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
	struct memory *retire; /* by then nobody may touch it */
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

/* 0 stands for what is usual. */
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

/* The service hears of what is lent. */
void stage_serve(struct stage *s, uint64_t deadline, unsigned int window);
/* The service's memory has the bytes of tag 2, the caller's those of tag 1. */
void stage_open(struct stage *s, const struct plan *p);

/* Its transfers are no more. */
void stage_leave(struct stage *s);
void stage_close(struct stage *s);
int start_of(struct stage *s, enum ulrpc_bulk_access access, uint64_t offset,
	     struct memory *m, struct ending *e);

/* To or from the service's memory, as it was lent for. */
int start(struct stage *s, uint64_t offset);

/* One that moves nothing. */
int start_nothing(struct stage *s, uint64_t offset, struct ending *e);

/* Lets it end: once, in this way. */
void ends(struct stage *s, int status);

/* Have all bytes come from where they were, to where they belong? */
bool all_moved(const struct stage *s);

/* Networks: all messages are lost; all are refused; all is well. */
extern const struct ulnet_sim_link link_loses_all, link_refuses_all, link_good;

#endif
