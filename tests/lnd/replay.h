/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A tape against a node. One of the two nodes on the tape is played by a node
 * of this library, which must send what the real one has sent; the other one's
 * bytes are sent as they are.
 *
 * replay.c plays; replay_plan.c says beforehand what the node has to do for it,
 * and what it cannot; replay_check.c compares.
 */
#ifndef TESTS_LND_REPLAY_H
#define TESTS_LND_REPLAY_H

#include "lnd/socklnd/proto.h"
#include "lnet/message/wire.h"
#include "tests/lnd/raw.h"
#include "tests/lnd/tape.h"

#define REPLAY_NIS_MAX 2
/* Bytes of a message before its payload. */
#define MESSAGE_HEAD (SOCK_HDR_SIZE + LNET_HDR_SIZE)

/* A tape, and which of its nodes is ours. */
struct replay_case {
	const char *tape;
	bool connects;			 /* ours is the one that connects */
	const char *nis[REPLAY_NIS_MAX]; /* its NIs */
	const char *late;	 /* one more, which it gets before frame ... */
	unsigned int late_frame; /* ... this, the first being 1 */
	unsigned int left_out;	 /* frames that cannot be played */
	unsigned int keepalive;	 /* s; 0: the default */
	bool router;		 /* its real one is one */
	bool swapped;		 /* the other one's byte order is the other */
};

/* What is to be done about a frame. */
enum replay_part {
	PART_SEND,    /* theirs: sent */
	PART_EXPECT,  /* ours: comes by itself */
	PART_ORIGIN,  /* ours: a PUT or GET, which is asked for */
	PART_LEFT_OUT /* see why */
};

/* What a frame is, and what it has led to. */
struct replay_step {
	enum replay_part part;
	const char *why; /* PART_LEFT_OUT */
	bool ours;
	struct lnet_hdr hdr; /* TAPE_LNET */
	uint64_t cookie; /* TAPE_LNET: asked for, by a real one;
			  * TAPE_NOOP: given */
	/* A request: its answer, ours or theirs; an answer: its request.
	 * A NOOP: what it acknowledges. -1: none. */
	int other;
	/* PART_ORIGIN, and a PUT or GET of theirs for which there is a buffer:
	 * its memory, and how it has ended. */
	uint8_t *buf;
	size_t len;
	bool begun, done;
	int status;
	uint32_t mlength;
	struct lnet_wire_handle handle; /* PART_ORIGIN: the node's own */
};

struct replay_plan {
	unsigned int left_out;
	struct replay_step step[TAPE_FRAMES_MAX];
};

struct replay {
	const struct replay_case *c;
	struct tape tape;
	struct replay_plan plan;
	struct lnet *node;
	int listen_fd;
	struct raw_conn conn[TAPE_CONNS_MAX];
	struct {
		struct ulnet_nid nid;
		uint64_t incarnation;
	} told[REPLAY_NIS_MAX];	 /* by its HELLOs */
	struct sock_hello hello; /* the other node's, of the first */
	time_t patient_until;
};

/* False after having said on stderr what is wrong. */
bool replay_plan(const struct tape *tape, const struct replay_case *c,
		 struct replay_plan *plan) must_check;
void replay_plan_free(struct replay_plan *plan);

/* The bytes @got for frame @i, as many as it has, against the real ones. What
 * may differ is made equal, and noted. */
bool replay_check(struct replay *r, unsigned int i, uint8_t *got) must_check;

/* Says on stderr what is wrong with frame @i; false. */
bool replay_complain(const struct replay *r, unsigned int i, const char *what);
/* Bytes around @at. */
void replay_dump(const char *who, const uint8_t *p, size_t len, size_t at);

/* Is it ping information in reply to a ping? */
bool replay_is_ping_reply(const struct replay_plan *plan, unsigned int i);

#endif
