/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of transfers share: a service's side of one bulk by the real
 * code, and a caller that the test plays with raw match entries. */
#ifndef TESTS_TRANSFER_RIG_H
#define TESTS_TRANSFER_RIG_H

#include <criterion/criterion.h>
#include "base/crc32c.h"
#include "rpc/bulk/transfer_priv.h"
#include "rpc/wire/wire_put.h"
#include "tests/unit/rpc/bulk/bulk_rig.h"

#define MATCH UINT64_C(0x123456700)

/* Memory that the caller lends, and its description on the wire. */
struct lent {
	struct rig *g;
	struct memory m; /* a single fragment */
	struct wire_segments s;
	uint32_t length[ULRPC_SEGMENTS_MAX], crc[ULRPC_SEGMENTS_MAX];
	struct ulnet_md_handle md[ULRPC_SEGMENTS_MAX];
	unsigned int linked; /* MDs that are linked, of all attempts */
};

/* Lends the same memory for another attempt, with new match values, and unlinks
 * the old ones. */
void lend_again(struct lent *l);

/* Lends memory in @n segments of the given lengths. */
void lend(struct rig *g, struct lent *l, enum ulrpc_bulk_access access,
	  const uint32_t *length, unsigned int n);
void lend_equal(struct rig *g, struct lent *l, enum ulrpc_bulk_access access,
		uint32_t length, unsigned int n);

/* Unlinks the memory, waits until nothing of it is linked, and frees it. */
void take_back(struct lent *l);

/* @deadline: ms from now on; 0: never. */
struct transfers_conf conf_of(struct rig *g, uint64_t deadline,
			      unsigned int window);

/* Returns a call that lends the @n bulks @s, as decoded from the wire; it is
 * valid until the next call of this function. */
const struct wire_call *call_of(const struct wire_segments *s, unsigned int n);
int serve_rc(struct rig *g, const struct wire_segments *s, unsigned int n,
	     uint64_t deadline, unsigned int window, struct transfers **t);

/* How a transfer ended. */
struct ending {
	struct rig *g;
	unsigned int n;
	int status;
	uint64_t moved;
	uint64_t at; /* ns: when */
	/* memory to be retired when the transfer ends, or NULL */
	struct memory *retire;
};

void end(void *arg, int status, uint64_t moved);
enum ulrpc_bulk_access access_of(bool put);

/* One bulk, with its caller and its service. */
struct stage {
	struct rig g;
	struct lent l;
	struct memory m; /* of the service */
	struct transfers *t;
	struct ending e;
};

/* What stage_open() sets up; each field of 0 stands for the usual value. */
struct plan {
	enum ulrpc_bulk_access access; /* usually ULRPC_BULK_SOURCE */
	uint32_t length;	       /* of a segment; usually 100 */
	uint32_t n;		       /* segments; usually 10 */
	/* bytes of the service's memory; usually as much as is lent */
	size_t own;
	/* @longest of memory_new() for that; usually it is one fragment */
	size_t fragment;
	uint64_t deadline;   /* ms; usually never */
	unsigned int window; /* chunks under way at a time; usually 4 */
	uint64_t seed;	     /* usually 1 */
};

/* Makes the transfers of the bulk, as a request does when it arrives. */
void stage_serve(struct stage *s, uint64_t deadline, unsigned int window);
/* Opens both sides. The service's memory has the pattern of tag 2, the caller's
 * that of tag 1. */
void stage_open(struct stage *s, const struct plan *p);

/* Closes the stage, whose transfers were freed. */
void stage_leave(struct stage *s);
void stage_close(struct stage *s);
int start_of(struct stage *s, enum ulrpc_bulk_access access, uint64_t offset,
	     struct memory *m, struct ending *e);

/* Starts a transfer between all of the service's memory and the caller's from
 * @offset on. */
int start(struct stage *s, uint64_t offset);

/* Starts a transfer of length 0. */
int start_nothing(struct stage *s, uint64_t offset, struct ending *e);

/* Runs until nothing happens any more, and checks that the transfer has ended
 * once, with @status. */
void ends(struct stage *s, int status);

/* Returns whether all bytes have arrived where they belong. */
bool all_moved(const struct stage *s);

/* links that lose all messages, that refuse all, and that are perfect */
extern const struct ulnet_sim_link link_loses_all, link_refuses_all, link_good;

#endif
