/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/client/trust.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>

#include "rpc/client/client.h"
#include "rpc/flavour.h"
#include "rpc/keys.h"
#include "rpc/sealed.h"
#include "rpc/text.h"

/* ---- what a client is opened with ---- */

struct conf_owner client_conf_owner(const struct ulrpc_client_conf *conf)
{
	return (struct conf_owner){ "client of", conf->service, conf->err };
}

#define refuse(conf, ...) \
	conf_refuse(client_conf_owner(conf), -EINVAL, __VA_ARGS__)

int client_check_flavour(const struct ulrpc *rpc,
			 const struct ulrpc_client_conf *conf)
{
	if ((unsigned int)conf->flavour > FLAVOUR_MAX)
		return refuse(conf, "flavour: %u is none",
			      (unsigned int)conf->flavour);
	if (conf->flavour == ULRPC_FLAVOUR_NONE && conf->server)
		return refuse(conf, "server: with flavour none no server "
				    "proves its name");
	if (!rpc_has_keys(rpc) &&
	    (conf->flavour > ULRPC_FLAVOUR_NONE || conf->server))
		return conf_refuse(client_conf_owner(conf), -ENOKEY,
				   "%s: RPC was opened without keys",
				   conf->server ? "server" : "flavour");
	return 0;
}

/* ---- whom it has found ---- */

bool client_server_is_right(const struct ulrpc_client *c)
{
	const struct sealed *sd = c->imp->sealed;

	return !c->server || (sd && sd->who->kind == IDENTITY_CERTIFICATE &&
			      !fnmatch(c->server, sd->who->name, 0));
}

bool client_agrees(struct ulrpc_client *c, const struct wire_opened *m)
{
	enum ulrpc_flavour told = flavour_of_wire(m->flavour);

	if (c->imp->secure)
		told = MAX(told, ULRPC_FLAVOUR_AUTH);
	c->told_flavour = told;
	if (told < c->least || told > FLAVOUR_MAX)
		return false;
	c->flavour = told;
	client_is_private(c);
	return true;
}

bool client_raise(struct ulrpc_client *c, uint32_t wanted)
{
	enum ulrpc_flavour told = flavour_of_wire(wanted);

	if (!c->imp->secure || told <= ULRPC_FLAVOUR_AUTH || told > FLAVOUR_MAX)
		return false;
	c->least = MAX(c->least, told);
	return true;
}

/* Does the client want privacy, or would it if its service were opened now? */
static bool client_wants_privacy(const struct ulrpc_client *c)
{
	return MAX(c->least, c->flavour) == ULRPC_FLAVOUR_PRIVACY;
}

void client_is_private(struct ulrpc_client *c)
{
	if (client_wants_privacy(c))
		c->imp->sealed->private = true;
}

bool clients_want_privacy(const struct import *imp)
{
	const struct ulrpc_client *c;

	list_for_each_entry (c, &imp->clients, link)
		if (client_wants_privacy(c))
			return true;
	return false;
}

void client_refusal(const struct ulrpc_client *c, char *text, size_t size)
{
	const struct import *imp = c->imp;

	if (c->distrust == CLIENT_NOT_PROVED)
		snprintf(text, size,
			 "service %s takes calls of those only who have proved "
			 "who they are: flavour %s",
			 c->service, ulrpc_flavour_name(c->told_flavour));
	else if (c->distrust == CLIENT_OTHER_FLAVOUR)
		snprintf(text, size, "service %s %s", c->service,
			 c->told_flavour > FLAVOUR_MAX
				 ? "takes calls only of a flavour that this "
				   "release does not know"
				 : "is of a release that does not know the "
				   "flavour asked for");
	else if (c->distrust == CLIENT_WRONG_SERVER)
		snprintf(text, size,
			 "the server has proved to be %s, and should be %s",
			 imp->sealed ? imp->sealed->who->name : "another one",
			 c->server);
	else
		text_copy(text, size, imp->refusal);
}
