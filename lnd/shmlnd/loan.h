/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copying straight out of the peer's memory (process_vm_readv), which is
 * faster for large payloads than two copies through a ring. Knows processes and
 * memory; nothing of connections.
 *
 * The sender lends the payload: its frame says where the payload lies, and the
 * sender leaves the payload alone until the peer has answered, or the loan was
 * called back. Each lender has SHM_LOANS slots in the shared page, and writes
 * the loan's number into one; it takes the number away before the memory is
 * used for something else. The peer copies, looks at the slot afterwards, and
 * believes the copy only if the number is still there. Its answer goes into a
 * slot of its own, not into its ring, so that it does not wait for what the
 * lender reads.
 *
 *	lender				peer
 *	slot = number
 *	frame: number, where   ----->	copies
 *					slot == number?
 *			       <-----	answer: number, SHM_COPIED
 *	slot = 0; is sent
 *
 * If the peer may not or cannot copy, its answer is SHM_REFUSED, and the
 * payload follows in the ring: nothing is lost, whenever that begins.
 *
 * Of which process is copied? Of the one that the system names as the peer. Its
 * pid could belong to another one by now, or it could run another program:
 * therefore each copy reads a random number, too, from the place at which the
 * peer said that it lies, in one call, which has one memory for all of it. The
 * addresses are the peer's, and about its own memory: it can make this side
 * read nothing that it could not have sent.
 *
 * Only between processes of one user. They can stop each other anyway, and
 * memory that never comes (userfaultfd(2), a file system that hangs) does no
 * more than that. What another user's process lends is refused unread.
 */
#ifndef LND_SHMLND_LOAN_H
#define LND_SHMLND_LOAN_H

#include <sys/uio.h>
#include "base/util.h"

/* Segments that a payload may have to be lent, as many as an MD. */
#define SHM_SEGMENTS 256

enum shm_answer {
	SHM_COPIED = 1,
	SHM_REFUSED,
	SHM_CALLED_BACK, /* the number was not there any more */
};

/* In frames: a piece of the lender's memory. */
struct shm_segment {
	uint64_t at, length;
};

/* In front of them. */
struct shm_loan_hdr {
	uint32_t loan; /* number */
	uint32_t segments;
};

/* Where a process says that its random number is. */
struct shm_token {
	uint64_t at; /* 0: nowhere, it lends nothing */
	uint64_t value;
};

/* Makes the token of an NI, of which children of fork() have no copy. If there
 * is no memory for it, it is nowhere. */
void shm_token_make(struct shm_token *token);
void shm_token_free(struct shm_token *token);

/*
 * Copies @length bytes from @from, @n segments (at most SHM_SEGMENTS) of the
 * process @pid, which hold as many, to @to. @nto is at most SHM_SEGMENTS.
 * Returns 0; -EFAULT: its memory is not there, or cannot be read; another errno
 * if nothing can be read of this process, now or ever. *@to may be written in
 * any case.
 */
int shm_copy(int pid, const struct shm_token *token,
	     const struct shm_segment *from, unsigned int n,
	     const struct iovec *to, unsigned int nto,
	     size_t length) must_check;

#endif
