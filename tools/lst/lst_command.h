/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of lst(8), the state of a session, and how nodes are asked. */
#ifndef TOOLS_LST_COMMAND_H
#define TOOLS_LST_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <ulnet/nid.h>

#include "services/lst/call.h"
#include "tools/common/option.h"

#define WHO    "lst"
#define FAILED 1 /* exit status of a command that has failed */

/* ---- the state of a session, between two commands: lst_state.c ---- */

/* The state is a text file that belongs to the user. state_open() locks it
 * until the process ends, so that commands of one session run one after the
 * other. */

#define STATE_NAME_SIZE 32
#define STATE_GROUPS	64
#define STATE_NODES	1024 /* most nodes in a group */
#define STATE_BATCHES	64
#define STATE_TESTS	256
#define STATE_NODE_ARGS 16
#define STATE_TEXT	128
#define STATE_VALUE	400

/* The state of a node, as of its last answer. */
enum node_state {
	NODE_UNKNOWN, /* it is in no session */
	NODE_ACTIVE,  /* it is in this session */
	NODE_BUSY,    /* it is in another session */
	NODE_DOWN,    /* it gave no answer */
	NODE_STATES
};
#define NODES_ALL ((1u << NODE_STATES) - 1)
extern const char *const node_states[NODE_STATES];

struct state_node {
	struct ulnet_nid nid;
	/* state of the node, the same in all groups that have the node */
	enum node_state state;
};

/* A node that listens at a port of its own. */
struct state_port {
	struct ulnet_nid nid;
	uint16_t port;
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
	/* the name of the test and its arguments, to be printed */
	char text[STATE_TEXT];
};

struct state {
	char *path;
	FILE *file;
	bool exists; /* there is a session */
	bool force;  /* nodes may be taken away from other sessions */
	char name[STATE_NAME_SIZE];
	uint64_t console; /* this and @stamp are the session's id */
	int64_t stamp;
	uint64_t next_batch;
	/* s without a command after which the session ends; 0: never */
	unsigned int timeout;
	/* s since the last command, when state_open() was called */
	unsigned int idle;
	/* Options for the console's own node, which hold for the session. */
	unsigned int nargs;
	struct {
		char option[STATE_NAME_SIZE];
		char value[STATE_VALUE];
	} args[STATE_NODE_ARGS];
	unsigned int nports;
	struct state_port *ports;
	unsigned int ngroups, nbatches, ntests;
	struct state_group groups[STATE_GROUPS];
	struct state_batch batches[STATE_BATCHES];
	struct state_test tests[STATE_TESTS];
};

/* Opens or makes the file of the session that $LST_SESSION names, and reads it.
 * Returns 0, or -errno after a message. */
int state_open(struct state *s);
/* Has the session ended because there was no command for state.timeout? */
bool state_expired(const struct state *s);
/* Sets the time of the last command to now. */
void state_touch(const struct state *s);
/* Removes the session, its groups, batches and tests from @s, but keeps the
 * options of the node. */
void state_clear(struct state *s);
/* Writes the file, or removes it if the session has ended. Returns 0 or -errno.
 */
int state_save(struct state *s);
void state_close(struct state *s);

bool state_name_good(const char *name);
/* Copies @name, whose length the caller has checked. */
void state_name_copy(char to[STATE_NAME_SIZE], const char *name);
struct state_group *state_group(struct state *s, const char *name);
struct state_batch *state_batch(struct state *s, const char *name);
/* Returns the state of a node; NODE_UNKNOWN also if it is in no group. */
enum node_state state_of(const struct state *s, const struct ulnet_nid *nid);
/* Is the node in the group @name? False also if there is no such group. */
bool state_group_has(const struct state *s, const char *name,
		     const struct ulnet_nid *nid);
/* Sets the node's state in all groups. */
void state_set_node(struct state *s, const struct ulnet_nid *nid,
		    enum node_state state);
