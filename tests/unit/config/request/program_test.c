/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands that a program adds to its control. */
#include "tests/unit/config/rig.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

struct program {
	const char *output; /* what the command prints; NULL: nothing */
	int rc;
	unsigned int calls, gone;
	int64_t number;
	char text[64];
};

static int on_call(void *arg, struct lnet_control_call *call, char **output_p)
{
	struct program *p = arg;
	const char *text = NULL;
	int rc = lnet_control_number(call, "number", -5, 100, &p->number);

	p->calls++;
	if (!rc)
		rc = lnet_control_text(call, "text", &text);
	if (rc)
		return rc;
	snprintf(p->text, sizeof(p->text), "%s", text ? text : "-");
	if (p->rc)
		return p->rc;
	if (p->output) {
		*output_p = strdup(p->output);
		cr_assert_not_null(*output_p);
	}
	return 0;
}

static void on_gone(void *arg)
{
	((struct program *)arg)->gone++;
}

static int add(struct rig *rig, const char *name, struct program *p)
{
	const struct ulnet_control_command command = {
		.name = name,
		.keys = (const char *const[]){ "number", "text", NULL },
		.fn = on_call,
		.gone = on_gone,
		.arg = p,
	};

	return lnet_control_add(rig->control, &command);
}

Test(program, output_and_arguments)
{
	struct program p = { .output = "rpc:\n  calls: [ { a: \"x: y\" } ]\n"
				       "more: 5\n" };
	struct rig rig = rig_open();

	cr_assert_eq(add(&rig, "rpc show", &p), 0);
	ask_out(&rig, "rpc show:",
		"rpc:\n"
		"    calls:\n"
		"        - a: \"x: y\"\n"
		"more: 5\n");
	cr_assert_eq(p.number, 0);
	cr_assert_str_eq(p.text, "-");
	p.output = NULL;
	ask_out(&rig, "rpc show: {number: -5, text: abc}", "");
	cr_assert_eq(p.number, -5);
	cr_assert_str_eq(p.text, "abc");
	p.output = "";
	ask_out(&rig, "rpc show:", "");
	cr_assert_eq(p.calls, 3);
	rig_close(&rig);
	cr_assert_eq(p.gone, 1);
}

Test(program, names_of_its_own)
{
	struct program a = { .output = "a: 1" }, b = { .output = "b: 2" };
	struct rig rig = rig_open();

	cr_assert_eq(add(&rig, "jobs show", &a), 0);
	cr_assert_eq(add(&rig, "jobs", &b), 0);
	ask_out(&rig, "jobs show:", "a: 1\n");
	ask_out(&rig, "jobs:", "b: 2\n");
	cr_assert_eq(lnet_control_del(rig.control, "jobs"), 0);
	ask_fail(&rig, "jobs:", -EINVAL, "unknown command 'jobs'");
	ask_out(&rig, "jobs show:", "a: 1\n");
	rig_close(&rig);
	cr_assert_eq(a.gone, 1);
	cr_assert_eq(b.gone, 0);
}

Test(program, what_cannot_be_added)
{
	const struct ulnet_control_command nothing = { .name = "x" };
	struct program p = { 0 };
	struct rig rig = rig_open();
	char name[80];

	memset(name, 'x', sizeof(name));
	name[LNET_CONTROL_NAME_MAX + 1] = 0;
	cr_assert_eq(add(&rig, name, &p), -EINVAL);
	name[LNET_CONTROL_NAME_MAX] = 0;
	cr_assert_eq(add(&rig, name, &p), 0);
	cr_assert_eq(add(&rig, "", &p), -EINVAL);
	cr_assert_eq(add(&rig, NULL, &p), -EINVAL);
	cr_assert_eq(lnet_control_add(rig.control, &nothing), -EINVAL);
	cr_assert_eq(add(&rig, "net show", &p), -EEXIST);
	cr_assert_eq(add(&rig, "route add", &p), -EEXIST);
	cr_assert_eq(add(&rig, "rpc show", &p), 0);
	cr_assert_eq(add(&rig, "rpc show", &p), -EEXIST);
	cr_assert_eq(lnet_control_del(rig.control, "net show"), -ENOENT);
	cr_assert_eq(lnet_control_del(rig.control, "rpc show"), 0);
	cr_assert_eq(lnet_control_del(rig.control, "rpc show"), -ENOENT);
	cr_assert_eq(add(&rig, "rpc show", &p), 0);
	rig_close(&rig);
	cr_assert_eq(p.gone, 2);
}

