/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tapes: what two real nodes said to each other over TCP, frame by frame
 * (tests/wire/tcp/, whose format is described in tests/wire/README.md).
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
	union netif_addr from, to; /* "from" has connected */
};

struct tape_frame {
	unsigned int conn; /* index */
	unsigned int line;
	bool back; /* from "to" to "from" */
	bool made; /* by hand: it was not captured */
	enum tape_kind kind;
	uint8_t *bytes;
	size_t len;
};

/* In the order in which all of it was seen. */
struct tape {
	const char *name;
	bool large; /* over IPv6: headers have large NIDs */
	unsigned int nconns, nframes;
	struct tape_conn conn[TAPE_CONNS_MAX];
	struct tape_frame frame[TAPE_FRAMES_MAX];
};

/* Reads tests/wire/tcp/@name.tape; @name is borrowed for the tape's life. False
 * after having said on stderr what is wrong. */
bool tape_load(struct tape *tape, const char *name) must_check;
void tape_free(struct tape *tape);

/* Bytes of LNet's header in its frames. */
static inline size_t tape_hdr_size(const struct tape *t)
{
	return t->large ? LNET_HDR_LARGE_SIZE : LNET_HDR_SIZE;
}

/* Makes of the @len bytes of a frame of this kind what a node of the other byte
 * order would have sent. */
void tape_swap(enum tape_kind kind, uint8_t *bytes, size_t len);

const char *tape_kind_name(enum tape_kind kind);

#endif
