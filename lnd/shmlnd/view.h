/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Payloads in memory that is shared from birth (lnet_mem_alloc(3)): the peer
 * reads them from a view of its own, where neither process_vm_readv() nor a
 * second copy is needed. They are lent as others are (loan.h), but segments are
 * offsets in the lender's commons (base/commons.h).
 *
 *	lender				peer
 *	offers = 1
 *	a large payload in the
 *	commons, by other ways ----->	offers? now takes descriptors
 *			       <-----	maps = 1
 *	its commons, by the socket ->	takes it, if it is sealed; maps it
 *					within the share of the lender's process
 *	frames about loans in it --->	copies out of its view
 *
 * A wake-up is read without room for descriptors, which costs less, unless one
 * is expected. A peer that cannot take the commons takes maps back, and refuses
 * the loans that were under way.
 *
 * A block that is lent cannot be used for something else before the peer has
 * answered, or the connection has ended, whoever frees it. So what a peer reads
 * late is at worst the bytes of the message that they were lent for.
 *
 * A view is mapped to be read only, or not at all: then the system reads the
 * memory, as it does where the lender has never written. So no page of a peer's
 * memory is ever one of this process, whatever is lent, and however often the
 * peer comes back with another commons. Its memory cannot become shorter, so a
 * peer cannot make reading it fail; each segment is copied, then checked
 * against the size of the view, then read.
 */
#ifndef LND_SHMLND_VIEW_H
#define LND_SHMLND_VIEW_H

#include <sys/types.h>
#include <sys/uio.h>
#include "base/commons.h"
#include "lnd/shmlnd/loan.h"

/* Blocks in which a payload may lie to be lent in a commons. */
#define SHM_BLOCKS 4

struct shm_conn;
struct shm_loan;

enum shm_view_state {
	SHM_VIEW_NONE,
	SHM_VIEW_EXPECTED, /* the peer may send its commons */
	SHM_VIEW_OPEN,
	SHM_VIEW_REFUSED,
};

/* ---- the lender's ---- */

/* If all @n segments at @s, which are addresses, lie in the commons, and the
 * peer has it: they are lent as @loan, and become offsets. Otherwise false:
 * nothing has changed, and a later payload may be lent. */
bool shm_view_lend(struct shm_conn *conn, struct shm_loan *loan,
		   struct shm_segment *s, unsigned int n);
/* @loan is over. */
void shm_view_return(struct shm_conn *conn, struct shm_loan *loan);

/* ---- the peer's ---- */

/* Does the lender offer its commons? */
void shm_view_look(struct shm_conn *conn);
/* recv() of wake-ups, with the commons if it comes. Returns the number of
 * bytes, or -errno. */
ssize_t shm_view_take(struct shm_conn *conn, void *bytes, size_t n);
/* Copies @length bytes from @from, @n segments of the lender's commons, to @to.
 * Returns 0; -EPROTO: they are not in it; -EOPNOTSUPP: there is no view of it;
 * or another errno: the system cannot read it. */
int shm_view_copy(struct shm_conn *conn, const struct shm_segment *from,
		  unsigned int n, const struct iovec *to, unsigned int nto,
		  size_t length) must_check;
void shm_view_close(struct shm_conn *conn);

#endif
