/* SPDX-License-Identifier: BSD-3-Clause */
/* Loans between a node and the test as its peer (rig.h). */
#ifndef TESTS_UNIT_SHMLND_LEND_H
#define TESTS_UNIT_SHMLND_LEND_H

#include "tests/unit/shmlnd/rig.h"

#define LENGTH 65536u

/* what is sent */
extern uint8_t payload[LENGTH];
/* Fills in the payload, and @to as well. */
void make_payload(uint8_t *to);

/* how many calls of process_vm_readv() the system allows */
extern _Atomic int allowed;

/* ---- the test lends ---- */

/* Writes a frame of @type that lends @n segments, as loan @loan, of a payload
 * of @length bytes to @portal. */
void lend_to(const struct rig *r, struct raw *raw, uint32_t type, uint32_t loan,
	     const struct shm_segment *segments, uint32_t n, uint32_t length,
	     unsigned int portal);
uint32_t await_answer(const struct raw *raw, uint32_t loan);
/* Goes on by the ring with loan @loan, which was refused. */
void go_on(struct raw *raw, uint64_t loan);
/* Has the payload come to puts_buffer? Clears that. */
void check_payload(void);

/* ---- the node lends ---- */

/* what was sent by put(), and what was not */
extern _Atomic unsigned int sent, failed;
/* @node sends LENGTH bytes at @from to @nid, within @us. */
struct ulnet_md_handle put(struct lnet *node, const struct ulnet_nid *nid,
			   void *from, uint64_t us);
void await_count(_Atomic unsigned int *count, unsigned int n);
/* Waits for the next frame. */
void next_frame(struct raw *raw, struct shm_frame *f);
void take_frame(struct raw *raw, const struct shm_frame *f);
/* Does @f begin with the number @loan? */
bool is_about(const struct shm_frame *f, uint64_t loan);
void answer(struct raw *raw, uint32_t loan, uint32_t what);

#endif
