/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A tape is what two real nodes sent to each other over TCP, frame by frame
 * (tests/wire/tcp/; tests/wire/README.md describes the format).
 */
#ifndef TESTS_LND_TAPE_H
#define TESTS_LND_TAPE_H

#include "base/util.h"
#include "lnd/lnd.h"
#include "lnd/socklnd/sock.h"

#define TAPE_CONNS_MAX	8
#define TAPE_FRAMES_MAX 128

enum tape_kind { TAPE_REQUEST, TAPE_HELLO, TAPE_LNET, TAPE_NOOP };

struct tape_conn {
	union netif_addr from, to; /* "from" is the node that connected */
};

struct tape_frame {
	unsigned int conn; /* index in tape.conn[] */
	unsigned int line;
	bool back; /* sent by "to" to "from" */
	bool made; /* made by hand, not captured */
	enum tape_kind kind;
	uint8_t *bytes;
	size_t len;
};

/* Frames in the order in which they were captured. */
struct tape {
	const char *name;
	bool large; /* over IPv6, with large NIDs in headers */
	unsigned int nconns, nframes;
	struct tape_conn conn[TAPE_CONNS_MAX];
	struct tape_frame frame[TAPE_FRAMES_MAX];
};

/* Reads tests/wire/tcp/@name.tape, and borrows @name as long as the tape lives.
 * Returns false after a message on stderr. */
bool tape_load(struct tape *tape, const char *name) must_check;
void tape_free(struct tape *tape);

/* Returns the length of LNet's header in the tape's frames. */
static inline size_t tape_hdr_size(const struct tape *t)
{
	return t->large ? LNET_HDR_LARGE_SIZE : LNET_HDR_SIZE;
}

/* Changes the @len bytes of a frame to what a node of the other byte order
 * would have sent. */
void tape_swap(enum tape_kind kind, uint8_t *bytes, size_t len);

const char *tape_kind_name(enum tape_kind kind);

#endif
