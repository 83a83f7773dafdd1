/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What lst(8) keeps of a session between two commands: a file of lines, which
 * belongs to the user. The file is locked from state_open() to the end of the
 * process, so that commands of one session run one after the other.
 */
#ifndef TOOLS_LST_STATE_H
#define TOOLS_LST_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <ulnet/nid.h>

#define STATE_NAME_SIZE 32
#define STATE_GROUPS	64
#define STATE_NODES	1024 /* of a group */
#define STATE_BATCHES	64
#define STATE_TESTS	256
#define STATE_NODE_ARGS 16
#define STATE_TEXT	128
#define STATE_VALUE	400

/* What is known of a node by its last answer, or since it gave none. */
enum node_state {
	NODE_UNKNOWN, /* it is in no session */
	NODE_ACTIVE,  /* in this one */
	NODE_BUSY,    /* in another one */
	NODE_DOWN,
	NODE_STATES
};
#define NODES_ALL ((1u << NODE_STATES) - 1)
extern const char *const node_states[NODE_STATES];

struct state_node {
	struct ulnet_nid nid;
	enum node_state state; /* the same in all groups */
};

struct state_group {
	char name[STATE_NAME_SIZE];
	unsigned int n;
	struct state_node *nodes;
};

struct state_batch {
	char name[STATE_NAME_SIZE];
	uint64_t id;
};

struct state_test {
	char batch[STATE_NAME_SIZE], from[STATE_NAME_SIZE], to[STATE_NAME_SIZE];
	char text[STATE_TEXT]; /* for people */
};

struct state {
	char *path;
	FILE *file;
	bool exists; /* there is a session */
	bool force;  /* it may be taken from others */
	char name[STATE_NAME_SIZE];
	uint64_t console; /* the session's id */
	int64_t stamp;
	uint64_t next_batch;
	unsigned int timeout; /* s without a command; 0: no end */
	unsigned int idle;    /* s since the last one, as it is read */
	/* The options that say what node the console is, and values. */
	unsigned int nargs;
	struct {
		char option[STATE_NAME_SIZE];
		char value[STATE_VALUE];
	} args[STATE_NODE_ARGS];
	unsigned int ngroups, nbatches, ntests;
	struct state_group groups[STATE_GROUPS];
	struct state_batch batches[STATE_BATCHES];
	struct state_test tests[STATE_TESTS];
};

/* Opens the file of the session that $LST_SESSION names, and reads it if there
 * is one. Failures are said on stderr. */
int state_open(struct state *s);
/* Has there been no command for too long? */
bool state_expired(const struct state *s);
/* Somebody is using the session. */
void state_touch(const struct state *s);
/* There is no session any more; options of the node are kept. */
void state_clear(struct state *s);
/* Writes the file, or removes it if there is no session any more. */
int state_save(struct state *s);
void state_close(struct state *s);

bool state_name_good(const char *name);
/* Of a session, too. What is longer was refused before. */
void state_name_copy(char to[STATE_NAME_SIZE], const char *name);
struct state_group *state_group(struct state *s, const char *name);
struct state_batch *state_batch(struct state *s, const char *name);
/* That of a node that is in no group is NODE_UNKNOWN, too. */
enum node_state state_of(const struct state *s, const struct ulnet_nid *nid);
/* False, too, if there is no such group. */
bool state_group_has(const struct state *s, const char *name,
		     const struct ulnet_nid *nid);
/* In all groups that have the node. */
void state_note(struct state *s, const struct ulnet_nid *nid,
		enum node_state state);
/* Is the node in any group? */
bool state_has(const struct state *s, const struct ulnet_nid *nid);
/* -ENOSPC, -ENOMEM. Takes nothing. */
int state_group_add(struct state_group *g, const struct state_node *node);
/* Without effect if it is not there. */
void state_group_remove(struct state_group *g, const struct ulnet_nid *nid);
void state_group_del(struct state *s, struct state_group *g);

#endif
