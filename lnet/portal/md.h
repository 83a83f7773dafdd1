/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory descriptors. An MD belongs to the CPT where it was bound, or where its
 * match entry is. Its events are delivered on that CPT, one at a time.
 *
 * Life of an MD: active; then unlinked: its handle is invalid, and it matches
 * nothing any more; then freed with its last event, when no message and no
 * operation uses it (refs is 0).
 */
#ifndef LNET_MD_H
#define LNET_MD_H

#include <sys/uio.h>
#include "base/list.h"
#include "base/loop.h"
#include "ulnet/loop.h"

struct eq;
struct lnet_cpt;
struct lnet_me;
struct lnet_mem;

/* Up to this number, fragments are kept in the MD itself. */
#define MD_OWN_IOV 3

struct lnet_md {
	struct lnet_cpt *cpt;
	uint64_t cookie; /* cookie in the handle of the MD */
	/* the match entry; NULL: the MD is bound, or unlinked */
	struct lnet_me *me;
	struct list link; /* once unlinked: in portal_cpt.mds_unlinked */
	const struct iovec *iov;
	unsigned int niov;
	/* holds .iov if niov is at most MD_OWN_IOV */
	struct iovec own[MD_OWN_IOV];
	/* registered memory that has all fragments; NULL: none has */
	struct lnet_mem *mem;
	uint32_t length; /* bytes of all fragments together */
	uint32_t offset; /* local offset, bytes */
	int threshold;
	uint32_t max_size;
	int numa_node; /* with LNET_MD_NUMA_NODE: NUMA node of the memory */
	uint32_t options;
	/* number of operations and messages that use the memory */
	uint32_t refs;
	bool attached; /* the MD is, or was, attached to a match entry */
	bool auto_unlink;
	bool unlinked;
	bool aborted; /* the user has unlinked the MD while it was in use */
	void *start;
	void *user_ptr;
	ulnet_handler_fn handler;
	struct eq *eq;
	/* ns, of an operation; 0: the node's transaction_timeout */
	uint64_t timeout;
	struct list ops; /* operations on it that have not ended */
	/* delivers UNLINK if nothing used the MD when it was unlinked */
	struct work work;
};

/* A flag in lnet_md.options: the MD is LNet's own, and handles that users make
 * up do not reach it. Whoever has made the MD sets the flag; users cannot. */
#define MD_OF_NODE 0x10000u

/* Makes an MD as the user describes it. Returns 0; -EINVAL: options, threshold,
 * length, fragments or max_size make no sense; -ENOENT: there is no such event
 * queue; -ENOBUFS: the queue has no free slot; -ENOMEM. */
int md_new(struct lnet_cpt *cpt, const struct ulnet_md *umd,
	   enum ulnet_unlink unlink, bool attach, struct lnet_md **md_p);

/* Frees an MD that was never used, without an event. */
void md_free_unused(struct lnet_md *md);

/* Makes the handle of the MD invalid. The memory is the user's again with the
 * last event, which comes after this call. @canceled: the user unlinks the MD,
 * and operations on it end as soon as possible. An operation that succeeds
 * before that is reported as a success, since the peer was told so. */
void md_unlink(struct lnet_md *md, bool canceled);

static inline void md_ref(struct lnet_md *md)
{
	md->refs++;
}

/* Is the threshold or the memory used up? Then no operation may begin. */
static inline bool md_exhausted(const struct lnet_md *md)
{
	if (md->threshold == 0)
		return true;
	return md->options & LNET_MD_MAX_SIZE &&
	       (uint64_t)md->offset + md->max_size > md->length;
}

/* To be called when an operation begins on @md, which the caller has
 * referenced. Decreases the threshold, and unlinks the MD if it is used up. If
 * the MD is attached, moves the local offset behind @mlength bytes at @offset.
 */
static inline void md_take(struct lnet_md *md, uint32_t mlength,
			   uint32_t offset)
{
	if (md->threshold > 0)
		md->threshold--;
	if (md->attached)
		md->offset = offset + mlength;
	/* An MD that is bound is not unlinked here, but with its last event:
	 * until then the user can unlink it to cancel operations. */
	if (md->attached && md->auto_unlink && md_exhausted(md))
		md_unlink(md, false);
}

/* Drops a reference, and delivers @ev, the event of what held the reference.
 * The caller has filled in the event's type, status and what depends on them.
 * If nothing else uses an unlinked MD, @ev is its last event, and the MD is
 * freed. @op: the id of the operation of @ev, or 0. */
void md_event_put(struct lnet_md *md, struct ulnet_event *ev, uint64_t op);
/* Delivers @ev without dropping a reference. */
void md_event(struct lnet_md *md, struct ulnet_event *ev, uint64_t op);

struct ulnet_md_handle md_handle(const struct lnet_md *md);

/* Slots that an operation needs: for SEND and for the answer. */
#define OP_EVENTS 2

#endif
