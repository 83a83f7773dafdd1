/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands of lst(8), run on the node of a replay. They are the program's
 * own objects. Only the code that sends requests and waits is replaced here,
 * since the tape has to go on meanwhile. A kernel's console lives as long as
 * its session, and needs no reminders; those of our console are answered here,
 * and counted.
 */
#include "tests/lnd/replay_lst.h"

#include <string.h>

#include "base/buf.h"
#include "tools/lst/lst_command.h"

#define AT_STAMP  40 /* offset in a request that makes a session */
#define AT_BATCH  56 /* offset in a request that adds a test */
#define WORDS_MAX 20

static const struct {
	const char *tape;
	const char *commands[12];
} sessions[] = {
	{ "lst-ping",
	  { "new_session alpha", "add_group clients 10.77.0.14@tcp",
	    "add_group servers 10.77.0.13@tcp", "add_batch b",
	    ("add_test --batch b --loop 3 --concurrency 2 --from clients "
	     "--to servers ping"),
	    "run --timeout 7 b", "query b", "query --test 1 b",
	    "query --server b", "stop b", "show_error clients" } },
	{ "lst-brw",
	  { "new_session beta", "add_group clients 10.77.0.14@tcp",
	    "add_group servers 10.77.0.13@tcp", "add_batch b",
	    ("add_test --batch b --loop 2 --from clients --to servers "
	     "brw read check=full size=8k"),
	    ("add_test --batch b --loop 1 --from clients --to servers "
	     "brw write check=simple size=1k off=512"),
	    "run b", "query b", "query --test 2 b" } },
};

/* the replay that lst_ask_all() plays; the function has no argument for it */
static struct replay *playing;
static unsigned int pending;

/* Plays frames up to the next request of the console, which is not played. */
static bool play_before(struct replay *r)
{
	bool ok = true;

	while (ok && r->next < r->tape.nframes &&
	       !replay_lst_is_console(r, r->next, false))
		ok = replay_next(r);
	return ok;
}

/* Plays frames up to the next reply to the console, and that one, too. */
static bool play_reply(struct replay *r)
{
	bool ok = true;

	while (ok && r->next < r->tape.nframes &&
	       !replay_lst_is_console(r, r->next, true))
		ok = replay_next(r);
	return ok && r->next < r->tape.nframes ? replay_next(r) : ok;
}

static void on_done(struct lst_call *call)
{
	struct lst_ask *ask = LST_OF(call, struct lst_ask, call);

	ask->status = call->status;
	ask->reply = call->msg;
	pending--;
}

/* Answers reminders: the nodes are still members. */
static void remind(struct replay *r, struct lst_ask *asks, unsigned int n)
{
	printf("  on no tape: %u nodes are reminded of the session\n", n);
	r->reminders += n;
	for (unsigned int i = 0; i < n; i++) {
		asks[i].status = 0;
		asks[i].reply =
			(struct lst_msg){ .type = LST_DEBUG_REPLY,
					  .session = asks[i].msg.session };
	}
}

/* Is the request for the other node? Only then it is on the tape: requests to
 * itself our node answers itself. */
static bool is_other(const struct replay *r, const struct lst_ask *ask)
{
	struct ulnet_nid own;

	return lnet_nid_parse(r->c->nis[0], &own) ||
	       !lnet_nid_eq(&own, &ask->to.nid);
}

static void begin(struct lst_calls *calls, struct lst_ask *ask,
		  uint32_t seconds)
{
	ask->call.done = on_done;
	ask->status = lst_call_begin(calls, &ask->call, ask->to, &ask->msg,
				     ask->bulk.op ? &ask->bulk : NULL, seconds);
	pending += ask->status == 0;
}

void lst_ask_all(struct lst_calls *calls, struct lst_ask *asks, unsigned int n,
		 uint32_t seconds)
{
	struct replay *r = playing;
	bool others = false, ok = true;

	if (n && asks[0].msg.type == LST_DEBUG) {
		remind(r, asks, n);
		return;
	}
	for (unsigned int i = 0; i < n; i++)
		others |= is_other(r, &asks[i]);
	/* the first request makes our node connect */
	if (others && r->next)
		ok = play_before(r);
	for (unsigned int i = 0; i < n && ok; i++)
		begin(calls, &asks[i], seconds);
	if (others)
		ok = ok && play_reply(r);
	while (ok && pending)
		ok = replay_pump(r, r->next ? r->next - 1 : 0);
	if (!ok)
		replay_give_up(r);
}

void lst_ask_wait(struct lst_calls *calls, uint64_t us)
{
	(void)calls;
	(void)us;
}

/* ---- commands ---- */

/* Takes over the numbers that the real console's session and batch had. */
static bool take_numbers(const struct replay *r, struct state *s)
{
	bool stamped = false;

	for (unsigned int i = 0; i < r->tape.nframes; i++) {
		const uint8_t *msg =
			r->tape.frame[i].bytes + replay_head(&r->tape);

		if (!replay_lst_is_console(r, i, false))
			continue;
		if (!stamped)
			s->stamp = (int64_t)load_le64(msg + AT_STAMP);
		stamped = true;
		if (r->plan.step[i].hdr.match_bits != LST_SERVICE_TEST)
			continue;
		s->next_batch = load_le64(msg + AT_BATCH);
		return stamped;
	}
	return false;
}

static bool run_command(struct lst_console *c, const char *text)
{
	const struct lst_command *command;
	struct lst_words read;
	char words[256], *argv[WORDS_MAX + 1], *save = NULL;
	int argc = 0;

	snprintf(words, sizeof(words), "%s", text);
	for (char *w = strtok_r(words, " ", &save); w && argc < WORDS_MAX;
	     w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	argv[argc] = NULL;
	command = argc ? lst_command_find(argv[0]) : NULL;
	if (command && lst_words_take(&read, command, argc, argv) == 0 &&
	    command->run(c, &read) == 0)
		return true;
	fprintf(stderr, "lst %s: has failed\n", text);
	return false;
}

bool replay_console(struct replay *r)
{
	static struct lst_console c;
	const char *const *commands = NULL;
	bool ok;

	for (unsigned int i = 0; i < ARRAY_SIZE(sessions); i++)
		if (strcmp(sessions[i].tape, r->c->tape) == 0)
			commands = sessions[i].commands;
	playing = r;
	c.node = r->node;
	c.state.file = tmpfile();
	lst_calls_init(&c.calls, r->node, LST_HOME);
	ok = commands && c.state.file && run_command(&c, *commands) &&
	     take_numbers(r, &c.state);
	while (ok && *++commands)
		ok = run_command(&c, *commands);
	if (c.state.file)
		fclose(c.state.file);
	state_clear(&c.state);
	if (ok && r->reminders != r->c->reminders) {
		fprintf(stderr, "%u reminders, and not %u\n", r->reminders,
			r->c->reminders);
		ok = false;
	}
	return ok;
}