/* Is the node in any group? */
bool state_has(const struct state *s, const struct ulnet_nid *nid);
/* Adds a copy of @node. Returns 0; -ENOSPC: the group has STATE_NODES; -ENOMEM.
 */
int state_group_add(struct state_group *g, const struct state_node *node);
/* Removes the node from @g, if it is there. */
void state_group_remove(struct state_group *g, const struct ulnet_nid *nid);
void state_group_del(struct state *s, struct state_group *g);
/* Notes the port of a node. state_save() keeps the ports of nodes that are in a
 * group. Returns 0 or -ENOMEM. */
int state_port_add(struct state *s, const struct ulnet_nid *nid, uint16_t port);

/* ---- commands ---- */

struct lst_console {
	struct state state;
	struct lnet *node; /* NULL: the command needs none */
	struct lst_calls calls;
	bool default_net; /* the user has named no network */
	bool json;
	const char *comma; /* printed before the next item of a list in JSON */
};

/* The options and words of a command. Each command uses some of the options. */
struct lst_words {
	bool force, wait, refresh, session, server;
	/* --all: accepted, but has no effect, since nodes of all states are
	 * shown unless others are named */
	bool all;
	bool rate, bw, read, write, avg, min, max, mbs;
	unsigned int states; /* a bit for each enum node_state */
	unsigned int delay, count, concurrency, loop;
	unsigned int ask;     /* s in which nodes have to answer */
	unsigned int timeout; /* s: state.timeout */
	unsigned int run;     /* s: the timeout of the batch that is run */
	/* the number of a test in its batch, from 1; 0: all tests */
	unsigned int test;
	const char *batch, *from, *to, *distribute, *clean, *remove;
	const char *group, *nodes;
	/* words that are no options, @n of them; NULL at the end */
	char **args;
	int n;
};

struct lst_command {
	const char *name;
	const char *args; /* description of the words, for --help */
	const struct option_row *rows;
	int min, max; /* how many words it takes; max < 0: any number */
	/* Returns the exit status; if that is not 0, prints a message before.
	 */
	int (*run)(struct lst_console *c, const struct lst_words *w);
	bool makes;   /* it makes the session, so there need not be one */
	bool asks;    /* it asks other nodes, and so needs a node of its own */
	bool answers; /* it prints JSON by itself if --json is given */
};

/* All commands. The last entry has no name. */
extern const struct lst_command lst_commands[];

/* Returns the command @name; NULL: there is none. */
const struct lst_command *lst_command_find(const char *name);
/* Parses the arguments of @command, whose name is argv[0]. Returns 0 or
 * OPTION_USAGE. */
int lst_words_take(struct lst_words *w, const struct lst_command *command,
		   int argc, char **argv);

/* The run functions of commands. */
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

/* The batch that each session has, and that is made when it is first named. */
#define LST_BATCH_DEFAULT "batch"

/* Returns the batch @name; if @name is NULL, the only batch, or that with the
 * default name. NULL: there is none, and a message was printed. */
struct state_batch *lst_batch_named(struct lst_console *c, const char *name);
/* Stops the batch, and waits until none of its tests runs. Returns the exit
 * status. */
int lst_batch_stop(struct lst_console *c, const struct state_batch *b,
		   bool force);

/* Prints what is wrong with the arguments. Returns OPTION_USAGE. */
int lst_usage(const char *command, const char *what);
/* Prints why a command fails. Returns FAILED. */
int lst_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Checks the name of a group or batch (@what). Returns 0, or FAILED after a
 * message. */
int lst_check_name(const char *what, const char *name);

/* Checks the name of a session. It may have any printable characters of ASCII,
 * because it is printed but not looked up. Returns 0, or FAILED after a
 * message. */
int lst_check_label(const char *name);
#define LST_LABEL_SIZE 64
/* Copies the name of a session to @text, to be printed. The name may come from
 * another node, so characters that are not printable become question marks.
 * With @json, quotes and backslashes are escaped. Returns @text, which has
 * LST_LABEL_SIZE bytes. */
const char *lst_label(const char *name, bool json, char *text);

