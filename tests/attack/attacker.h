/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Somebody on the way between two processes: a proxy for TCP that knows where
 * frames begin and end, and no more than anybody does who reads the manual of
 * the protocol. A frame is a message of LNet with socklnd's header, or a record
 * of TLS. He does to frames what a harm says, and keeps the ones that he has
 * seen.
 *
 * Thread: the test's only one.
 */
#ifndef TESTS_ATTACK_ATTACKER_H
#define TESTS_ATTACK_ATTACKER_H

#include "tests/attack/victims.h"

/* Where things are in a frame of LNet: behind socklnd's header of 24 bytes. */
enum {
	AT_TYPE = 0,
	AT_DEST = 24,
	AT_SRC = 32,
	AT_DEST_PID = 40,
	AT_SRC_PID = 44,
	AT_LNET_TYPE = 48,
	AT_LENGTH = 52,
	AT_MATCH = 72,	  /* of a PUT or GET */
	AT_HDR_DATA = 80, /* of a PUT */
	AT_PORTAL = 88,	  /* of a PUT */
	AT_PAYLOAD = 96,
};

/* Of what kind a frame is, as far as anybody can see. */
enum kind {
	GREETING, /* connection request, HELLO */
	OTHER,	  /* of LNet: GET, ACK, NOOP, and what is not RPC's */
	REQUESTS,
	REPLIES,
	CONTROL,   /* sealed */
	SHAKES,	   /* control messages that are not */
	HELD,	   /* a reply that is fetched */
	GOT,	   /* a segment of a caller's source */
	PUT,	   /* a segment for a caller's sink */
	TLS_SHAKE, /* before each side has sent data */
	TLS_DATA,
	KINDS
};

struct frame {
	struct frame *next;
	enum kind kind;
	bool back;	     /* from the server to the client */
	unsigned int peer;   /* which client's */
	unsigned int type;   /* of the connection, as its client says */
	unsigned int serial; /* of the connection */
	unsigned int wait;   /* so many frames go first */
	size_t n;
	uint8_t bytes[];
};

/* A direction of a connection. */
struct way {
	int from, to;
	bool back;
	bool tls, greeted, ended;
	unsigned int records; /* of TLS that came */
	size_t came;	      /* bytes */
	uint8_t *in;	      /* a part of a frame */
	size_t have, room;
	uint8_t *out; /* what the socket has not taken */
	size_t begin, end, out_room;
	struct frame *held; /* until others have gone */
};

struct link {
	struct way there, back;
	unsigned int peer, type;
	unsigned int serial; /* of all connections */
	bool used;
	bool broken; /* is reset when what it has to send has gone */
};

#define LINKS  64
#define CAUGHT 512

struct attacker;

/* One kind of harm. */
struct harm {
	const char *name;
	/* Does it to @f of @l, which it takes: passes it on, or not. Returns
	 * whether that was harm. */
	bool (*harm)(struct attacker *a, struct link *l, struct way *w,
		     struct frame *f);
	unsigned int kinds; /* 1 << enum kind: the frames that he looks at */
	unsigned int slice,
		all;	      /* how often, in a short run and in a long one */
	unsigned int one_in;  /* of so many of these frames */
	unsigned int session; /* calls of a client's connection; 0: many */
	bool restart;	      /* first the server begins again */
};

struct attacker {
	struct victims *victims;
	int listener;
	uint64_t random;
	struct link links[LINKS];
	unsigned int serial;
	/* what he does, and how often he has */
	const struct harm *harm;
	unsigned int done, wanted;
	/* of each direction and kind: the next byte that is altered, and how
	 * many were */
	struct sweep {
		size_t at;
		unsigned int changed;
	} sweep[2][KINDS];
	/* what he has seen last */
	struct frame *caught[CAUGHT];
	unsigned int ncaught;
	uint8_t client_pid[CLIENTS][4];
	bool has_marker; /* it went by, and could be read */
};

uint32_t attacker_random(struct attacker *a);

/* harm.c: what is done to a net without TLS, and to one with it. */
extern const struct harm plain_harms[], tls_harms[];
extern const unsigned int nplain_harms, ntls_harms;
/* The last byte of requests, where their bodies are. */
extern const struct harm body_harm;

/* Copies a frame, with the same head. */
struct frame *frame_copy(const struct frame *f);
static inline bool frame_is_lnet(const struct frame *f)
{
	return f->kind >= OTHER && f->kind <= PUT && f->n >= AT_PAYLOAD;
}
/* Makes a frame of LNet one of that client's. */
void frame_readdress(struct attacker *a, struct frame *f, unsigned int peer);

/* Takes @f, and sends it that way, behind what waits there. */
void attacker_pass(struct way *w, struct frame *f);
/* The same, when @n other frames have gone. */
void attacker_hold(struct way *w, struct frame *f, unsigned int n);
/* A connection of that client, of that type if there is one. NULL: none. */
struct link *attacker_link(struct attacker *a, unsigned int peer,
			   unsigned int type);
/* Ends a connection when what it has to send has gone. */
void attacker_cut(struct link *l);
/* Makes a connection to the server that no client has asked for, sends it
 * @bytes, and waits for its end. */
void attacker_connect(struct attacker *a, const void *bytes, size_t n);

void attacker_begin(struct attacker *a, struct victims *v, uint64_t seed);
/* Does @harm until it was done as often as it has to be; NULL: nothing, until
 * the clients have ended. Returns whether all went well meanwhile. */
bool attacker_play(struct attacker *a, const struct harm *harm);
/* Cuts all connections. */
void attacker_cut_all(struct attacker *a);
void attacker_end(struct attacker *a);

#endif
