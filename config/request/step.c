/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/request/step.h"

#include <errno.h>
#include <inttypes.h>

static const char *ni_spec_name(const struct ni_spec *spec,
				char name[STEP_NAME_SIZE])
{
	char net[LNET_NIDSTR_SIZE];

	if (!*spec->interface)
		return lnet_nid_format(&spec->conf.nid, name, STEP_NAME_SIZE);
	snprintf(name, STEP_NAME_SIZE, "%s(%s)",
		 lnet_net_format(lnet_nid_net(&spec->conf.nid), net,
				 sizeof(net)),
		 spec->interface);
	return name;
}

static void ni_complain(const struct step *step, int rc)
{
	bool no_interface = rc == -ENODEV || rc == -EADDRNOTAVAIL;
	const char *what = step->ni_why, *error = NULL;
	char name[STEP_NAME_SIZE];

	ni_spec_name(&step->spec, name);
	if (!step->add) {
		scope_fail(&step->scope, step->at, rc,
			   "cannot del network %s: %s", name, strerror(-rc));
		return;
	}
	if (!what && no_interface)
		what = rc == -ENODEV ? "no such interface"
				     : "the interface has no address that can "
				       "be used";
	if (!no_interface)
		error = strerror(-rc);
	scope_fail(&step->scope, step->at, no_interface ? -ENETDOWN : rc,
		   "cannot add network %s: %s%s%s", name, what ? what : "",
		   what && error ? ": " : "", error ? error : "");
}

static const char *peer_why(int rc)
{
	switch (rc) {
	case -EEXIST:
		return "another configured peer has it";
	case -ENOENT:
		return "no such peer was configured";
	case -EINVAL: /* other bad NIDs were refused when they were read */
		return "that is a NID of this node";
	case -EBUSY:
		return "it is in use, or another configured peer has it";
	default:
		return strerror(-rc);
	}
}

static void peer_complain(const struct step *step, int rc)
{
	const struct peer_change *c = step->peer;
	const char *what = c->kind == PEER_ADD ? "add" : "del";
	char primary[LNET_NIDSTR_SIZE], nid[LNET_NIDSTR_SIZE];

	lnet_nid_format(&c->nids[0], primary, sizeof(primary));
	lnet_nid_format(&c->nids[c->at], nid, sizeof(nid));
	if (c->at)
		scope_fail(&step->scope, step->at, rc,
			   "cannot %s NID %s %s peer %s: %s", what, nid,
			   c->kind == PEER_ADD ? "to" : "from", primary,
			   rc == -ENOENT ? "the peer has not got it"
					 : peer_why(rc));
	else
		scope_fail(&step->scope, step->at, rc, "cannot %s peer %s: %s",
			   what, primary, peer_why(rc));
}

static const char *route_why(const struct step *step, int rc)
{
	if (!step->add)
		return rc == -ENOENT ? "there is no such route" : strerror(-rc);
	switch (rc) {
	case -EEXIST:
		return "Route already exists";
	case -EHOSTUNREACH:
		return "No interface configured on the same net as gateway";
	case -EINVAL:
		return "the network is local, or the gateway is no other node "
		       "on a local network";
	default:
		return strerror(-rc);
	}
}

static void route_complain(const struct step *step, int rc)
{
	char net[LNET_NIDSTR_SIZE], gateway[LNET_NIDSTR_SIZE];

	scope_fail(
		&step->scope, step->at, rc, "cannot %s route to %s by %s: %s",
		step->add ? "add" : "delete",
		lnet_net_format(step->route.net, net, sizeof(net)),
		lnet_nid_format(&step->route.gateway, gateway, sizeof(gateway)),
		route_why(step, rc));
}

static void policy_complain(const struct step *step, int rc)
{
	const char *why = strerror(-rc);

	if (rc == -EINVAL && *step->why.what)
		why = step->why.what;
	else if (rc == -ERANGE)
		why = "idx: too high";
	else if (rc == -ENOSPC)
		why = "there are as many as a node may have";
	scope_fail(&step->scope, step->at, rc, "cannot %s udsp: %s",
		   step->add ? "add" : "del", why);
}

static void tls_complain(const struct step *step, int rc)
{
	const char *why = strerror(-rc);

	if (*step->why.what)
		why = step->why.what;
	else if (rc == -ENOSPC)
		why = "there are as many rules as a node may have";
	else if (rc == -ENOENT)
		why = "there is no rule with this name";
	scope_fail(&step->scope, step->at, rc, "cannot %s tls rule '%.64s': %s",
		   step->add ? "set" : "del", step->tls_name, why);
}

