/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/shmlnd/view.h"

#include <errno.h>
#include <string.h>

#include "base/fork.h"
#include "lnd/shmlnd/peer.h"

_Static_assert(SHM_SEGMENTS <= COMMONS_IOV, "a payload's place");

/* ---- the lender's ---- */

void shm_view_return(struct shm_conn *conn, struct shm_loan *loan)
{
	for (unsigned int i = 0; i < SHM_BLOCKS && loan->block[i]; i++)
		commons_release(conn->sni->ni->commons, loan->block[i]);
	memset(loan->block, 0, sizeof(loan->block));
}

/* Holds the blocks in which the segments lie, each once, unless one lies in
 * none. *@at is set to where they are in the commons. */
static bool hold_all(struct shm_conn *conn, struct shm_loan *loan,
		     const struct shm_segment *s, unsigned int n, uint64_t *at)
{
	struct commons *commons = conn->sni->ni->commons;
	unsigned int held = 0;

	for (unsigned int i = 0; i < n; i++) {
		uint32_t block =
			commons_hold(commons, (const void *)(uintptr_t)s[i].at,
				     s[i].length, &at[i]);

		if (block && held && loan->block[held - 1] == block)
			commons_release(commons, block);
		else if (block && held < SHM_BLOCKS)
			loan->block[held++] = block;
		else {
			if (block)
				commons_release(commons, block);
			return false;
		}
	}
	return true;
}

/* Has the peer the commons? If it is ready for it, it gets it now. */
static bool peer_has_commons(struct shm_conn *conn)
{
	const char byte = 0;

	shm_ring_offer(&conn->ring);
	if (!shm_ring_peer_maps(&conn->ring))
		return false;
	/* A socket that is full for now is tried again. */
	if (!conn->handed)
		conn->handed = !shm_pass(conn->io.fd, &byte, 1,
					 commons_fd(conn->sni->ni->commons));
	return conn->handed;
}

bool shm_view_lend(struct shm_conn *conn, struct shm_loan *loan,
		   struct shm_segment *s, unsigned int n)
{
	uint64_t at[SHM_SEGMENTS];

	if (!hold_all(conn, loan, s, n, at) || !peer_has_commons(conn)) {
		shm_view_return(conn, loan);
		return false;
	}
	for (unsigned int i = 0; i < n; i++)
		s[i].at = at[i];
	return true;
}

/* ---- the peer's ---- */

void shm_view_look(struct shm_conn *conn)
{
	if (conn->view_state != SHM_VIEW_NONE ||
	    !conn->sni->tunables[SHM_copy_min] ||
	    !shm_ring_peer_offers(&conn->ring))
		return;
	conn->view_state = SHM_VIEW_EXPECTED;
	shm_ring_set_maps(&conn->ring, true);
}

static void refuse(struct shm_conn *conn, const char *why)
{
	conn->view_state = SHM_VIEW_REFUSED;
	shm_ring_set_maps(&conn->ring, false);
	shm_peer_complain(conn, "its shared memory is not used", why);
}

/* Without a mapping, the system reads the memory. */
static void map_view(struct shm_conn *conn)
{
	int rc;

	if (!conn->sni->tunables[SHM_map_max])
		return;
	if (!shm_peer_may_map(conn, conn->view.size)) {
		shm_peer_complain(
			conn, "its shared memory is not mapped",
			"its process, or user, has its share (map_max)");
		return;
	}
	rc = commons_view_map(&conn->view);
	if (!rc)
		conn->cpt->mapped += conn->view.size;
	else if (rc != -EPERM)
		shm_peer_complain(conn, "its shared memory is not mapped",
				  strerror(-rc));
}

static void open_view(struct shm_conn *conn, int fd)
{
	int64_t size = commons_view_size(fd);

	if (size < 0) {
		fork_fd_close(fd);
		refuse(conn, size == -EPROTO ? "it is not sealed"
					     : strerror((int)-size));
		return;
	}
	commons_view_open(&conn->view, fd, (uint64_t)size);
	conn->view_state = SHM_VIEW_OPEN;
	map_view(conn);
}

ssize_t shm_view_take(struct shm_conn *conn, void *bytes, size_t n)
{
	int fd;
	ssize_t got = shm_take(conn->io.fd, bytes, n, &fd);

	if (fd >= 0)
		open_view(conn, fd);
	else if (fd != -1)
		refuse(conn, strerror(-fd));
	return got;
}

/* Reads of wake-ups that may come before the commons. */
#define READS 64

/* The commons was sent before what is in the ring. What else is read with it
 * are wake-ups; an end of the socket is found again. A peer that sends so many
 * that the commons is not found has lent something for nothing. */
static void await_view(struct shm_conn *conn)
{
	char bytes[64];

	for (unsigned int i = 0; i < READS; i++)
		if (conn->view_state != SHM_VIEW_EXPECTED ||
		    shm_view_take(conn, bytes, sizeof(bytes)) <= 0)
			return;
}

int shm_view_copy(struct shm_conn *conn, const struct shm_segment *from,
		  unsigned int n, const struct iovec *to, unsigned int nto,
		  size_t length)
{
	size_t done = 0, part;
	int rc;

	await_view(conn);
	if (conn->view_state != SHM_VIEW_OPEN)
		return -EOPNOTSUPP;
	for (unsigned int i = 0; i < n; i++)
		if (!commons_view_has(&conn->view, from[i].at, from[i].length))
			return -EPROTO;
	for (unsigned int i = 0; i < n && done < length; i++) {
		part = MIN(from[i].length, length - done);
		if (!part)
			continue;
		rc = commons_view_read(&conn->view, from[i].at, part, to, nto,
				       done);
		if (rc)
			return rc;
		done += part;
	}
	return done == length ? 0 : -EPROTO;
}

void shm_view_close(struct shm_conn *conn)
{
	if (conn->view.map)
		conn->cpt->mapped -= conn->view.size;
	commons_view_close(&conn->view);
}
