/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnetd_options.h"

#include <stdio.h>
#include <stdlib.h>

#include <ulnet/control.h>

#include "tools/common/option.h"

static const char help[] =
	"usage: lnetd [OPTION]...\n"
	"An LNet node of its own, in user space.\n"
	"\n" NODE_HELP_NETS
	"  -s, --socket PATH            for lnetctl; else $ULNET_SOCKET, else\n"
	"                               " LNET_CTL_PATH "\n" NODE_HELP_REST
	"  -f, --foreground             stay in the foreground, log to stderr\n"
	METRICS_HELP
	LST_HELP "  -P, --pidfile FILE           write the process's id there\n"
	"  -l, --log LEVEL              err, warn (default), info or debug\n"
	"  -h, --help                   print this\n"
	"  -V, --version                print the version\n";

static const struct option options[] = {
	NODE_OPTIONS,
	METRICS_OPTIONS,
	LST_OPTIONS,
	{ "foreground", no_argument, NULL, 'f' },
	{ "pidfile", required_argument, NULL, 'P' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};

static int take_option(struct lnetd_options *o, int option, const char *arg)
{
	int status = node_options_take(&o->node, "lnetd", option, arg);

	if (status < 0)
		status = lst_options_take(&o->lst, "lnetd", option, arg);
	if (status < 0)
		status = metrics_options_take(&o->metrics, "lnetd", option,
					      arg);
	if (status >= 0)
		return status;
	switch (option) {
	case 'f':
		o->foreground = true;
		return 0;
	case 'P':
		return option_path("lnetd", "pidfile", arg, &o->pidfile);
	}
	fputs("See 'lnetd --help'.\n", stderr); /* getopt said why */
	return OPTION_USAGE;
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

	return option_path("lnetd", "socket",
			   path && *path ? path : LNET_CTL_PATH,
			   &o->node.socket);
}

int lnetd_options_parse(struct lnetd_options *o, int argc, char **argv)
{
	int option, status;

	*o = (struct lnetd_options){ .pidfile = NULL };
	metrics_options_init(&o->metrics);
	node_options_init(&o->node);
	argv[0] = "lnetd";
	while ((option = getopt_long(argc, argv,
				     NODE_LETTERS METRICS_LETTERS "fP:hV",
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
		return OPTION_USAGE;
	}
	if (lst_options_check(&o->lst, "lnetd"))
		return OPTION_USAGE;
	if (!o->node.socket && default_socket(o))
		return OPTION_USAGE;
	return -1;
}

void lnetd_options_free(struct lnetd_options *o)
{
	node_options_free(&o->node);
	lst_options_free(&o->lst);
	free(o->pidfile);
}
