/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of a command line that says what node a program is: the same for
 * all programs that are one. */
#ifndef TOOLS_NODE_OPTIONS_H
#define TOOLS_NODE_OPTIONS_H

#include <getopt.h>

#include <ulnet/lnet.h>

struct node_options {
	char *config;	   /* file; NULL: none */
	char *socket;	   /* path; NULL: none */
	const char *group; /* NULL: none */
	const char **nets; /* nnets of them */
	unsigned int nnets;
	const char *ip2nets, *routes; /* NULL: none */
	uint16_t port; /* 0: the default one */
	enum ulnet_accept accept;
	unsigned int cpts; /* 0: the default */
	enum ulnet_log_level log;
};

enum { NODE_IP2NETS = 512, NODE_ROUTES };

/* For getopt_long(): what takes a letter of its own, and the letters. */
/* clang-format off */
#define NODE_OPTIONS                                                           \
	{ "config", required_argument, NULL, 'c' },                            \
	{ "net", required_argument, NULL, 'n' },                               \
	{ "ip2nets", required_argument, NULL, NODE_IP2NETS },                 \
	{ "routes", required_argument, NULL, NODE_ROUTES },                   \
	{ "port", required_argument, NULL, 'p' },                              \
	{ "accept", required_argument, NULL, 'a' },                            \
	{ "socket", required_argument, NULL, 's' },                            \
	{ "group", required_argument, NULL, 'g' },                             \
	{ "cpts", required_argument, NULL, 't' },                              \
	{ "log", required_argument, NULL, 'l' }
/* clang-format on */
#define NODE_LETTERS "c:n:p:a:s:g:t:l:"

/* What --help says of the options that are the same everywhere. */
#define NODE_HELP_NETS                                                         \
	"  -c, --config FILE            configure it with this YAML, as "      \
	"lnetctl import\n"                                                     \
	"                               does; - is stdin\n"                    \
	"  -n, --net SPEC               add networks: "                        \
	"tcp(eth0,eth1),tcp1(10.1.0.1);\n"                                     \
	"                               can be given several times\n"          \
	"      --ip2nets RULES          add networks by this host's "          \
	"addresses:\n"                                                         \
	"                               \"tcp1(eth1) 10.1.*.*; tcp2 "          \
	"10.2.*.*\"\n"                                                         \
	"      --routes ROUTES          add routes: \"tcp2 10.1.0.9@tcp1\"\n"  \
	"  -p, --port N                 TCP port to listen on and to connect " \
	"to (988)\n"                                                           \
	"  -a, --accept secure|all|none take connections from privileged "     \
	"ports only,\n"                                                        \
	"                               from all, or none\n"
#define NODE_HELP_REST                                             \
	"  -g, --group NAME             may use the socket, too\n" \
	"  -t, --cpts N                 threads that serve messages\n"

void node_options_init(struct node_options *o);
/* Takes an option that getopt_long() has returned. 0; < 0: it is none of these;
 * else the exit status, after a message about what is wrong. */
int node_options_take(struct node_options *o, const char *who, int option,
		      const char *arg);
void node_options_free(struct node_options *o);

#endif