Test(program, errors)
{
	struct program p = { .rc = -EPERM };
	struct rig rig = rig_open();

	ask_fail(&rig, "rpc show:", -EOPNOTSUPP,
		 "---\nshow:\n-     rpc:\n      errno: -95\n"
		 "      descr: ! \"this node runs no RPC\"\n...\n");
	ask_fail(&rig, "rpc reset: {x: 1}", -EOPNOTSUPP, "runs no RPC");
	ask_fail(&rig, "reload:", -EOPNOTSUPP, "does not read keys again");
	cr_assert_eq(add(&rig, "rpc show", &p), 0);
	ask_fail(&rig, "rpc show: {x: 1}", -EINVAL, "x");
	ask_fail(&rig, "rpc show: [1]", -EINVAL, "mapping");
	cr_assert_eq(p.calls, 0);
	ask_fail(&rig, "rpc show: {number: 101}", -EINVAL,
		 "number: 101 is not in -5..100");
	ask_fail(&rig, "rpc show: {number: x}", -EINVAL,
		 "number: a number is expected");
	ask_fail(&rig, "rpc show: {text: [1]}", -EINVAL, "text");
	cr_assert_eq(p.calls, 3);
	ask_fail(&rig, "rpc show:", -EPERM,
		 "rpc show: Operation not permitted");
	p.rc = 0;
	p.output = "{";
	ask_fail(&rig, "rpc show:", -EINVAL, "the program's answer: line ");
	p.output = "[1]";
	ask_fail(&rig, "rpc show:", -EINVAL, "answer is not a mapping");
	/* The command works even while the node is unconfigured. */
	p.output = "a: 1";
	ask_out(&rig, "lnet unconfigure:", "");
	ask_out(&rig, "rpc show:", "a: 1\n");
	rig_close(&rig);
}

/* ---- deleting a command that is running ---- */

struct slow {
	struct rig rig;
	bool in_node; /* the command waits for a turn of the node */
	atomic_bool began, may_end, ended, deleted;
	atomic_uint bad;
};

static int asked_in_turn(void *arg)
{
	(void)arg;
	return 7;
}

static int on_slow(void *arg, struct lnet_control_call *call, char **output_p)
{
	struct slow *s = arg;

	(void)call;
	(void)output_p;
	atomic_store(&s->began, true);
	while (!atomic_load(&s->may_end))
		sched_yield();
	if (s->in_node && lnet_call(s->rig.node, 0, asked_in_turn, NULL) != 7)
		atomic_fetch_add(&s->bad, 1);
	if (atomic_load(&s->deleted))
		atomic_fetch_add(&s->bad, 1);
	atomic_store(&s->ended, true);
	return 0;
}

static void *slow_main(void *arg)
{
	struct slow *s = arg;
	char *answer = NULL;

	if (lnet_control_request(s->rig.control, "slow:", &answer) ||
	    strcmp(answer, "status: 0\n") != 0)
		atomic_fetch_add(&s->bad, 1);
	free(answer);
	return NULL;
}

/* Lets the command end as soon as it has been removed from the list, so that
 * its name can be used again. */
static void *end_main(void *arg)
{
	struct slow *s = arg;
	const struct ulnet_control_command command = { .name = "slow",
						       .fn = on_slow,
						       .arg = s };

	while (lnet_control_add(s->rig.control, &command))
		sched_yield();
	atomic_store(&s->may_end, true);
	return NULL;
}