static void setting_complain(const struct step *step, int rc)
{
	const struct scope *s = &step->scope;
	const char *why = strerror(-rc);

	/* the value is in its range: another setting forbids it */
	if (rc == -EINVAL)
		why = "transaction_timeout has to be more than retry_count";
	if (s->set)
		scope_set_fail(s, step->setting, rc, why);
	else
		scope_fail(s, step->at, rc, "cannot configure %s: %s",
			   step->setting, why);
}

void step_complain(const struct step *step, int rc)
{
	switch (step->kind) {
	case STEP_NI:
		ni_complain(step, rc);
		break;
	case STEP_PEER:
		peer_complain(step, rc);
		break;
	case STEP_FAULT:
		scope_fail(&step->scope, step->at, rc,
			   "cannot %s fault rule: %s",
			   step->add ? "add" : "del",
			   rc == -ENOENT   ? "there is no such rule"
			   : rc == -EEXIST ? "there is this rule already"
					   : strerror(-rc));
		break;
	case STEP_ROUTE:
		route_complain(step, rc);
		break;
	case STEP_ROUTING:
		scope_fail(&step->scope, step->at, rc,
			   "cannot configure routing: %s", strerror(-rc));
		break;
	case STEP_POLICY:
		policy_complain(step, rc);
		break;
	case STEP_TLS:
		tls_complain(step, rc);
		break;
	default:
		setting_complain(step, rc);
	}
}

static void step_log(const struct step *step)
{
	static const char *const fates[] = { [PEER_ADD] = "added",
					     [PEER_DEL] = "has fewer NIDs",
					     [PEER_DEL_WHOLE] = "deleted",
					     [PEER_IS_US] = "is this node",
					     [PEER_STAYS_US] = "is this node" };
	const char *fate = step->add ? "added" : "deleted";
	char nid[LNET_NIDSTR_SIZE], levels[LNET_LOG_LEVELS];

	if (step->kind == STEP_SET && !strcmp(step->setting, PLAN_LOG))
		lnet_log(LNET_LOG_INFO, "config", "log: %s",
			 lnet_log_levels(levels, sizeof(levels)));
	else if (step->kind == STEP_SET)
		lnet_log(LNET_LOG_INFO, "config", "%s: %" PRId64, step->setting,
			 step->value);
	else if (step->kind == STEP_PEER)
		lnet_log(
			LNET_LOG_INFO, "config", "peer %s: %s",
			lnet_nid_format(&step->peer->nids[0], nid, sizeof(nid)),
			fates[step->peer->kind]);
	else if (step->kind == STEP_ROUTING)
		lnet_log(LNET_LOG_INFO, "config", "routing: %s",
			 step->routing.enabled ? "on" : "off");
	else if (step->kind == STEP_POLICY)
		lnet_log(LNET_LOG_INFO, "config", "policies: one %s", fate);
	else if (step->kind == STEP_TLS)
		lnet_log(LNET_LOG_INFO, "config", "tls: rule of %s: %s",
			 step->tls_name, step->add ? "set" : "deleted");
	else if (step->kind == STEP_FAULT)
		lnet_log(LNET_LOG_INFO, "config", "fault rules: one %s", fate);
	else if (step->kind == STEP_ROUTE)
		lnet_log(
			LNET_LOG_INFO, "config", "route by %s: %s",
			lnet_nid_format(&step->route.gateway, nid, sizeof(nid)),
			fate);
	else
		lnet_log(LNET_LOG_INFO, "config", "%s: %s",
			 lnet_nid_format(&step->nid, nid, sizeof(nid)), fate);
}

const char *step_name(const struct step *step, char text[STEP_NAME_SIZE])
{
	switch (step->kind) {
	case STEP_NI:
		return ni_spec_name(&step->spec, text);
	case STEP_PEER:
		return lnet_nid_format(&step->peer->nids[0], text,
				       STEP_NAME_SIZE);
	case STEP_FAULT:
		return "fault rules";
	case STEP_ROUTE:
		return lnet_nid_format(&step->route.gateway, text,
				       STEP_NAME_SIZE);
	case STEP_ROUTING:
		return "routing";
	case STEP_POLICY:
		return "udsp";
	case STEP_TLS:
		return step->tls_name;
	default:
		return step->setting;
	}
}

void step_tell(const struct step *step)
{
	static const char *const not_done[] = {
		[PEER_IS_US] = "not added",
		[PEER_STAYS_US] = "not deleted",
	};
	char nid[LNET_NIDSTR_SIZE];

	if (step->kind == STEP_PEER && step->peer->kind >= PEER_IS_US)
		answer_note(
			step->scope.answer, "peer %s is this node itself: %s",
			lnet_nid_format(&step->peer->nids[0], nid, sizeof(nid)),
			not_done[step->peer->kind]);
	step_log(step);
}