/* With --json these print the beginning of a list, {"NAME": [...]}, what comes
 * before each item, and the end of the list. Without --json they print nothing.
 */
void lst_list_begin(struct lst_console *c, const char *name);
void lst_list_next(struct lst_console *c);
void lst_list_end(struct lst_console *c);

/* ---- asking nodes: lst_nodes.c ---- */

#define ASK_S	  30 /* s in which a node has to answer */
#define SECOND_US UINT64_C(1000000)

/* The states of nodes that may be in the session. */
#define NODES_MEMBERS (1u << NODE_ACTIVE | 1u << NODE_DOWN)

/* A set of nodes to ask. */
struct lst_nodes {
	unsigned int n;
	struct lst_ask *asks; /* array, which the caller frees */
};

/* Add nodes that are not in the set yet. Return 0, or FAILED after a message.
 */
int lst_nodes_add(struct lst_nodes *nodes, const struct ulnet_nid *nid);
/* The console's node connects to @at->nid at @at->port from now on. Returns 0,
 * or FAILED after a message. */
int lst_port_use(struct lst_console *c, const struct state_port *at);
/* Adds the nodes of @text: NIDs, ranges of NIDs, or the name of a host. */
int lst_nodes_add_nids(struct lst_console *c, struct lst_nodes *nodes,
		       const char *text);
int lst_nodes_add_group(struct lst_nodes *nodes, struct state *s,
			const char *name);
/* Adds the clients in tests of @batch or, if @servers, the servers. @batch
 * NULL: of all batches. */
int lst_nodes_add_batch(struct lst_nodes *nodes, struct state *s,
			const char *batch, bool servers);
/* Adds the nodes of all groups. */
int lst_nodes_add_session(struct lst_nodes *nodes, struct state *s);
/* Adds the nodes of @word: NIDs if it has a '@', else a group. */
int lst_nodes_add_word(struct lst_console *c, struct lst_nodes *nodes,
		       const char *word);

/* Removes nodes whose state is not in @states, bits of enum node_state. */
void lst_nodes_filter(struct lst_nodes *nodes, const struct state *s,
		      unsigned int states);
/* Prints a message for each node that is not active, which the command @what
 * needs. Returns 0, or FAILED if there was any. */
int lst_nodes_need_active(const struct lst_nodes *nodes, const struct state *s,
			  const char *what);

/* Sends @msg to all nodes at once, waits for their answers for up to @seconds,
 * and notes the states that these show. */
void lst_nodes_ask(struct lst_console *c, struct lst_nodes *nodes,
		   const struct lst_msg *msg, uint32_t seconds);
/* As lst_nodes_ask(), but sends the msg of each lst_ask, in which this sets the
 * session. */
void lst_nodes_ask_each(struct lst_console *c, struct lst_nodes *nodes,
			uint32_t seconds);
/* Returns the state of a node, from the session in its answer. */
enum node_state lst_node_state(const struct lst_console *c,
			       const struct lst_ask *ask);
/* Print a message for each node that gave no answer, or an answer with an error
 * other than @also. Return 0, or FAILED if there was any. */
int lst_node_failed(const struct lst_ask *ask, const char *what, uint32_t also);
int lst_nodes_failed(const struct lst_nodes *nodes, const char *what,
		     uint32_t also);
/* If @status is 0, calls lst_nodes_ask() with ASK_S, and lst_nodes_failed(). In
 * any case frees nodes->asks. Returns the exit status. */
int lst_nodes_request(struct lst_console *c, struct lst_nodes *nodes,
		      int status, const struct lst_msg *msg, const char *what,
		      uint32_t also);
/* Sends a request to all active nodes: a node ends a session of which it hears
 * nothing, as a server would while tests run. */
void lst_nodes_keep_alive(struct lst_console *c);
/* Makes nodes leave the session. Returns the exit status. */
int lst_nodes_remove(struct lst_console *c, struct lst_nodes *nodes,
		     const char *what);

#endif
