/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnetd_options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ulnet/control.h>

#define EXIT_USAGE 2

static const char help[] =
	"usage: lnetd [OPTION]...\n"
	"An LNet node of its own, in user space.\n"
	"\n"
	"  -c, --config FILE            configure it with this YAML, as "
	"lnetctl import\n"
	"                               does; - is stdin\n"
	"  -n, --net SPEC               add networks: "
	"tcp(eth0,eth1),tcp1(10.1.0.1);\n"
	"                               can be given several times\n"
	"  -p, --port N                 TCP port to listen on and to connect "
	"to (988)\n"
	"  -a, --accept secure|all|none take connections from privileged ports "
	"only,\n"
	"                               from all, or none\n"
	"  -s, --socket PATH            for lnetctl; else $ULNET_SOCKET, else\n"
	"                               " LNET_CTL_PATH "\n"
	"  -g, --group NAME             may use the socket, too\n"
	"  -t, --cpts N                 threads that serve messages\n"
	"  -f, --foreground             stay in the foreground, log to stderr\n"
	"  -P, --pidfile FILE           write the process's id there\n"
	"  -l, --log LEVEL              err, warn (default), info or debug\n"
	"  -h, --help                   print this\n"
	"  -V, --version                print the version\n";

static const struct option options[] = {
	{ "config", required_argument, NULL, 'c' },
	{ "net", required_argument, NULL, 'n' },
	{ "port", required_argument, NULL, 'p' },
	{ "accept", required_argument, NULL, 'a' },
	{ "socket", required_argument, NULL, 's' },
	{ "group", required_argument, NULL, 'g' },
	{ "cpts", required_argument, NULL, 't' },
	{ "foreground", no_argument, NULL, 'f' },
	{ "pidfile", required_argument, NULL, 'P' },
	{ "log", required_argument, NULL, 'l' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};

static const char *const accepts[] = {
	[LNET_ACCEPT_SECURE] = "secure",
	[LNET_ACCEPT_ALL] = "all",
	[LNET_ACCEPT_NONE] = "none",
};

static const char *const levels[] = {
	[LNET_LOG_ERR] = "err",
	[LNET_LOG_WARN] = "warn",
	[LNET_LOG_INFO] = "info",
	[LNET_LOG_DEBUG] = "debug",
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int bad(const char *option, const char *value, const char *what)
{
	fprintf(stderr, "lnetd: --%s %s: %s\n", option, value, what);
	return EXIT_USAGE;
}

static int take_number(const char *option, const char *text, unsigned int max,
		       unsigned int *value_p)
{
	unsigned long value;
	char range[64], *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	snprintf(range, sizeof(range), "a number from 1 to %u is expected",
		 max);
	if (!isdigit((unsigned char)*text) || *end || errno || !value ||
	    value > max)
		return bad(option, text, range);
	*value_p = (unsigned int)value;
	return 0;
}

/* The index of @text in @words, which may have gaps; -1. */
static int find_word(const char *const *words, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (words[i] && strcmp(words[i], text) == 0)
			return (int)i;
	return -1;
}

/* The daemon's working directory is another one. */
static int take_path(const char *option, const char *path, char **path_p)
{
	char *here, *text;

	if (!*path)
		return bad(option, "''", "a path is expected");
	here = *path == '/' ? NULL : getcwd(NULL, 0);
	if (*path != '/' && !here)
		return bad(option, path, strerror(errno));
	if (asprintf(&text, "%s%s%s", here ? here : "", here ? "/" : "", path) <
	    0)
		text = NULL;
	free(here);
	if (!text)
		return bad(option, path, strerror(ENOMEM));
	free(*path_p);
	*path_p = text;
	return 0;
}

static int take_config(struct lnetd_options *o, const char *path)
{
	if (strcmp(path, "-") != 0)
		return take_path("config", path, &o->config);
	free(o->config);
	o->config = strdup(path);
	return o->config ? 0 : bad("config", path, strerror(ENOMEM));
}

static int take_net(struct lnetd_options *o, const char *spec)
{
	const char **nets =
		realloc(o->nets, (o->nnets + 1) * sizeof(o->nets[0]));

	if (!nets)
		return bad("net", spec, strerror(ENOMEM));
	o->nets = nets;
	o->nets[o->nnets++] = spec;
	return 0;
}

static int take_group(struct lnetd_options *o, const char *name)
{
	if (!name[strspn(name, "0123456789")] ? !*name : !getgrnam(name))
		return bad("group", name, "there is no such group");
	o->group = name;
	return 0;
}

static int take_accept(struct lnetd_options *o, const char *text)
{
	int word = find_word(accepts, COUNT(accepts), text);

	if (word < 0)
		return bad("accept", text, "secure, all or none is expected");
	o->accept = (enum ulnet_accept)word;
	return 0;
}

static int take_level(struct lnetd_options *o, const char *text)
{
	int word = find_word(levels, COUNT(levels), text);

	if (word < 0)
		return bad("log", text, "err, warn, info or debug is expected");
	o->log = (enum ulnet_log_level)word;
	return 0;
}

static int take_option(struct lnetd_options *o, int option, const char *arg)
{
	unsigned int number = 0;
	int status;

	switch (option) {
	case 'c':
		return take_config(o, arg);
	case 'n':
		return take_net(o, arg);
	case 'p':
		status = take_number("port", arg, 65535, &number);
		o->port = (uint16_t)number;
		return status;
	case 'a':
		return take_accept(o, arg);
	case 's':
		return take_path("socket", arg, &o->socket);
	case 'g':
		return take_group(o, arg);
	case 't':
		return take_number("cpts", arg, LNET_CPTS_MAX, &o->cpts);
	case 'f':
		o->foreground = true;
		return 0;
	case 'P':
		return take_path("pidfile", arg, &o->pidfile);
	case 'l':
		return take_level(o, arg);
	}
	fputs("See 'lnetd --help'.\n", stderr); /* getopt said why */
	return EXIT_USAGE;
}

static int print(const char *text)
{
	if (fputs(text, stdout) >= 0 && fflush(stdout) == 0)
		return 0;
	perror("lnetd: stdout");
	return 1;
}

static int default_socket(struct lnetd_options *o)
{
	const char *path = getenv("ULNET_SOCKET");

	return take_path("socket", path && *path ? path : LNET_CTL_PATH,
			 &o->socket);
}

int lnetd_options_parse(struct lnetd_options *o, int argc, char **argv)
{
	int option, status;

	*o = (struct lnetd_options){ .log = LNET_LOG_WARN };
	argv[0] = "lnetd";
	while ((option = getopt_long(argc, argv, "c:n:p:a:s:g:t:fP:l:hV",
				     options, NULL)) != -1) {
		if (option == 'h')
			return print(help);
		if (option == 'V')
			return print("lnetd (" PACKAGE_NAME ") " PACKAGE_VERSION
				     "\n");
		status = take_option(o, option, optarg);
		if (status)
			return status;
	}
	if (optind < argc) {
		fprintf(stderr,
			"lnetd: unexpected argument: %s\n"
			"See 'lnetd --help'.\n",
			argv[optind]);
		return EXIT_USAGE;
	}
	if (!o->socket && default_socket(o))
		return EXIT_USAGE;
	return -1;
}

void lnetd_options_free(struct lnetd_options *o)
{
	free(o->config);
	free(o->socket);
	free(o->pidfile);
	free(o->nets);
}
