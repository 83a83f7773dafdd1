/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls to several servers with bodies that are lent as bulk. */
#include "tests/unit/rpc/replicas/servers.h"

static int make(unsigned int index, const void *body, size_t length)
{
	const struct ulrpc_replicas_call_conf how = {
		.call = { .deadline = 60000000, .semantics = ULRPC_IDEMPOTENT },
	};

	calls[index] = (struct one){ .began = lnet_sim_now(sim) };
	return ulrpc_replicas_call(rs, ulrpc_method("work"), body, length, &how,
				   on_end, &calls[index], NULL);
}

/* Makes call @index with long_body, of memory that is overwritten then. */
static void call_long(unsigned int index)
{
	uint8_t *own = malloc(sizeof(long_body));
	const uint32_t number = index;

	for (size_t i = 0; i < sizeof(long_body); i++)
		long_body[i] = (uint8_t)(i ^ i >> 8 ^ i >> 16);
	memcpy(long_body, &number, sizeof(number));
	memcpy(own, long_body, sizeof(long_body));
	cr_assert_eq(make(index, own, sizeof(long_body)), 0);
	memset(own, 0xee, sizeof(long_body));
	free(own);
}

static void open_first(void)
{
	sim_open(1);
	conf.choice = ULRPC_CHOOSE_FIRST;
	open_nids(3);
}

Test(replicas_long, a_long_body_arrives_whole)
{
	open_first();
	for (unsigned int i = 0; i < 2; i++) { /* unconnected, and connected */
		call_long(i);
		lnet_sim_run(sim, SEC);
		went_well(i);
		cr_assert_eq(calls[i].answer, 1);
		cr_assert_eq(calls[i].executed, 1);
	}
	sim_close();
}

Test(replicas_long, a_server_that_is_not_there_is_passed_over)
{
	open_first();
	cr_assert_eq(lnet_sim_crash(sim, 1), 0);
	call_long(0);
	lnet_sim_run(sim, 10 * SEC);
	went_well(0);
	cr_assert_eq(calls[0].answer, 2);
	cr_assert_eq(calls[0].o.moves, 1);
	sim_close();
}

Test(replicas_long, a_server_that_dies_while_it_gets_it)
{
	open_first();
	cr_assert_eq(goes_to(), 1);
	call_long(1);
	/* The request needs 50 us, and what the server gets twice that. */
	lnet_sim_run(sim, MSEC / 10);
	cr_assert_eq(lnet_sim_crash(sim, 1), 0);
	lnet_sim_run(sim, 40 * SEC);
	went_well(1);
	cr_assert_eq(calls[1].answer, 2);
	cr_assert_eq(calls[1].executed, 1);
	sim_close();
}

Test(replicas_long, a_server_that_dies_while_it_executes_it)
{
	open_first();
	cr_assert_eq(goes_to(), 1);
	servers[1].delay = 10 * SEC;
	call_long(1);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(calls[1].executed, 1);
	cr_assert_eq(lnet_sim_crash(sim, 1), 0);
	lnet_sim_run(sim, 40 * SEC);
	went_well(1);
	cr_assert_eq(calls[1].answer, 2);
	cr_assert_eq(calls[1].executed, 2);
	sim_close();
}

/* What is too long for one server is so for all: the limit is the service's. */
static void is_too_long(size_t length)
{
	uint8_t *body = calloc(1, length);
	char text[80];

	cr_assert_eq(make(1, body, length), 0);
	free(body);
	lnet_sim_run(sim, 5 * SEC);
	cr_assert_eq(calls[1].n, 1);
	cr_assert_eq(calls[1].o.call.cause, ULRPC_CAUSE_BAD_REQUEST);
	cr_assert_eq(calls[1].o.call.execution, ULRPC_NOT_EXECUTED);
	cr_assert_eq(calls[1].o.moves, 0);
	snprintf(text, sizeof(text),
		 "a request of %zu bytes is too long: the service takes up to "
		 "16777216",
		 length);
	cr_assert_str_eq(calls[1].o.call.text, text);
}

Test(replicas_long, a_body_above_the_limit_goes_nowhere)
{
	open_first();
	is_too_long(16 * 1048576 + 1);
	cr_assert_eq(goes_to(), 1);
	is_too_long(16 * 1048576 + 1);
	cr_assert_eq(make(1, long_body, (size_t)ULRPC_LENT_MAX + 1), -EMSGSIZE);
	sim_close();
}