static void delete_while_it_runs(struct slow *s)
{
	const struct ulnet_control_command command = { .name = "slow",
						       .fn = on_slow,
						       .arg = s };
	pthread_t runner, ender;

	cr_assert_eq(lnet_control_add(s->rig.control, &command), 0);
	cr_assert_eq(pthread_create(&runner, NULL, slow_main, s), 0);
	while (!atomic_load(&s->began))
		sched_yield();
	cr_assert_eq(pthread_create(&ender, NULL, end_main, s), 0);
	cr_assert_eq(lnet_control_del(s->rig.control, "slow"), 0);
	cr_assert(atomic_load(&s->ended));
	atomic_store(&s->deleted, true);
	pthread_join(runner, NULL);
	pthread_join(ender, NULL);
	cr_assert_eq(atomic_load(&s->bad), 0);
	rig_close(&s->rig);
}

Test(program, del_waits_for_a_running_command)
{
	struct slow s = { .rig = rig_open(), .in_node = true };

	delete_while_it_runs(&s);
}

/* The node is polled, so the thread that waits in lnet_control_del() has to run
 * its turns. */
Test(program, del_waits_by_polling)
{
	struct node_params p = { .lnds = open_lnds, .lnd = &stub_lnd };
	struct slow s = { .in_node = true };

	lnet_conf_init(&p.conf);
	p.conf.run = LNET_RUN_POLL;
	p.conf.cpts = 1;
	cr_assert_eq(node_open(&p, &s.rig.node), 0);
	cr_assert_eq(lnet_control_start(s.rig.node, NULL, &s.rig.control), 0);
	delete_while_it_runs(&s);
}

static char dir[64], path[96];

static void *client_main(void *arg)
{
	struct slow *s = arg;
	struct lnet_ctl *ctl;
	char *answer;

	if (lnet_ctl_connect(path, 0, &ctl)) {
		atomic_fetch_add(&s->bad, 1);
		return NULL;
	}
	if (!lnet_ctl_request(ctl, "slow:", 0, &answer))
		free(answer);
	lnet_ctl_close(ctl);
	return NULL;
}

/* The control stops while a client's command waits for a turn of a polled node.
 */
Test(program, stop_by_polling)
{
	struct ulnet_control_conf conf = { .path = path };
	struct node_params p = { .lnds = open_lnds, .lnd = &stub_lnd };
	struct slow s = { .in_node = true, .may_end = true };
	const struct ulnet_control_command command = { .name = "slow",
						       .fn = on_slow,
						       .arg = &s };
	pthread_t client;

	strcpy(dir, "/tmp/ulnet-program-XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/sock", dir);
	lnet_conf_init(&p.conf);
	p.conf.run = LNET_RUN_POLL;
	p.conf.cpts = 1;
	cr_assert_eq(node_open(&p, &s.rig.node), 0);
	cr_assert_eq(lnet_control_start(s.rig.node, &conf, &s.rig.control), 0);
	cr_assert_eq(lnet_control_add(s.rig.control, &command), 0);
	cr_assert_eq(pthread_create(&client, NULL, client_main, &s), 0);
	while (!atomic_load(&s.began))
		sched_yield();
	rig_close(&s.rig);
	cr_assert(atomic_load(&s.ended));
	pthread_join(client, NULL);
	cr_assert_eq(atomic_load(&s.bad), 0);
	cr_assert_eq(rmdir(dir), 0);
}

static int delete_in_turn(void *arg)
{
	return lnet_control_del(((struct rig *)arg)->control, "rpc show");
}

Test(program, not_in_a_turn)
{
	struct program p = { 0 };
	struct rig rig = rig_open();

	cr_assert_eq(add(&rig, "rpc show", &p), 0);
	cr_assert_eq(lnet_call(rig.node, 0, delete_in_turn, &rig), -EDEADLK);
	cr_assert_eq(lnet_control_del(rig.control, "rpc show"), 0);
	rig_close(&rig);
}
