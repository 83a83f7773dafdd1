/* SPDX-License-Identifier: BSD-3-Clause */
#include "node_options.h"

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>

#include "option.h"

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

void node_options_init(struct node_options *o)
{
	*o = (struct node_options){ .log = LNET_LOG_WARN };
}

static int take_config(struct node_options *o, const char *who,
		       const char *path)
{
	if (strcmp(path, "-") != 0)
		return option_path(who, "config", path, &o->config);
	free(o->config);
	o->config = strdup(path);
	return o->config ? 0
			 : option_bad(who, "config", path, strerror(ENOMEM));
}

static int take_net(struct node_options *o, const char *who, const char *spec)
{
	const char **nets;

	if (!*spec)
		return option_bad(who, "net", "''",
				  "a net is expected, like tcp(eth0)");
	nets = realloc(o->nets, (o->nnets + 1) * sizeof(o->nets[0]));

	if (!nets)
		return option_bad(who, "net", spec, strerror(ENOMEM));
	o->nets = nets;
	o->nets[o->nnets++] = spec;
	return 0;
}

static int take_text(const char *who, const char *name, const char *text,
		     const char **text_p)
{
	if (!*text)
		return option_bad(who, name, "''", "a text is expected");
	*text_p = text;
	return 0;
}

static int take_port(struct node_options *o, const char *who, const char *text)
{
	unsigned int number = 0;
	int status = option_number(who, "port", text, 1, 65535, &number);

	o->port = (uint16_t)number;
	return status;
}

static int take_group(struct node_options *o, const char *who, const char *name)
{
	if (!name[strspn(name, "0123456789")] ? !*name : !getgrnam(name))
		return option_bad(who, "group", name, "there is no such group");
	o->group = name;
	return 0;
}

static int take_accept(struct node_options *o, const char *who,
		       const char *text)
{
	unsigned int word = 0;
	int status = option_word(who, "accept", text, accepts, COUNT(accepts),
				 "secure, all or none", &word);

	o->accept = (enum ulnet_accept)word;
	return status;
}

static int take_level(struct node_options *o, const char *who, const char *text)
{
	unsigned int word = 0;
	int status = option_word(who, "log", text, levels, COUNT(levels),
				 "err, warn, info or debug", &word);

	o->log = (enum ulnet_log_level)word;
	return status;
}

int node_options_take(struct node_options *o, const char *who, int option,
		      const char *arg)
{
	switch (option) {
	case 'c':
		return take_config(o, who, arg);
	case 'n':
		return take_net(o, who, arg);
	case NODE_IP2NETS:
		return take_text(who, "ip2nets", arg, &o->ip2nets);
	case NODE_ROUTES:
		return take_text(who, "routes", arg, &o->routes);
	case 'p':
		return take_port(o, who, arg);
	case 'a':
		return take_accept(o, who, arg);
	case 's':
		return option_path(who, "socket", arg, &o->socket);
	case 'g':
		return take_group(o, who, arg);
	case 't':
		return option_number(who, "cpts", arg, 1, LNET_CPTS_MAX, &o->cpts);
	case 'l':
		return take_level(o, who, arg);
	}
	return -ENOENT;
}

void node_options_free(struct node_options *o)
{
	free(o->config);
	free(o->socket);
	free(o->nets);
}
