/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node, a correct peer of it, and the test itself as a peer that does as it
 * likes. What does not work ends the test.
 */
#ifndef TESTS_UNIT_SHMLND_RIG_H
#define TESTS_UNIT_SHMLND_RIG_H

#include "lnd/shmlnd/conn.h"

#define PATIENCE 60000 /* ms */
#define SIZE	 SHM_RING_MIN
#define PORTAL	 60
#define CPTS	 2
/* of the nodes: handshakes, and connections of a CPT after rig_up_few() */
#define ACCEPT_MAX 16
#define FEW	   4
/* of the nodes: the setting, and the tunable, which is that of all CPTs */
#define SHARED_MAX (1u << 20)
#define MAP_MAX	   (CPTS * (16u << 20))

/* A node, a correct peer of it, and the NID of the peer that is not. */
struct rig {
	struct lnet *node, *good;
	struct ulnet_nid nid, good_nid, bad_nid;
	int name; /* the socket that is called bad_nid */
};

/* A connection of the peer that is not correct. */
struct raw {
	int fd, memory;
	struct shm_ring ring;
	struct shm_hello hello; /* the answer */
};

void rig_up(struct rig *r);
/* The same with these tunables. */
void rig_up_with(struct rig *r, int64_t copy_min, int64_t stall_timeout);
/* The same as rig_up(), but callers that say nothing are given up soon. */
void rig_up_hasty(struct rig *r);
/* The same, but each CPT accepts only FEW connections, of any user. */
void rig_up_few(struct rig *r);
/* The correct peer has to reach the node. */
void rig_down(struct rig *r);
void others_are_well(const struct rig *r);

struct pinged {
	int pipe[2]; /* the status is written to it */
};
void on_ping(void *arg, int status, const struct ulnet_ping_info *info);

/* Whom the system names as the other end of a socket: this process, whose user
 * has a number higher by other_user. other_pid 0: who it is. */
extern _Atomic int other_pid, other_user;

/* ---- the peer's side ---- */

struct shm_hello hello_of(const struct rig *r);
/* Sends @len bytes of HELLO with @nfds descriptors. */
void send_hello(int fd, const void *hello, size_t len, const int *fds,
		unsigned int nfds);
/* Waits until @fd is readable. */
void await(int fd);
/* Waits until the node has closed the connection. */
void await_end(int fd);
/* Connects as a correct peer does, with a token or without. */
void raw_connect_with(const struct rig *r, struct raw *raw,
		      const struct shm_token *token);
void raw_connect(const struct rig *r, struct raw *raw);
void raw_close(struct raw *raw);
/* Wakes the node. */
void bell(const struct raw *raw);
/* Writes a frame, when there is room, and wakes the node. */
void frame(struct raw *raw, uint32_t type, const void *body, uint32_t length);
/* A header of LNet: a PUT with @length bytes of payload to PORTAL, which is
 * written at HDR_PORTAL. */
#define HDR_PORTAL 64
void put_header(const struct rig *r, uint8_t hdr[LNET_HDR_SIZE],
		uint32_t length);

/* ---- what the node receives ---- */

/* what came to PORTAL, and what ended before all of it had come */
extern _Atomic unsigned int puts_got, puts_failed;
/* the last of it, from the beginning */
extern uint8_t puts_buffer[1u << 20];

/* The node takes whatever is sent to PORTAL. */
void take_puts(const struct rig *r);
/* Waits until @n have come. */
void await_puts(unsigned int n);

#endif
