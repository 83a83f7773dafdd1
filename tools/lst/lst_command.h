/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of lst(8). */
#ifndef TOOLS_LST_COMMAND_H
#define TOOLS_LST_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <ulnet/nid.h>

#include "services/lst/console.h"
#include "tools/common/option.h"

#define WHO    "lst"
#define FAILED 1 /* exit status */

/* ---- what is kept of a session between two commands ---- */

/* A file of lines, which belongs to the user. The file is locked from
 * state_open() to the end of the process, so that commands of one session run
 * one after the other. */

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

/* ---- commands ---- */

struct lst_console {
	struct state state;
	struct lnet *node; /* NULL: the command needs none */
	struct lst_calls calls;
	bool json;
	const char *comma; /* in a list of JSON, before what comes next */
};

/* What stands behind a command: options, of which each command has some, and
 * words. */
struct lst_words {
	bool force, wait, refresh, session, server;
	bool rate, bw, read, write, avg, min, max, mbs;
	unsigned int states; /* bits of enum node_state */
	unsigned int delay, count, concurrency, loop;
	unsigned int ask;     /* s, in which nodes have to answer */
	unsigned int timeout; /* s, of a session */
	unsigned int run;     /* s, that nodes are told with a batch */
	unsigned int test;    /* of a batch, from 1 on; 0: all */
	const char *batch, *from, *to, *distribute, *clean, *remove;
	const char *group, *nodes;
	char **args; /* the words, which end with NULL */
	int n;
};

struct lst_command {
	const char *name;
	const char *args; /* for --help */
	const struct option_row *rows;
	int min, max; /* words; max < 0: any number */
	/* Returns the exit status; what is wrong has been said. */
	int (*run)(struct lst_console *c, const struct lst_words *w);
	bool makes;   /* the session is not there yet */
	bool asks;    /* it needs a node */
	bool answers; /* as JSON, too; else it is told that it is done */
};

/* They end with one without a name. */
extern const struct lst_command lst_commands[];

/* NULL: there is none of this name. */
const struct lst_command *lst_command_find(const char *name);
/* Reads what stands behind the command, argv[0]. 0, or OPTION_USAGE. */
int lst_words_take(struct lst_words *w, const struct lst_command *command,
		   int argc, char **argv);

/* Each is a struct lst_command's run(). */
int lst_new_session(struct lst_console *c, const struct lst_words *w);
int lst_end_session(struct lst_console *c, const struct lst_words *w);
int lst_show_session(struct lst_console *c, const struct lst_words *w);
int lst_add_group(struct lst_console *c, const struct lst_words *w);
int lst_del_group(struct lst_console *c, const struct lst_words *w);
int lst_update_group(struct lst_console *c, const struct lst_words *w);
int lst_list_group(struct lst_console *c, const struct lst_words *w);
int lst_add_batch(struct lst_console *c, const struct lst_words *w);
int lst_list_batch(struct lst_console *c, const struct lst_words *w);
int lst_run(struct lst_console *c, const struct lst_words *w);
int lst_stop(struct lst_console *c, const struct lst_words *w);
int lst_query(struct lst_console *c, const struct lst_words *w);
int lst_add_test(struct lst_console *c, const struct lst_words *w);
int lst_ping(struct lst_console *c, const struct lst_words *w);
int lst_stat(struct lst_console *c, const struct lst_words *w);
int lst_show_error(struct lst_console *c, const struct lst_words *w);

/* The batch that is named, or the only one there is; NULL, and it is said. */
struct state_batch *lst_batch_named(struct lst_console *c, const char *name);
/* Stops it, and waits until nothing runs. */
int lst_batch_stop(struct lst_console *c, const struct state_batch *b,
		   bool force);

/* Says what is wrong with a command. Returns OPTION_USAGE. */
int lst_usage(const char *command, const char *what);
/* Says why a command fails. Returns FAILED. */
int lst_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Is it one? 0, or FAILED. */
int lst_check_name(const char *what, const char *name);
#define LST_LABEL_SIZE 64

/* A session's name is a label: what others may read, and nothing else. 0, or
 * FAILED. */
int lst_check_label(const char *name);
/* A session's name, perhaps as a node has told it: what terminals do not print
 * becomes a question mark; with @json quotes and backslashes have another
 * backslash. Returns @text, of LST_LABEL_SIZE bytes. */
const char *lst_label(const char *name, bool json, char *text);

/* A list in JSON, {"NAME": [...]}: its beginning, what stands before each item,
 * and its end. As text there is none of that. */
void lst_list_begin(struct lst_console *c, const char *name);
void lst_list_next(struct lst_console *c);
void lst_list_end(struct lst_console *c);

#define ASK_S	  30 /* until a node has to have answered */
#define SECOND_US UINT64_C(1000000)

/* Those that are in the session, as far as is known. */
#define NODES_MEMBERS (1u << NODE_ACTIVE | 1u << NODE_DOWN)

struct lst_nodes {
	unsigned int n;
	struct lst_ask *asks; /* the caller frees it */
};

/* Each adds those that are not there yet. */
int lst_nodes_add(struct lst_nodes *nodes, const struct ulnet_nid *nid);
/* NIDs, and ranges of them. */
int lst_nodes_add_nids(struct lst_nodes *nodes, const char *text);
int lst_nodes_add_group(struct lst_nodes *nodes, struct state *s,
			const char *name);
/* Those that send in tests of a batch, or those that are sent to; with NULL of
 * any batch. */
int lst_nodes_add_batch(struct lst_nodes *nodes, struct state *s,
			const char *batch, bool servers);
/* Those of all groups. */
int lst_nodes_add_session(struct lst_nodes *nodes, struct state *s);
/* A group, or NIDs. */
int lst_nodes_add_word(struct lst_console *c, struct lst_nodes *nodes,
		       const char *word);

/* Only those whose state is one of @states, bits of enum node_state. */
void lst_nodes_keep(struct lst_nodes *nodes, const struct state *s,
		    unsigned int states);
/* Says which are not; @what they should be active for. */
int lst_nodes_need_active(const struct lst_nodes *nodes, const struct state *s,
			  const char *what);

/* Asks all of them at once, and waits. The answers say their states, too. */
void lst_nodes_ask(struct lst_console *c, struct lst_nodes *nodes,
		   const struct lst_msg *msg, uint32_t seconds);
/* The same, of each what its msg says; the session is filled in. */
void lst_nodes_ask_each(struct lst_console *c, struct lst_nodes *nodes,
			uint32_t seconds);
/* The session that an answer tells is the one that the node is in. */
enum node_state lst_node_said(const struct lst_console *c,
			      const struct lst_ask *ask);
/* Says which node did not do it. @also: a status that is as good as 0. */
int lst_node_failed(const struct lst_ask *ask, const char *what, uint32_t also);
int lst_nodes_failed(const struct lst_nodes *nodes, const char *what,
		     uint32_t also);
/* Unless @status says that something is wrong already, asks them in ASK_S, and
 * says which did not do it. Frees the list. Returns the exit status. */
int lst_nodes_tell(struct lst_console *c, struct lst_nodes *nodes, int status,
		   const struct lst_msg *msg, const char *what, uint32_t also);
/* Nodes forget the session unless they are asked something: servers, too, of
 * which nobody has anything to ask while tests run. */
void lst_nodes_keep_alive(struct lst_console *c);
/* Lets them go. */
int lst_nodes_remove(struct lst_console *c, struct lst_nodes *nodes,
		     const char *what);

#endif
